"""Adam: the first step is the rate times the sign of the gradient."""

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.claims.optimization.adagrad import moves
from ansatz.optim import FlatAdamW


def measure(
    generator: torch.Generator,
    *,
    rate: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    steps: int = 100,
) -> Finding:
    """First steps over gradients of many sizes; whole paths beside torch's and the library's."""
    sizes = torch.logspace(-10, 2, 25, dtype=torch.float64)
    options = {"lr": rate, "betas": (beta1, beta2), "eps": eps}
    first = -moves(lambda p: torch.optim.Adam(p, **options), sizes[None])[0] / rate  # type: ignore[arg-type]
    outside = sizes / (sizes + eps)
    inside = sizes / (sizes**2 + eps).sqrt()
    uncorrected = (1 - beta1) * sizes / ((1 - beta2) ** 0.5 * sizes + eps) / rate
    gradients = torch.randn(steps, 25, dtype=torch.float64, generator=generator) * sizes
    torchs = moves(lambda p: torch.optim.Adam(p, **options), gradients)  # type: ignore[arg-type]
    ours = transcribed(gradients, rate, beta1, beta2, eps)
    rounding = 64 * EPS * rate * steps
    flat = flat_path(gradients, rate, (beta1, beta2), eps)
    large = sizes > 1e-4
    checks = [
        Check(
            "first step over rate · sign(g), gradients above 1e-4",
            float(first[large].min()),
            1.0,
            eps / 1e-4 + 16 * EPS / rate,
            "ε / |g| of the step is missing, and rounding",
            wrong=Wrong(
                "neither rate nor correction of the start: (1 - β₁) / √(1 - β₂) over the rate",
                predicted=float(uncorrected[large].min()),
                erratum="E2",
            ),
        ),
        Check(
            "largest gap of a first step to |g| / (|g| + ε), in units of the rate",
            float((first - outside).abs().max()),
            0.0,
            16 * EPS / rate,
            "rounding of moments and their corrections",
            wrong=Wrong(
                "ε under the root: |g| / √(g² + ε)",
                measured=float((first - inside).abs().max()),
                erratum="E3",
            ),
        ),
        Check(
            "largest gap of a path to torch's",
            float((torchs.cumsum(0) - ours.cumsum(0)).abs().max()),
            0.0,
            rounding,
            "rounding: 64 eps per step of the size of the rate",
        ),
        Check(
            "largest gap of the library's flat vector to torch's",
            float((torchs.cumsum(0) - flat).abs().max()),
            0.0,
            rounding,
            "rounding: 64 eps per step of the size of the rate",
        ),
    ]
    rows = [
        [float(g), float(f), float(i)]
        for g, f, i in zip(sizes[::4], first[::4], inside[::4], strict=True)
    ]
    data = {"sizes": sizes, "first": first, "outside": outside, "inside": inside}
    return Finding(checks, Table(["|g|", "first step / rate", "ε under the root"], rows), data)


def transcribed(g: Tensor, rate: float, beta1: float, beta2: float, eps: float) -> Tensor:
    """The steps ``(T, D)`` by the formula."""
    m, v, steps = torch.zeros_like(g[0]), torch.zeros_like(g[0]), []
    for t, gradient in enumerate(g, 1):
        m = beta1 * m + (1 - beta1) * gradient
        v = beta2 * v + (1 - beta2) * gradient**2
        steps.append(-rate * (m / (1 - beta1**t)) / ((v / (1 - beta2**t)).sqrt() + eps))
    return torch.stack(steps)


def flat_path(g: Tensor, rate: float, betas: tuple[float, float], eps: float) -> Tensor:
    """The path of the library's own AdamW without decay."""
    theta = torch.nn.Parameter(torch.zeros_like(g[0]))
    rule, path = FlatAdamW([theta], [], betas=betas, eps=eps, weight_decay=0.0), []
    for gradient in g:
        rule.gradients[0].copy_(gradient)
        rule.update(rate)
        path.append(theta.detach().clone())
    return torch.stack(path)


def draw(paper: Figure, finding: Finding) -> None:
    """The first step against the size of the gradient."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL

    data, axes = finding.data, paper.subplots()
    axes.plot(data["sizes"], data["outside"], color=INK, label="|g| / (|g| + ε)")
    axes.plot(data["sizes"], data["inside"], "--", lw=0.8, color=LINEAR, label="ε under the root")
    axes.plot(data["sizes"], data["first"], "o", color=MODEL, label="torch's Adam")
    axes.set(xlabel="size of the gradient |g|", ylabel="first step / rate")
    axes.set_title("Adam's first step is the rate, for gradients of any size above ε")
    axes.legend(loc="center right")
    logarithmic(axes.xaxis)


claim = Claim(
    id="adam",
    title="Adam's first step is α times the sign of the gradient",
    statement=(
        "With the correction of the start, Adam's first step is α g / (|g| + ε): the rate, for any "
        "gradient well above ε. Common slips omit the rate and the correction, which makes it (1 - "
        "β₁) / √(1 - β₂) = 3.2, or put ε under the root, which damps all gradients below √ε = "
        "1e-4. torch's Adam has ε outside."
    ),
    formula=(
        r"\theta_t = \theta_{t-1} - \alpha \frac{\hat m_t}{\sqrt{\hat v_t} + \epsilon}, \quad "
        r"\hat m_t = \frac{m_t}{1 - \beta_1^t},\; \hat v_t = \frac{v_t}{1 - \beta_2^t} "
        r"\;\Rightarrow\; \theta_1 - \theta_0 \approx -\alpha\, \mathrm{sign}(g)"
    ),
    sources=("M135", "E2", "E3"),
    measure=measure,
    reference=(
        "Kingma and Ba (2015), Adam: a method for stochastic optimization, algorithm 1. "
        "https://arxiv.org/abs/1412.6980"
    ),
    full={"steps": 1000},
    errata=(
        Erratum("E2", "η_t = 1 / (√γ + δ), no rate, no correction", "α m̂ / (√v̂ + ε)"),
        Erratum("E3", "α m̂ / √(v̂ + ε) in one line", "α m̂ / (√v̂ + ε)"),
    ),
    draw=draw,
)
