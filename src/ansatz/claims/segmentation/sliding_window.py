"""A classifier slid over an image is a fully convolutional network."""

import torch
from torch import Tensor
from torch.nn.functional import conv2d, linear, max_pool2d

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.layers import mirror_pad
from ansatz.networks import SlidingWindow, summary
from ansatz.spec import InputSpec

WIDTHS, KERNEL, LAST, HIDDEN = (4, 6), 4, 3, 8


def measure(
    generator: torch.Generator, *, size: int = 12, sizes: tuple[int, ...] = (1, 8, 32, 96)
) -> Finding:
    """Outputs of all pixels at once beside those of their windows one by one; the work of both."""
    network = build(generator).double()
    x = torch.randn(1, 1, size, size, generator=generator, dtype=torch.float64)
    windows = patches(x, network.window)
    with torch.no_grad():
        at_once = network(x).flatten(2)[0].T  # (pixels, 2)
        one_by_one = classify(network, windows)
        zeros = classify(network, patches(x, network.window, mirrored=False))
    scale = float(at_once.abs().max())
    tolerance = 4 * EPS * network.window**2 * max(scale, 1.0)
    work = [[n, summary(network, InputSpec.grid(1, n, n)).multiply_adds / n**2] for n in sizes]
    window = window_work()
    counted = [[n, each, window, all_work(n) / n**2] for n, each in work]
    checks = [
        Check(
            "largest difference of the outputs at once from those one by one",
            float((at_once - one_by_one).abs().max()),
            0.0,
            tolerance,
            "rounding: 4 eps times the pixels of a window",
            wrong=Wrong(
                "with zeros beyond the border", measured=float((at_once - zeros).abs().max())
            ),
        ),
        Check(
            "the same, of the windows that the network itself classifies",
            float((at_once - network.classify(windows).detach()).abs().max()),
            0.0,
            tolerance,
            "rounding: 4 eps times the pixels of a window",
            wrong=Wrong(
                "neighbouring pixels", measured=float((at_once[1:] - one_by_one[:-1]).abs().max())
            ),
        ),
        Check(
            f"multiply-adds for {sizes[-1]} x {sizes[-1]} pixels",
            work[-1][1] * sizes[-1] ** 2,
            all_work(sizes[-1]),
            0,
            "whole numbers: each layer once at every place that some window needs",
            wrong=Wrong("window by window", predicted=window * sizes[-1] ** 2),
        ),
    ]
    table = Table(
        ["pixels along an axis", "at once, per pixel", "one by one", "counted by hand"], counted
    )
    return Finding(checks, table, {"work": counted})


def build(generator: torch.Generator) -> SlidingWindow:
    """A small classifier of the pixel in the middle."""
    return SlidingWindow(
        1, 2, widths=WIDTHS, kernel=KERNEL, last=LAST, hidden=HIDDEN, generator=generator
    )


def patches(x: Tensor, window: int, *, mirrored: bool = True) -> Tensor:
    """The window around every pixel, cut out one by one."""
    reach = window // 2
    wide = (
        mirror_pad(x, ((reach, reach),) * 2)
        if mirrored
        else torch.nn.functional.pad(x, (reach,) * 4)
    )
    rows, columns = x.shape[2:]
    return torch.stack([
        wide[0, :, i : i + window, j : j + window] for i in range(rows) for j in range(columns)
    ])  # fmt: skip


def classify(network: SlidingWindow, windows: Tensor) -> Tensor:
    """The classifier written out: convolutions, pools of stride 2, and dense layers."""
    h = windows
    for layer in network.convolutions:
        h = max_pool2d(
            torch.relu(conv2d(h, layer.get_parameter("weight"), layer.get_parameter("bias"))), 2
        )
    for layer in (network.hidden, network.output):
        weight, bias = layer.get_parameter("weight"), layer.get_parameter("bias")
        h = linear(h.flatten(1), weight.flatten(1), bias)
        h = torch.relu(h) if layer is network.hidden else h
    return h


def window_work() -> int:
    """Multiply-adds of one window: convolutions at every place, pools that halve the grid."""
    side, sides, total = LAST, list[int](), 0
    for _ in WIDTHS:
        sides.append(2 * side)  # places of the convolution before the pool
        side = 2 * side + KERNEL - 1
    for before, after, places in zip((1, *WIDTHS), WIDTHS, reversed(sides), strict=False):
        total += places**2 * KERNEL**2 * before * after
    return total + LAST**2 * WIDTHS[-1] * HIDDEN + HIDDEN * 2


def all_work(n: float) -> float:
    """Multiply-adds of n x n pixels at once: the mirrored image shrinks layer by layer."""
    side = LAST
    for _ in WIDTHS:
        side = 2 * side + KERNEL - 1
    places, total = n + side - 1, 0
    for stage, (before, after) in enumerate(zip((1, *WIDTHS), WIDTHS, strict=False)):
        places -= 2**stage * (KERNEL - 1)
        total += places**2 * KERNEL**2 * before * after
        places -= 2**stage
    return total + n**2 * (LAST**2 * WIDTHS[-1] * HIDDEN + HIDDEN * 2)


def draw(paper: Figure, finding: Finding) -> None:
    """Work per pixel over the size of the image."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes = paper.subplots()
    sizes, measured, window, _ = zip(*finding.data["work"], strict=True)
    line = [2 ** (k / 8) for k in range(int(8 * 6.6) + 1)]
    axes.plot(line, [all_work(n) / n**2 for n in line], color=INK, lw=1, label="counted by hand")
    axes.plot(sizes, measured, "o", color=MODEL, label="all pixels at once, measured")
    axes.plot(sizes, window, "--", color=LINEAR, label="window by window")
    logarithmic(axes.xaxis, axes.yaxis)
    axes.set(xlabel="pixels along an axis of the image", ylabel="multiply-adds per pixel")
    axes.set_title("the same outputs, with the work of neighbours shared")
    axes.legend()


claim = Claim(
    id="sliding-window",
    title="A sliding window is a fully convolutional network",
    statement=(
        "A convolutional classifier of the centre pixel, run on the window around every pixel, "
        "gives the same numbers as one fully convolutional pass over the image: pools of stride 1, "
        "later layers with pixels 2, 4, ... apart, dense layers as convolutions. The pass shares "
        "the work of neighbours: on large images each layer is computed once per pixel."
    ),
    formula=(
        r"f(x)_i = c(x_{i-r}, \dots, x_{i+r}) \;\forall i, \qquad "
        r"\frac{\text{work}}{n^2} \to \sum_l k_l^2 C_{l-1} C_l \quad (n \to \infty)"
    ),
    sources=("M232", "M233", "M234"),
    measure=measure,
    reference=(
        "Giusti et al. (2013), Fast image scanning with deep max-pooling convolutional neural "
        "networks. https://arxiv.org/abs/1302.1700"
    ),
    full={"size": 40, "sizes": (1, 8, 32, 96, 256)},
    draw=draw,
)
