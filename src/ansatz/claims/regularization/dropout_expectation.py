"""The mean over dropout's masks is the network that is scaled by the keep probability."""

import itertools

import numpy as np
import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL

DROPS = (0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9)


def measure(
    generator: torch.Generator, *, units: int = 5, inputs: int = 4, samples: int = 4_000
) -> Finding:
    """Exact means over all masks of a linear network, of a softmax, and of a logistic unit."""
    x = 1 + torch.rand(inputs, generator=generator, dtype=torch.float64)
    first = torch.randn(units, inputs, generator=generator, dtype=torch.float64)
    last = torch.randn(units, generator=generator, dtype=torch.float64)
    linear = float(last @ first @ x)  # nothing dropped
    sizes = float(last.abs() @ first.abs() @ x)
    means = {p: mean_over_masks(first, last, x, 1 - p) for p in DROPS}
    worst = max(abs(m - (1 - p) ** 2 * linear) for p, m in means.items())
    printed = min(abs(m - p**2 * linear) for p, m in means.items())
    positive = (first.abs(), last.abs(), x)  # so that the weights of a unit do not cancel
    variance, error = simulated_variance(*positive, 0.5, samples, generator)
    by_units = float(((last.abs() @ first.abs()) * x).square().sum())  # (1 - π)/π = 1 at π = ½
    by_weights = float((last[:, None] * first * x).square().sum())
    soft = geometric_mean_gap(first, x, 0.7)
    gap, unscaled, second, bound = logistic_gap(last.abs() / 4, 0.7)
    checks = [
        Check(
            "largest distance of the mean over masks from π² times the linear network",
            worst,
            0.0,
            EPS * 2 ** (units + inputs) * sizes,
            "rounding: eps for each mask in the sum",
            wrong=Wrong("scaled by the dropout probability", measured=printed, erratum="E55"),
        ),
        Check(
            "variance of torch's dropout on the inputs of a linear network",
            variance,
            by_units,
            5 * error,
            f"5 standard errors over {samples} masks",
            wrong=Wrong("weights dropped one by one", predicted=by_weights, erratum="E55"),
        ),
        Check(
            "largest distance of the softmax of scaled logits from the geometric mean over masks",
            soft,
            0.0,
            EPS * 2**inputs * 8 * sizes,
            "rounding: eps for each mask in the sum of logits",
        ),
        Check(
            "mean over masks of a logistic unit less the scaled unit, less σ″ Var / 2",
            abs(gap - second),
            0.0,
            bound,
            "Taylor: the third derivative of σ is at most 1/8, so E|Δ|³ / 48",
            wrong=Wrong("from the unit that is not scaled", measured=abs(unscaled - second)),
        ),
    ]
    table = Table(
        ["dropped", "mean over masks", "π² f", "p² f"],
        [[p, m, (1 - p) ** 2 * linear, p**2 * linear] for p, m in means.items()],
    )
    return Finding(checks, table, {"means": means, "linear": linear})


def masks(count: int) -> Tensor:
    """All ``(2^count, count)`` of them."""
    return torch.tensor(list(itertools.product((0.0, 1.0), repeat=count)), dtype=torch.float64)


def chance(mask: Tensor, keep: float) -> Tensor:
    """Π π^b (1 - π)^(1 - b)."""
    kept = mask.sum(-1)
    return keep**kept * (1 - keep) ** (mask.shape[-1] - kept)


def mean_over_masks(first: Tensor, last: Tensor, x: Tensor, keep: float) -> float:
    """Exact: inputs and hidden units are dropped, nothing is scaled."""
    below, above = masks(len(x)), masks(len(last))
    outputs = (above * last) @ first @ (below * x).T  # (masks above, masks below)
    return float(chance(above, keep) @ outputs @ chance(below, keep))


def simulated_variance(
    first: Tensor, last: Tensor, x: Tensor, keep: float, samples: int, generator: torch.Generator
) -> tuple[float, float]:
    """Variance over masks of torch's own dropout, and its standard error."""
    seed = int(torch.randint(2**31, (), generator=generator))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        dropped = nn.Dropout(1 - keep)(x.expand(samples, -1))
    outputs = dropped @ first.T @ last
    squares = (outputs - outputs.mean()).square()
    return float(squares.mean()), float(squares.std() / samples**0.5)


def geometric_mean_gap(first: Tensor, x: Tensor, keep: float) -> float:
    """Softmax with dropped inputs: the normalised geometric mean against the scaled logits."""
    below = masks(len(x))
    logs = torch.log_softmax((below * x) @ first.T, -1)  # (masks, classes)
    mean = torch.softmax(chance(below, keep) @ logs, -1)
    return float((mean - torch.softmax(keep * (first @ x), -1)).abs().max())


def logistic_gap(weights: Tensor, keep: float) -> tuple[float, float, float, float]:
    """E σ(Σ b w) less σ(π Σ w), less σ(Σ w); the second-order term; the bound on the rest."""
    each = masks(len(weights))
    logits, p = each @ weights, chance(each, keep)
    centre = keep * weights.sum()
    s = torch.sigmoid(centre)
    away = logits - centre
    second = 0.5 * s * (1 - s) * (1 - 2 * s) * (p @ away.square())
    bound = (p @ away.abs() ** 3) / 48
    mean = p @ torch.sigmoid(logits)
    unscaled = mean - torch.sigmoid(weights.sum())
    return float(mean - s), float(unscaled), float(second), float(bound)


def draw(paper: Figure, finding: Finding) -> None:
    """The exact mean against the dropout probability."""
    axes = paper.subplots()
    means, linear = finding.data["means"], finding.data["linear"]
    fine = np.linspace(0, 1, 200)
    axes.plot(fine, (1 - fine) ** 2, color=INK, label="scaled by the keep probability, (1 − p)²")
    axes.plot(
        fine, fine**2, "--", color=LINEAR, linewidth=0.9, label="by the dropout probability, p²"
    )
    shares = [m / linear for m in means.values()]
    axes.plot(list(means), shares, "o", color=MODEL, markersize=6, label="mean over all masks")
    axes.set(xlabel="probability p that a unit is dropped", ylabel="mean output / full output")
    axes.set_title("two layers of dropped units: the average network is the scaled one")
    axes.legend(loc="upper center")


claim = Claim(
    id="dropout-expectation",
    title="Dropout averages to the scaled network",
    statement=(
        "The mean of a linear network over all masks of its units is the network with each layer "
        "scaled by the keep probability; for a softmax of linear logits the same holds for the "
        "geometric mean, and for other units up to second order. Common slips are to drop weights "
        "instead of units, and to scale by the dropout probability."
    ),
    formula=(
        r"\mathrm{E}_b\, a^\top (b \odot W (b' \odot x)) = \pi^2 a^\top W x, \qquad "
        r"p(b) = \prod_i \pi^{b_i} (1 - \pi)^{1 - b_i}, \quad \pi = 1 - p"
    ),
    sources=("M159", "M160", "E55"),
    measure=measure,
    reference="Baldi and Sadowski (2013), Understanding dropout.",
    full={"units": 9, "inputs": 8, "samples": 100_000},
    errata=(
        Erratum(
            "E55",
            "dropout drops weights, and scales by the dropout probability",
            "it drops units, and scales by their keep probability",
        ),
    ),
    draw=draw,
)
