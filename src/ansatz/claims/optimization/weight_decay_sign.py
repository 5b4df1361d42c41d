"""Weight decay shrinks the weights; with the printed sign it inflates them."""

import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.claims.optimization._path import follow
from ansatz.optim import create


def measure(
    generator: torch.Generator, *, rate: float = 0.1, decay: float = 0.5, steps: int = 40
) -> Finding:
    """Norms without a gradient; the place where descent with decay comes to rest."""
    start = torch.randn(5, dtype=torch.float64, generator=generator)
    norms = {name: still(name, start, rate, decay, steps) for name in ("sgd", "adamw")}
    t = torch.arange(steps + 1, dtype=torch.float64)
    predicted = start.norm() * (1 - rate * decay) ** t
    printed = start.norm() * (1 + rate * decay) ** t
    # ℓ = ½ |θ - c|²: with decay the rest is c / (1 + μ), by ∇ℓ + μθ = 0.
    target = torch.randn(5, dtype=torch.float64, generator=generator)

    def loss(theta: Tensor) -> Tensor:
        return 0.5 * ((theta - target) ** 2).sum()

    rest = follow(loss, start, lambda p: create("sgd", p, lr=rate, weight_decay=decay), 6 * steps)[
        -1
    ]
    rateless = start.clone()
    for _ in range(6 * steps):
        rateless = (1 - rate * decay) * rateless - (rateless - target)
    ridge = target / (1 + decay)
    left = (1 - rate * (1 + decay)) ** (6 * steps) * float((start - ridge).norm())
    checks = [
        Check(
            f"norm after {steps} steps without a gradient, as a share",
            float(norms["sgd"][-1] / start.norm()),
            (1 - rate * decay) ** steps,
            4 * steps * EPS,
            "rounding: 4 eps per step",
            wrong=Wrong(
                "θ - η(∇ℓ - μθ), as printed",
                predicted=(1 + rate * decay) ** steps,
                erratum="E1",
            ),
        ),
        Check(
            "the same for AdamW, whose decay is decoupled",
            float(norms["adamw"][-1] / start.norm()),
            (1 - rate * decay) ** steps,
            4 * steps * EPS,
            "rounding: 4 eps per step",
            wrong=Wrong("no decay without a gradient", predicted=1.0),
        ),
        Check(
            "distance of the resting place to that of ridge",
            float((rest - ridge).norm()),
            0.0,
            left + 64 * EPS,
            "the rest of the start after all steps, and rounding",
            wrong=Wrong(
                "(1 - ημ)θ - ∇ℓ: the rate forgotten",
                measured=float((rateless - ridge).norm()),
                erratum="E1",
            ),
        ),
    ]
    rows = [
        [int(k), float(norms["sgd"][k]), float(predicted[k]), float(printed[k])]
        for k in (0, 10, steps)
    ]
    data = {"norms": norms, "predicted": predicted, "printed": printed}
    return Finding(checks, Table(["step", "norm", "(1 - ημ)^t", "as printed"], rows), data)


def still(name: str, start: Tensor, rate: float, decay: float, steps: int) -> Tensor:
    """Norms along an optimiser's path when the gradient of the loss is 0."""
    theta = nn.Parameter(start.clone())
    optimizer = create(name, [theta], lr=rate, weight_decay=decay)
    norms = [theta.detach().norm()]
    for _ in range(steps):
        theta.grad = torch.zeros_like(theta)
        optimizer.step()
        norms.append(theta.detach().norm())
    return torch.stack(norms)


def draw(paper: Figure, finding: Finding) -> None:
    """The norm against the steps."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL, THIRD

    data, axes = finding.data, paper.subplots()
    axes.plot(data["printed"], "--", lw=0.8, color=LINEAR, label="(1 + ημ)^t: the printed sign")
    axes.plot(data["predicted"], color=INK, label="(1 - ημ)^t")
    k = torch.arange(len(data["predicted"]))
    axes.plot(k[::2], data["norms"]["sgd"][::2], "o", color=MODEL, label="SGD")
    axes.plot(k[1::2], data["norms"]["adamw"][1::2], "s", color=THIRD, label="AdamW")
    axes.set(xlabel="steps with gradient 0", ylabel="norm of the weights")
    axes.set_title("weight decay shrinks the weights by 1 - ημ per step")
    axes.legend(loc="upper left")
    logarithmic(axes.yaxis)


claim = Claim(
    id="weight-decay-sign",
    title="Weight decay multiplies the weights by 1 - ημ",
    statement=(
        "Weight decay adds μθ to the gradient, so without any gradient the weights shrink by 1 - "
        "ημ per step; on ½|θ - c|² they come to rest at c / (1 + μ), as in ridge regression. Often "
        "printed with the opposite sign, under which the weights grow, or without η before the "
        "gradient, which moves the place of rest."
    ),
    formula=(
        r"\theta \leftarrow \theta - \eta (\nabla \ell + \mu \theta) = "
        r"(1 - \eta\mu)\,\theta - \eta \nabla \ell"
    ),
    sources=("M150", "E1"),
    measure=measure,
    reference=(
        "Loshchilov and Hutter (2019), Decoupled weight decay regularization. "
        "https://arxiv.org/abs/1711.05101"
    ),
    full={"steps": 400},
    errata=(
        Erratum(
            "E1",
            "θ - η(∇ℓ - μθ) = (1 - ημ)θ - ∇ℓ",
            "θ - η(∇ℓ + μθ) = (1 - ημ)θ - η∇ℓ",
        ),
    ),
    draw=draw,
)
