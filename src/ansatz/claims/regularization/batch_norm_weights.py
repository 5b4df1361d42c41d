"""Batch normalisation of a linear unit is a normalisation of its weights."""

import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import INK, LINEAR, MODEL

TINY = 1e-300  # torch wants an ε; this one is lost in every sum
SCALES = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3)


def measure(generator: torch.Generator, *, rows: int = 200, inputs: int = 6) -> Finding:
    """Torch's batch norm after wᵀx, against γ wᵀ(x - μ) / ‖w‖_Σ."""
    mix = torch.randn(inputs, inputs, generator=generator, dtype=torch.float64)
    x = torch.randn(rows, inputs, generator=generator, dtype=torch.float64) @ mix
    x = x + 2 + torch.rand(inputs, generator=generator, dtype=torch.float64)
    w = torch.randn(inputs, generator=generator, dtype=torch.float64)
    gain = 1.7
    out = batch_norm(x, w, gain)
    mean = x.mean(0)
    centred = (x - mean).T @ (x - mean) / rows
    raw = x.T @ x / rows

    def by_weights(matrix: Tensor) -> Tensor:
        return gain * (x - mean) @ w / (w @ matrix @ w).sqrt()

    # Weight normalisation divides by ‖w‖₂; the factor that remains is ‖w‖₂ / ‖w‖_Σ.
    weight_normed = gain * (x - mean) @ w / w.norm()
    right = weight_normed * w.norm() / (w @ centred @ w).sqrt()
    printed = weight_normed * w.norm(p=1) / (w @ centred @ w).sqrt()
    changes = [float((batch_norm(x, c * w, gain) - out).abs().max()) for c in SCALES]
    gradients = [along(x, c * w, gain) for c in SCALES]
    radial = max(float(abs(g @ w) / (g.norm() * w.norm())) for g in gradients)
    products = [float(g.norm()) * c for g, c in zip(gradients, SCALES, strict=True)]
    condition = float(raw.diagonal().max() / torch.linalg.eigvalsh(centred)[0])
    rounding = 64 * EPS * rows**0.5 * condition
    because = "rounding: 64 eps √n times the condition of the covariance"
    checks = [
        Check(
            "largest distance of batch norm from γ wᵀ(x - μ) / ‖w‖_Σ, Σ centred",
            float((out - by_weights(centred)).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "Σ = E[x xᵀ], not centred",
                measured=float((out - by_weights(raw)).abs().max()),
                erratum="E50",
            ),
        ),
        Check(
            "the same from weight normalisation times ‖w‖₂ / ‖w‖_Σ",
            float((out - right).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "times ‖w‖₁ / ‖w‖_Σ", measured=float((out - printed).abs().max()), erratum="E50"
            ),
        ),
        Check(
            "largest change of the outputs when w is scaled by 0.001 to 1000",
            max(changes),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "without the norm", measured=float((x @ (10 * w) - x @ w).abs().max())
            ),
        ),
        Check(
            "largest cosine of the angle between w and the gradient",
            radial,
            0.0,
            rounding,
            because,
        ),
        Check(
            "largest ratio of scale times gradient over the scales",
            max(products) / min(products),
            1.0,
            rounding,
            because,
            wrong=Wrong("a gradient that the scale leaves alone", predicted=1e6),
        ),
    ]  # fmt: skip
    table = Table(
        ["scale", "change of outputs", "norm of gradient"],
        [[c, d, float(g.norm())] for c, d, g in zip(SCALES, changes, gradients, strict=True)],
    )
    data = {"gradient": [float(g.norm()) for g in gradients], "product": products[3]}
    return Finding(checks, table, data)


def batch_norm(x: Tensor, w: Tensor, gain: float) -> Tensor:
    """Torch's, of wᵀx, without ε."""
    norm = nn.BatchNorm1d(1, eps=TINY, dtype=torch.float64)
    nn.init.constant_(norm.weight, gain)
    with torch.no_grad():
        return norm((x @ w)[:, None])[:, 0]


def along(x: Tensor, w: Tensor, gain: float) -> Tensor:
    """The gradient with respect to w of a loss behind the norm."""
    norm = nn.BatchNorm1d(1, eps=TINY, dtype=torch.float64)
    nn.init.constant_(norm.weight, gain)
    w = w.clone().requires_grad_()
    loss = (norm((x @ w)[:, None])[:, 0] - x[:, 0]).tanh().square().mean()
    return torch.autograd.grad(loss, w)[0]


def draw(paper: Figure, finding: Finding) -> None:
    """The gradient against the scale of the weights."""
    axes = paper.subplots()
    gradient, product = finding.data["gradient"], finding.data["product"]
    axes.plot(SCALES, [product / c for c in SCALES], color=INK, label="1 / scale")
    axes.plot(SCALES, gradient, "o", color=MODEL, markersize=6, label="with batch norm")
    axes.plot(
        SCALES, [gradient[3]] * len(SCALES), "--", color=LINEAR, linewidth=0.9,
        label="a gradient that does not depend on the scale",
    )  # fmt: skip
    logarithmic(axes.xaxis, axes.yaxis)
    axes.set(xlabel="scale of the weights w", ylabel="norm of the gradient")
    axes.set_title("outputs do not depend on the scale of w; the gradient falls as 1 / scale")
    axes.legend()


claim = Claim(
    id="batch-norm-weights",
    title="Batch normalisation is weight normalisation",
    statement=(
        "The batch norm of wᵀx is γ wᵀ(x − μ)/‖w‖_Σ with the centred covariance Σ of x: it does "
        "not change with the scale of w, its gradient is orthogonal to w, and it equals weight "
        "normalisation times ‖w‖₂/‖w‖_Σ. Often printed with ‖w‖₁, and with Σ = E[xxᵀ]."
    ),
    formula=(
        r"\mathrm{BN}(w^\top x) = \gamma \frac{w^\top (x - \mu)}{\|w\|_\Sigma}, \qquad "
        r"\|w\|_\Sigma^2 = w^\top \Sigma w, \quad \Sigma = \mathrm{Cov}(x)"
    ),
    sources=("M162", "E50"),
    measure=measure,
    reference="Kohler et al. (2019), Exponential convergence rates for batch normalization. https://arxiv.org/abs/1805.10694",
    full={"rows": 5000, "inputs": 40},
    errata=(Erratum("E50", "scale ‖w‖₁ / ‖w‖_Σ, Σ = E[x xᵀ]", "‖w‖₂ / ‖w‖_Σ, Σ = Cov(x)"),),
    draw=draw,
)
