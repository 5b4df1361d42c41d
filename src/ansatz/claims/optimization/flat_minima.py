"""Small batches and averages of weights end in flatter minima."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.optimization._curvature import power_iteration

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEATURES = 5


def measure(
    generator: torch.Generator,
    *,
    networks: int = 16,
    rows: int = 32,
    width: int = 20,
    steps: int = 800,
    rate: float = 0.2,
) -> Finding:
    """The largest curvature where SGD ends, for four sizes of its batch and the same starts."""
    sizes = (2, 4, 8, rows)
    groups = len(sizes)
    x, y = noisy_rows(networks, rows, generator)
    start = weights_of(networks, width, generator)
    batches = torch.cat([draws(networks, rows, size, steps, generator) for size in sizes], 1)
    x, y = x.repeat(groups, 1, 1), y.repeat(groups, 1)  # (G S, N, D), (G S, N)
    last, mean = train([w.repeat(groups, 1, 1) for w in start], x, y, batches, rate)

    every = torch.full_like(y, 1 / rows)
    begin = [torch.randn(w.shape, dtype=w.dtype, generator=generator) for w in last]

    def sharpness(at: Sequence[Tensor]) -> Tensor:
        found = power_iteration(
            lambda w: losses(w, x, y, every).sum(), at, begin, 40, members=len(y)
        )
        return found[-1].view(groups, networks)

    sharp, averaged = sharpness(last), sharpness(mean)
    fits = losses(last, x, y, every).view(groups, networks)
    small, average = sharp[1] - sharp[-1], averaged[2] - sharp[2]
    checks = [
        Check(
            f"change of sharpness with batches of {sizes[1]}, in paired standard errors",
            in_errors(small),
            -4.0,
            0.0,
            f"4 standard errors of the difference over {networks} pairs of equal starts and data",
            relation="<=",
            wrong=Wrong("large batches end flatter", measured=-in_errors(small)),
        ),
        Check(
            f"the same by averaging the second half of the way, batches of {sizes[2]}",
            in_errors(average),
            -4.0,
            0.0,
            f"4 standard errors of the difference over {networks} networks",
            relation="<=",
            wrong=Wrong("the average were no flatter", measured=0.0),
        ),
        Check(
            "largest sharpness at the end of the full batch, over the 2 / η it can bear",
            float(sharp[-1].max()) * rate / 2,
            1.0,
            0.1,
            "10 % beyond, the error along the sharpest direction would grow 1.2-fold at every step",
            relation="<=",
            wrong=Wrong("1 / η", predicted=0.5),
        ),
    ]
    rows_ = [
        [size, float(s.mean()), float(a.mean()), float(f.mean())]
        for size, s, a, f in zip(sizes, sharp, averaged, fits, strict=True)
    ]
    table = Table(["batch", "sharpness", "of the average", "training loss"], rows_)
    return Finding(checks, table, {"sizes": sizes, "sharp": sharp, "averaged": averaged})


def in_errors(difference: Tensor) -> float:
    """The mean in units of its standard error."""
    return float(difference.mean() / (difference.std() / len(difference) ** 0.5))


def noisy_rows(networks: int, rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Data of its own for each network: a smooth function and noise."""
    x = torch.randn(networks, rows, FEATURES, dtype=torch.float64, generator=generator)
    noise = torch.randn(networks, rows, dtype=torch.float64, generator=generator)
    return x, torch.sin(2 * x[..., 0]) + 0.5 * x[..., 1] * x[..., 2] + 0.5 * noise


def weights_of(networks: int, width: int, generator: torch.Generator) -> list[Tensor]:
    """A hidden layer of tanh units with LeCun's weights, its biases, and the last map."""
    shapes = ((networks, FEATURES, width), (networks, 1, width), (networks, width, 1))
    scales = (FEATURES**-0.5, 0.0, width**-0.5)
    return [
        scale * torch.randn(shape, dtype=torch.float64, generator=generator)
        for shape, scale in zip(shapes, scales, strict=True)
    ]


def losses(weights: Sequence[Tensor], x: Tensor, y: Tensor, share: Tensor) -> Tensor:
    """Half the mean squared error of each network, rows weighted by ``share``."""
    W, b, v = weights
    fitted = (torch.tanh(x @ W + b) @ v).squeeze(-1)
    return (0.5 * share * (fitted - y) ** 2).sum(1)


def draws(networks: int, rows: int, size: int, steps: int, generator: torch.Generator) -> Tensor:
    """The weight of each row in each batch: how often it was drawn over ``size``, (T, S, N)."""
    if size == rows:
        return torch.full((steps, networks, rows), 1 / rows, dtype=torch.float64)
    chosen = torch.randint(rows, (steps, networks, size), generator=generator)
    counts = torch.zeros(steps, networks, rows, dtype=torch.float64)
    return counts.scatter_add_(2, chosen, torch.full(chosen.shape, 1 / size, dtype=counts.dtype))


def train(
    weights: list[Tensor], x: Tensor, y: Tensor, batches: Tensor, rate: float
) -> tuple[list[Tensor], list[Tensor]]:
    """SGD on all networks at once: the last weights, and the average of the second half."""
    weights = [w.clone().requires_grad_() for w in weights]
    means, count = [torch.zeros_like(w) for w in weights], 0
    for step, share in enumerate(batches):
        gradients = torch.autograd.grad(losses(weights, x, y, share).sum(), weights)
        with torch.no_grad():
            torch._foreach_sub_(weights, gradients, alpha=rate)
            if 2 * step >= len(batches):
                count += 1
                torch._foreach_lerp_(means, [w.detach() for w in weights], 1 / count)
    return [w.detach() for w in weights], [m.detach() for m in means]


def draw(paper: "Figure", finding: Finding) -> None:
    """Sharpness against the size of the batch, with standard errors."""
    from ansatz.report.style import LINEAR, MODEL

    data = finding.data
    sizes, count = data["sizes"], data["sharp"].shape[1]
    axes = paper.subplots()
    for name, colour, shift, label in (
        ("sharp", LINEAR, -0.06, "last weights"),
        ("averaged", MODEL, 0.06, "average of the second half"),
    ):
        value, at = data[name], torch.arange(len(sizes)) + shift
        error = value.std(1) / count**0.5
        axes.errorbar(at, value.mean(1), error, fmt="o", color=colour, capsize=3, label=label)
    axes.set_xticks(range(len(sizes)), [f"{s}" for s in sizes[:-1]] + [f"{sizes[-1]}: all rows"])
    axes.set(xlabel="rows in a batch", ylabel="largest eigenvalue of the Hessian")
    axes.set_title(
        f"small batches and averaging end flatter ({count} networks, ± 1 standard error)"
    )
    axes.legend(loc="upper left")


claim = Claim(
    id="flat-minima",
    title="Small batches and averaged weights find flatter minima",
    statement=(
        "Networks trained from the same start on the same rows at the same rate end at a smaller "
        "largest curvature when their batches are small, and the average of late weights is "
        "flatter than the last ones. With all rows in the batch, the curvature can grow to 2 / η."
    ),
    formula=(
        r"\lambda_{\max}(\nabla^2 h)\big|_{B = 4} < \lambda_{\max}(\nabla^2 h)\big|_{B = N} "
        r"\lesssim \frac{2}{\eta}"
    ),
    sources=("M139",),
    measure=measure,
    reference=(
        "Keskar et al. (2017), On large-batch training for deep learning. "
        "https://arxiv.org/abs/1609.04836; Izmailov et al. (2018), Averaging weights leads to "
        "wider optima and better generalization. https://arxiv.org/abs/1803.05407; Cohen et al. "
        "(2021), Gradient descent on neural networks typically occurs at the edge of stability. "
        "https://arxiv.org/abs/2103.00065"
    ),
    full={"networks": 64, "steps": 4000},
    draw=draw,
)
