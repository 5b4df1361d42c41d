"""AdaGrad's steps shrink as 1/√k because it accumulates; without that it is sign descent."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.optim import SignDescent

Make = Callable[[list[nn.Parameter]], torch.optim.Optimizer]


def measure(generator: torch.Generator, *, rate: float = 0.1, steps: int = 60) -> Finding:
    """Steps under constant gradients of very different sizes, and under random ones."""
    sizes = torch.logspace(-4, 4, 9, dtype=torch.float64)
    signs = 1 - 2 * torch.randint(2, (9,), generator=generator).double()
    constant = (sizes * signs).expand(steps, 9)
    accumulated = moves(lambda p: torch.optim.Adagrad(p, lr=rate, eps=0), constant)
    k = torch.arange(1, steps + 1, dtype=torch.float64).unsqueeze(1)
    predicted = -rate * signs / k.sqrt()
    printed = moves(lambda p: SignDescent(p, lr=rate), constant)
    rounding = 16 * EPS * float(2 * rate * steps**0.5)

    random = torch.randn(steps, 9, dtype=torch.float64, generator=generator) * sizes
    ours = -rate * random / (random**2).cumsum(0).sqrt()
    torchs = moves(lambda p: torch.optim.Adagrad(p, lr=rate, eps=0), random)
    signed = moves(lambda p: SignDescent(p, lr=rate), random)
    checks = [
        Check(
            f"step {steps} under a constant gradient, in units of the rate",
            float((accumulated[-1] / (-rate * signs)).mean()),
            steps**-0.5,
            rounding / rate,
            "rounding of positions that grow as 2 rate √k",
            wrong=Wrong(
                "v = g² without accumulation",
                measured=float((printed[-1] / (-rate * signs)).mean()),
                erratum="E29",
            ),
        ),
        Check(
            "largest gap of a step to rate / √k, over gradients from 1e-4 to 1e4",
            float((accumulated - predicted).abs().max()),
            0.0,
            rounding,
            "rounding of positions that grow as 2 rate √k",
            wrong=Wrong(
                "rate / k", measured=float((accumulated - predicted / k.sqrt()).abs().max())
            ),
        ),
        Check(
            "largest gap to -rate g / √(Σ g²) under random gradients",
            float((torchs - ours).abs().max()),
            0.0,
            rounding,
            "rounding of positions within 2 rate √k",
        ),
        Check(
            "largest gap of |step| to the rate when v = g²: sign descent",
            float((signed.abs() - rate).abs().max()),
            0.0,
            16 * EPS * rate * steps,
            "rounding of positions within rate · k",
            wrong=Wrong("it were AdaGrad", measured=float((torchs.abs() - rate).abs().max())),
        ),
    ]
    rows = [[int(i), float(accumulated[i - 1, 0].abs()), rate / i**0.5] for i in (1, 4, 16, steps)]
    data = {"adagrad": accumulated[:, 0].abs(), "sign": printed[:, 0].abs(), "rate": rate}
    return Finding(checks, Table(["k", "|step|", "rate / √k"], rows), data)


def moves(make: Make, gradients: Tensor) -> Tensor:
    """The steps ``(T, D)`` of an optimiser that is shown ``gradients``, from 0."""
    theta = nn.Parameter(torch.zeros_like(gradients[0]))
    optimizer, places = make([theta]), [torch.zeros_like(gradients[0])]
    for gradient in gradients:
        theta.grad = gradient.clone()
        optimizer.step()
        places.append(theta.detach().clone())
    return torch.stack(places).diff(dim=0)


def draw(paper: Figure, finding: Finding) -> None:
    """Steps under a constant gradient."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL

    data, axes = finding.data, paper.subplots()
    k = torch.arange(1, len(data["adagrad"]) + 1)
    few = sorted({round(1.3**i) - 1 for i in range(99) if 1.3**i < len(k)})
    axes.plot(k, data["rate"] / k.sqrt(), color=INK, label="α / √k")
    axes.plot(k[few], data["adagrad"][few], "o", color=MODEL, label="AdaGrad: G ← G + g²")
    axes.plot(k[few], data["sign"][few], "s--", lw=0.8, color=LINEAR, label="v = g²: sign descent")
    axes.set(xlabel="step k under a constant gradient", ylabel="length of the step")
    axes.set_title("AdaGrad's steps shrink because it adds up squared gradients")
    axes.legend(loc="lower left")
    logarithmic(axes.xaxis, axes.yaxis)


claim = Claim(
    id="adagrad",
    title="AdaGrad accumulates; its k-th step is α / √k",
    statement=(
        "AdaGrad divides the gradient by the root of the sum of all its squares: under a constant "
        "gradient of any size the k-th step is α / √k. A common slip prints v = g² without the "
        "sum; that is sign descent, where each coordinate moves by ±α for ever."
    ),
    formula=(
        r"G \leftarrow G + g^2, \quad \theta \leftarrow \theta - \alpha \frac{g}{\sqrt G}, \qquad "
        r"g \text{ constant} \;\Rightarrow\; |\Delta\theta_k| = \frac{\alpha}{\sqrt k}"
    ),
    sources=("M132", "M133", "E29"),
    measure=measure,
    reference=(
        "Duchi, Hazan and Singer (2011), Adaptive subgradient methods for online learning and "
        "stochastic optimization."
    ),
    full={"steps": 2000},
    errata=(Erratum("E29", "AdaGrad: v = g²", "G ← G + g²; v = g² is sign descent"),),
    draw=draw,
)
