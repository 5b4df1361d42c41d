"""Softplus, GELU, Swish: smooth rectifiers, and how near to ReLU they are."""

import math

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.special import lambertw
from scipy.stats import norm
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import INK, LINEAR, MODEL, THIRD
from ansatz.layers import SelfGated, Swish

SLOPES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


def measure(generator: torch.Generator, *, points: int = 20_001, draws: int = 40_000) -> Finding:
    """The largest distance to ReLU at growing slopes; GELU's minimum; the family's meaning."""
    x = torch.linspace(-12, 12, points, dtype=torch.float64)
    gaps = [[b, gap(nn.Softplus(b), x), gap(Swish(b), x)] for b in SLOPES]
    # x σ(-x) is largest where 1 = x (1 - σ(-x)), x = 1 + W(1/e); there it is W(1/e).
    swish_gap = float(lambertw(1 / math.e).real)
    step = float(x[1] - x[0])
    z = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(nn.functional.softplus(z, threshold=40).sum(), z)
    place = brentq(lambda t: norm.cdf(t) + t * norm.pdf(t), -2, 0)  # where GELU has slope 0
    values = nn.functional.gelu(x)
    family = max(
        float((SelfGated("normal")(x) - nn.GELU()(x)).abs().max()),
        float((SelfGated("logistic")(x) - nn.SiLU()(x)).abs().max()),
    )
    tanh_form = nn.functional.gelu(x, approximate="tanh") - nn.functional.gelu(x)
    deviation, reversed_deviation = gate_deviation(draws, generator)
    checks = [
        Check(
            "softplus: largest |β × (distance to ReLU) - log 2|",
            max(abs(b * a - math.log(2)) for b, a, _ in gaps),
            0.0,
            4 * EPS * max(SLOPES),
            "attained at 0; rounding times β",
            wrong=Wrong("1/β", measured=max(abs(b * a - 1) for b, a, _ in gaps)),
        ),
        Check(
            "swish: largest |β × (distance to ReLU) - W(1/e)|",
            max(abs(b * a - swish_gap) for b, _, a in gaps),
            0.0,
            (max(SLOPES) * step) ** 2 / 8,
            "the maximum lies between grid points: curvature below 1, times (β step)²/8",
            wrong=Wrong(
                "log 2, as softplus", measured=max(abs(b * a - math.log(2)) for b, _, a in gaps)
            ),
        ),
        Check(
            "softplus: largest |slope - σ(x)|",
            float((slope - x.sigmoid()).abs().max()),
            0.0,
            4 * EPS,
            "rounding of two numbers below 1",
            wrong=Wrong("tanh", measured=float((slope - x.tanh()).abs().max())),
        ),
        Check(
            "swish with β = 0: largest |φ(x) - x/2|",
            float((Swish(0.0)(x) - x / 2).abs().max()),
            0.0,
            0.0,
            "exact: σ(0) is ½",
        ),
        Check(
            f"lowest value of GELU, at x = {float(x[values.argmin()]):.2f}",
            float(values.min()),
            float(place * norm.cdf(place)),
            step**2,
            "the minimum lies between grid points: step²/8 times a curvature below 1",
            wrong=Wrong("that of SiLU", predicted=-swish_gap),
        ),
        Check(
            "largest |tanh form of GELU - GELU|",
            float(tanh_form.abs().max()),
            1e-3,
            0.0,
            "the bound of the statement",
            relation="<=",
            wrong=Wrong("without the cubic term", measured=float(_no_cubic(x))),
        ),
        Check(
            "self-gated: largest distance of x Φ(x) to GELU, x σ(x) to SiLU",
            family,
            0.0,
            4 * EPS * 12,
            "rounding of a product of size 12",
        ),
        Check(
            "self-gated: deviation of x 1[Z <= x] averaged over normal Z, in standard errors",
            deviation,
            0.0,
            4.5,
            "a normal quantile of 7e-6, for 13 values of x",
            wrong=Wrong("kept where Z > x", measured=reversed_deviation),
        ),
    ]
    return Finding(checks, Table(["β", "softplus", "swish"], gaps))


def gap(phi: nn.Module, x: Tensor) -> float:
    """The largest distance to ReLU."""
    return float((phi(x) - x.relu()).abs().max())


def _no_cubic(x: Tensor) -> float:
    plain = 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * x))
    return float((plain - nn.functional.gelu(x)).abs().max())


def gate_deviation(draws: int, generator: torch.Generator) -> tuple[float, float]:
    """Units that are kept if a normal draw is below x: their mean against the activation."""
    x = torch.linspace(-3, 3, 13, dtype=torch.float64)
    x = x[x != 0]
    z = torch.randn(draws, 1, generator=generator, dtype=torch.float64)
    expected = SelfGated("normal")(x)
    p = torch.special.ndtr(x)
    error = x.abs() * (p * (1 - p) / draws).sqrt()
    means = [(x * kept.double()).mean(0) for kept in (z <= x, z > x)]
    right, wrong = (float(((mean - expected) / error).abs().max()) for mean in means)
    return right, wrong


def draw(paper: Figure, finding: Finding) -> None:
    """Distances to ReLU against the slope."""
    assert finding.table is not None
    axes = paper.subplots()
    beta, softplus, swish = np.array(finding.table.rows).T
    axes.plot(beta, softplus, "o", color=MODEL, label="softplus")
    axes.plot(beta, swish, "s", color=THIRD, label="swish x σ(βx)")
    axes.plot(beta, math.log(2) / beta, color=LINEAR, label="log 2 / β")
    axes.plot(beta, 0.27846 / beta, "--", color=LINEAR, label="0.278 / β")
    axes.plot(beta, 1 / beta, ":", color=INK, lw=0.8, label="1 / β: wrong")
    axes.set(xlabel="slope β", ylabel="largest distance to ReLU")
    logarithmic(axes.xaxis, axes.yaxis)
    axes.set_title("smooth rectifiers tend to ReLU as one over their slope")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="smooth-rectifiers",
    title="Softplus, GELU and Swish",
    statement=(
        "Softplus has the sigmoid as its slope and stays within log 2 / β of ReLU; swish runs from "
        "x/2 at β = 0 to ReLU, within 0.278 / β. GELU dips to -0.17 and its tanh form differs by "
        "less than 0.001. GELU and SiLU are x times a distribution function: the mean of a unit "
        "that is kept with that probability."
    ),
    formula=(
        r"0 \le \tfrac1\beta \log(1 + e^{\beta x}) - \mathrm{ReLU}(x) \le \tfrac{\log 2}{\beta}, "
        r"\qquad \max_x |x \sigma(\beta x) - \mathrm{ReLU}(x)| = \tfrac{W(1/e)}{\beta}, \qquad "
        r"\mathrm{GELU}(x) = x \Phi(x) = \mathrm{E}\, x 1[Z \le x]"
    ),
    sources=("M052", "M053", "M054", "M057"),
    measure=measure,
    reference="Hendrycks and Gimpel (2016), Gaussian error linear units. "
    "https://arxiv.org/abs/1606.08415",
    full={"points": 200_001, "draws": 2_000_000},
    draw=draw,
)
