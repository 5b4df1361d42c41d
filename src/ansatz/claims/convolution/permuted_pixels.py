"""A fixed shuffle of the pixels is nothing to a dense network, and blinds a convolution."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ansatz.claims import Check, Claim, Finding, Table, Wrong

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PIXELS, TAPS = 32, 5
Network = Callable[[list[Tensor], Tensor], Tensor]


def measure(
    generator: torch.Generator, *, rows: int = 200, fresh: int = 1_000, steps: int = 60
) -> Finding:
    """Which of two shapes stands somewhere in a noisy line, with pixels in order and shuffled."""

    def normal(*shape: int) -> Tensor:
        scale = shape[0] ** -0.5 if len(shape) > 1 else 0.0
        return scale * torch.randn(*shape, generator=generator, dtype=torch.float64)

    (x, y), (new, truth) = lines(rows, generator), lines(fresh, generator)
    order = torch.randperm(PIXELS, generator=generator)
    wide = [normal(PIXELS, 64), normal(64), normal(64, 2), normal(2)]
    kernels = [normal(TAPS, 8), normal(8), normal(8, 2), normal(2)]
    moved = [wide[0][order], *wide[1:]]  # the same network, its first weights shuffled alike
    outputs = {}
    for name, network, start, shuffled in (
        ("dense", dense, wide, moved),
        ("convolution", convolution, kernels, kernels),
    ):
        plain = train(network, start, x, y, steps)
        mixed = train(network, shuffled, x[:, order], y, steps)
        outputs[name] = network(plain, new), network(mixed, new[:, order])
    right = {
        name: [float((out.argmax(1) == truth).double().mean()) for out in pair]
        for name, pair in outputs.items()
    }
    error = (2 * 0.25 / fresh) ** 0.5
    gap = float((outputs["dense"][0] - outputs["dense"][1]).abs().max())
    size = float(outputs["dense"][0].abs().max())
    layer = nn.Linear(224 * 224 * 3, 224 * 224 * 3, bias=False, device="meta")
    checks = [
        Check(
            "largest difference of the dense network's outputs",
            gap,
            0.0,
            2.0**-52 * PIXELS * steps**2 * size,
            "rounding: n eps for sums in another order at each step, carried on to all later steps",
            wrong=Wrong(
                "as of the convolutional network",
                measured=float((outputs["convolution"][0] - outputs["convolution"][1]).abs().max()),
            ),
        ),
        Check(
            "accuracy that the convolution loses",
            right["convolution"][0] - right["convolution"][1],
            4 * error,
            0.0,
            "at least 4 standard errors of two shares",
            ">=",
            Wrong("as much as the dense network", measured=right["dense"][0] - right["dense"][1]),
        ),
        Check(
            "weights of a dense layer from a 224 x 224 x 3 image to itself",
            layer.weight.numel(),
            22_658_678_784,
            0,
            "whole numbers: 150,528²",
            wrong=Wrong("150,528", predicted=150_528),
        ),
    ]
    table = Table(["network", "pixels in order", "shuffled"], [
        [name, *values] for name, values in right.items()
    ])  # fmt: skip
    return Finding(checks, table, {"right": right, "error": (0.25 / fresh) ** 0.5})


def lines(rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Noise, and somewhere in it a bump or the same bump with its middle turned over."""
    x = 0.3 * torch.randn(rows, PIXELS, generator=generator, dtype=torch.float64)
    y = torch.randint(2, (rows,), generator=generator)
    place = torch.randint(PIXELS - TAPS + 1, (rows,), generator=generator)
    shape = torch.tensor([[1.0, 1, 1, 1, 1], [1, 1, -1, 1, 1]], dtype=torch.float64)
    index = place[:, None] + torch.arange(TAPS)
    return x.scatter_add(1, index, shape[y]), y


def dense(weights: list[Tensor], x: Tensor) -> Tensor:
    """One hidden layer."""
    W, b, V, c = weights
    return torch.relu(x @ W + b) @ V + c


def convolution(weights: list[Tensor], x: Tensor) -> Tensor:
    """Kernels moved along the line, the largest response of each, a linear layer."""
    W, b, V, c = weights
    return torch.relu(x.unfold(1, TAPS, 1) @ W + b).amax(1) @ V + c


def train(network: Network, start: list[Tensor], x: Tensor, y: Tensor, steps: int) -> list[Tensor]:
    """Gradient descent with momentum 0.9 on the whole sample."""
    weights = [each.clone() for each in start]
    speed = [torch.zeros_like(each) for each in start]
    for _ in range(steps):
        weights = [each.detach().requires_grad_() for each in weights]
        slopes = torch.autograd.grad(cross_entropy(network(weights, x), y), weights)
        speed = [0.9 * v + g for v, g in zip(speed, slopes, strict=True)]
        weights = [each - 0.1 * v for each, v in zip(weights, speed, strict=True)]
    return [each.detach() for each in weights]


def draw(paper: "Figure", finding: Finding) -> None:
    """Accuracies of both, in order and shuffled."""
    from ansatz.report.style import INK, LINEAR, MODEL

    axes, right = paper.subplots(), finding.data["right"]
    error = 2 * finding.data["error"]
    for name, colour, shift in (("convolution", MODEL, -0.03), ("dense", LINEAR, 0.03)):
        axes.errorbar([shift, 1 + shift], right[name], error, fmt="o-", color=colour, lw=1, ms=6,
                      label=f"{name}, ± 2 standard errors")  # fmt: skip
    axes.axhline(0.5, color=INK, lw=0.7, ls=":", label="guessing")
    axes.set_xticks([0, 1], ["pixels in order", "pixels shuffled"])
    axes.set(ylabel="accuracy on new lines", xlim=(-0.3, 1.3), ylim=(0.4, 1.05))
    axes.set_title(
        "shuffling the pixels costs a convolution its advantage, a dense network nothing"
    )
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="permuted-pixels",
    title="A fixed shuffle of the pixels",
    statement=(
        "A dense network trained on pixels in a fixed shuffled order, from weights shuffled alike, "
        "gives the same outputs; a convolutional one loses accuracy, since neighbours tell it "
        "nothing any more. Not knowing neighbours is dear: a dense layer from a 224 x 224 x 3 "
        "image to itself has 150,528² weights."
    ),
    formula=r"f_{WP^\top}(Px) = f_W(x), \qquad (224 \cdot 224 \cdot 3)^2 = 22{,}658{,}678{,}784",
    sources=("M204", "M205"),
    measure=measure,
    reference="Goodfellow et al. (2016), Deep Learning, section 9.2.",
    full={"rows": 1_000, "fresh": 10_000, "steps": 300},
    draw=draw,
)
