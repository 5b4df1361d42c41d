"""Small batches end in flatter minima; averages of weights in lower ones."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.optimization._curvature import power_iteration

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
    path, mean = train([w.repeat(groups, 1, 1) for w in start], x, y, batches, rate)

    every = torch.full_like(y, 1 / rows)
    begin = [torch.randn(w.shape, dtype=w.dtype, generator=generator) for w in mean]

    def sharpness(at: Sequence[Tensor]) -> Tensor:
        found = power_iteration(
            lambda w: losses(w, x, y, every).sum(), at, begin, 30, members=len(y)
        )
        return found[-1].view(groups, networks)

    heights = torch.stack([losses(w, x, y, every) for w in path]).view(-1, groups, networks)
    sharp, averaged = sharpness(path[-1]), sharpness(mean)
    # Curvature rises while training goes on, so that what trains slowly looks flat: compare the
    # full batch when its loss was that of the small one, and the average with weights it is of.
    matched = sharpness(earlier(path, heights[:, -1] <= heights[-1, 1]))[-1]
    late = range(len(path) // 2 + len(path) // 12, len(path), len(path) // 6)
    within = torch.stack([sharpness(path[k]) for k in late]).mean(0)
    lower = losses(mean, x, y, every).view(groups, networks) / heights[list(late)].mean(0)
    small, fair = sharp[1] - sharp[-1], sharp[1] - matched
    change = (averaged[1] / within[1]).log()
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
            "the same against the full batch when it had the same training loss",
            in_errors(fair),
            -4.0,
            0.0,
            f"4 standard errors of the difference over {networks} pairs",
            relation="<=",
            wrong=Wrong("small batches had only trained less", measured=0.0),
        ),
        Check(
            "log of the loss of averaged weights over that of the weights averaged, batches of "
            f"{sizes[1]} less full batch, in paired standard errors",
            in_errors(lower[1].log() - lower[-1].log()),
            -4.0,
            0.0,
            f"4 standard errors of the difference over {networks} pairs",
            relation="<=",
            wrong=Wrong("averaging does the same without noise", measured=0.0),
        ),
        Check(
            "share by which averaging changes the sharpness of the weights averaged",
            float(change.mean().abs()),
            0.01,
            float(4 * change.std() / networks**0.5),
            f"a bound of 1 %, and 4 standard errors over {networks} networks",
            relation="<=",
            wrong=Wrong(
                "averaging flattens as small batches do",
                measured=float((sharp[1] / sharp[-1]).log().mean().abs()),
            ),
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
        [size, *(float(column[k].mean()) for column in (sharp, within, averaged, heights[-1]))]
        for k, size in enumerate(sizes)
    ]
    table = Table(
        ["batch", "sharpness", "over the second half", "of its average", "training loss"], rows_
    )
    data = {"sizes": sizes, "sharp": sharp, "matched": matched, "averaged": averaged}
    return Finding(checks, table, data | {"within": within})


def earlier(path: list[list[Tensor]], reached: Tensor) -> list[Tensor]:
    """Weights whose last group is where each network was when first ``reached`` (T, S)."""
    first = torch.where(reached.any(0), reached.double().argmax(0), len(path) - 1)
    found = [w.clone() for w in path[-1]]
    for k, step in enumerate(first.tolist()):
        member = len(found[0]) - len(first) + k
        for new, old in zip(found, path[step], strict=True):
            new[member] = old[member]
    return found


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
) -> tuple[list[list[Tensor]], list[Tensor]]:
    """SGD on all networks at once: every tenth weights, and the average of the second half."""
    weights = [w.clone().requires_grad_() for w in weights]
    means, count, path = [torch.zeros_like(w) for w in weights], 0, []
    for step, share in enumerate(batches, 1):
        gradients = torch.autograd.grad(losses(weights, x, y, share).sum(), weights)
        with torch.no_grad():
            torch._foreach_sub_(weights, gradients, alpha=rate)
            now = [w.detach() for w in weights]
            if 2 * step > len(batches):
                count += 1
                torch._foreach_lerp_(means, now, 1 / count)
            if step % 10 == 0:
                path.append([w.clone() for w in now])
    return path, [m.detach() for m in means]


def draw(paper: Figure, finding: Finding) -> None:
    """Sharpness against the size of the batch, with standard errors."""
    from ansatz.figures.style import INK, LINEAR, MODEL, THIRD

    data = finding.data
    sizes, count = data["sizes"], data["sharp"].shape[1]
    axes = paper.subplots()
    for name, colour, mark, shift, label in (
        ("sharp", LINEAR, "o", -0.12, "last weights"),
        ("within", INK, "D", 0.0, "mean over the second half"),
        ("averaged", MODEL, "s", 0.12, "weights averaged over it"),
    ):
        value, at = data[name], torch.arange(len(sizes)) + shift
        error = value.std(1) / count**0.5
        axes.errorbar(at, value.mean(1), error, fmt=mark, color=colour, capsize=3, label=label)
    value = data["matched"]
    axes.errorbar(
        len(sizes) - 1.24,
        value.mean(),
        value.std() / count**0.5,
        fmt="^",
        color=THIRD,
        capsize=3,
        label=f"all rows, at the loss of batches of {sizes[1]}",
    )
    axes.set_xticks(range(len(sizes)), [f"{s}" for s in sizes[:-1]] + [f"{sizes[-1]}: all rows"])
    axes.set(xlabel="rows in a batch", ylabel="largest eigenvalue of the Hessian")
    axes.set_title(f"small batches end flatter ({count} networks, ± 1 standard error)")
    axes.legend(loc="upper left")


claim = Claim(
    id="flat-minima",
    title="Small batches find flatter minima; averaging finds lower ones",
    statement=(
        "Networks trained from the same start on the same rows at the same rate end at a smaller "
        "largest curvature when their batches are small, also when compared at equal training "
        "loss. The average of late weights has a lower loss than the weights that it averages, but "
        "the same curvature to within 1 %. That it is flatter than the last weights is mostly "
        "because curvature rises during training, up to 2 / η, also without any noise."
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
