"""Pooling: the largest, the mean, the norm between them, and a random draw."""

import torch
from scipy import stats
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.layers import SpatialPyramidPool, StochasticPool2d

EXAMPLE = (
    (3.0, 3, 2, 1, 0),
    (0, 0, 1, 3, 1),
    (3, 1, 2, 2, 3),
    (2, 0, 0, 2, 2),
    (2, 0, 0, 0, 1),
)
POOLED = ((3.0, 3, 3), (3, 3, 3), (3, 2, 3))


def measure(generator: torch.Generator, *, draws: int = 4_000, largest: int = 40) -> Finding:
    """An example by hand, gradients by differences, norms, draws, and bins of every size."""
    x = torch.tensor(EXAMPLE, dtype=torch.float64)[None, None]
    a = torch.rand(1, 1, 8, 8, generator=generator, dtype=torch.float64)
    slope, nudged = gradients(a)
    norms = {p: nn.LPPool2d(p, 2)(a) for p in (1, 2, 4, 8, 16, 32, 64)}
    top, pixels = nn.MaxPool2d(2)(a), 4
    above = {p: float((norm / top).max()) for p, norm in norms.items()}
    pool = StochasticPool2d(2, generator=generator)
    drawn = pool(a.expand(draws, 1, 8, 8))  # (draws, 1, 4, 4)
    error = drawn.std(0) / draws**0.5
    quantile = float(stats.norm.ppf(1 - 0.0005 / error.numel()))
    missed = [sum(uncovered(n, bins) for n in range(bins, largest)) for bins in (2, 4)]
    checks = [
        Check(
            "largest difference from an example by hand",
            float((nn.MaxPool2d(3, 1)(x) - torch.tensor(POOLED)).abs().max()),
            0.0,
            0.0,
            "whole numbers",
            wrong=Wrong(
                "by the mean",
                measured=float((nn.AvgPool2d(3, 1)(x) - torch.tensor(POOLED)).abs().max()),
            ),
        ),
        Check(
            "largest difference of the gradient from 1 at the largest pixel, 0 elsewhere",
            float((slope - nudged).abs().max()),
            0.0,
            1e-6,
            "differences of 1e-7 that change no maximum; rounding 1e-16 / 1e-7",
            wrong=Wrong("shared by all pixels, as of the mean", measured=1 - 1 / pixels),
        ),
        Check(
            "largest ratio of the norm with p = 64 to the maximum",
            above[64],
            pixels ** (1 / 64),
            4 * EPS,
            "of 4 pixels at most 4^(1/p), which is reached if all are equal; rounding",
            "<=",
            wrong=Wrong("at p = 1, where it is the sum", measured=above[1]),
        ),
        Check(
            "largest difference of the draws' mean from its expectation, in standard errors",
            float(((drawn.mean(0) - pool.eval()(a[:1])[0]) / error).abs().max()),
            0.0,
            quantile,
            "99.9 % for the largest of 16 windows",
            wrong=Wrong(
                "every pixel as likely",
                measured=float(((drawn.mean(0) - nn.AvgPool2d(2)(a)[0]) / error).abs().max()),
            ),
        ),
        Check(
            f"numbers from 1, 4 and 16 bins, images of 1 to {largest} pixels, 3 channels",
            lengths(largest, generator),
            3 * (1 + 4 + 16),
            0,
            "whole numbers, the same for every size",
            wrong=Wrong("as many as pixels", predicted=3 * largest**2),
        ),
        Check(
            "pixels in no bin",
            sum(left_out(n, b) for b in (2, 4) for n in range(b, largest)),
            0,
            0,
            "whole numbers",
            wrong=Wrong("windows of ceil(n/b) at steps of floor(n/b)", measured=sum(missed)),
        ),
    ]
    table = Table(["p", "largest ratio to the maximum", "4^(1/p)"], [
        [p, ratio, pixels ** (1 / p)] for p, ratio in above.items()
    ])  # fmt: skip
    ratios = {p: (norm / top).flatten().numpy() for p, norm in norms.items()}
    return Finding(checks, table, {"ratios": ratios})


def gradients(a: Tensor) -> tuple[Tensor, Tensor]:
    """Of the sum of all maxima: by autograd, and by differences pixel by pixel."""
    leaf, pool, h = a.clone().requires_grad_(), nn.MaxPool2d(2), 1e-7
    (slope,) = torch.autograd.grad(pool(leaf).sum(), leaf)
    steps = h * torch.eye(a.numel(), dtype=a.dtype).reshape(-1, *a.shape[1:])
    moved = (pool(a + steps) - pool(a - steps)).flatten(1).sum(1) / (2 * h)
    return slope, moved.reshape(a.shape)


def lengths(largest: int, generator: torch.Generator) -> float:
    """The length that the pyramid gives for images of all sizes; nan if they differ."""
    pool = SpatialPyramidPool((1, 2, 4))
    found = {
        pool(torch.rand(1, 3, n, largest - n + 1, generator=generator)).shape[1]
        for n in range(1, largest + 1)
    }
    return float(found.pop()) if len(found) == 1 else float("nan")


def left_out(pixels: int, bins: int) -> int:
    """Pixels without influence on the bins of our pyramid, along one axis."""
    x = torch.zeros(1, 1, pixels, requires_grad=True)
    pooled = SpatialPyramidPool((bins,), reduce="mean")(x)
    (slope,) = torch.autograd.grad(pooled.sum(), x)
    return int((slope == 0).sum())


def uncovered(pixels: int, bins: int) -> int:
    """Pixels in none of the windows of ceil(n/b) pixels at steps of floor(n/b)."""
    window, step = -(-pixels // bins), pixels // bins
    seen = {i * step + j for i in range(bins) for j in range(window)}
    return len(set(range(pixels)) - seen)


def draw(paper: Figure, finding: Finding) -> None:
    """Norms over the maximum, from the sum to the maximum."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, ratios = paper.subplots(), finding.data["ratios"]
    for number, (p, values) in enumerate(ratios.items()):
        axes.plot([p] * len(values), values, "o", color=MODEL, ms=3, alpha=0.7,
                  label="windows of 4 random pixels" if number == 0 else None)  # fmt: skip
    axes.plot(
        list(ratios), [4 ** (1 / p) for p in ratios], color=LINEAR, lw=1, label="at most 4^(1/p)"
    )
    axes.axhline(1, color=INK, lw=1, ls="--", label="the maximum")
    logarithmic(axes.xaxis)
    axes.set(xlabel="p", ylabel="p-norm of a window / its maximum", ylim=(0.8, 4.2))
    axes.set_title("pooling by a p-norm goes from the sum to the maximum")
    axes.legend()


claim = Claim(
    id="pooling",
    title="Ways to pool",
    statement=(
        "Max pooling passes its gradient to the largest pixel alone. Pooling by a p-norm is the "
        "sum at p = 1 and tends to the maximum, from above. Stochastic pooling has the mean "
        "weighted by the activations as its expectation. A pyramid of bins gives the same number "
        "of outputs for every size of image; bins from floor(i n/b) to ceil((i+1) n/b) leave out "
        "no pixel."
    ),
    formula=(
        r"\max_i a_i \le \Bigl( \sum_{i=1}^n a_i^p \Bigr)^{1/p} \le n^{1/p} \max_i a_i, \qquad "
        r"E\, y = \sum_i \frac{a_i}{\sum_j a_j} a_i"
    ),
    sources=("M193", "M194", "M196", "M197", "M202"),
    measure=measure,
    reference=(
        "Zeiler and Fergus (2013), Stochastic pooling for regularization of deep convolutional "
        "neural networks. https://arxiv.org/abs/1301.3557"
    ),
    full={"draws": 40_000, "largest": 200},
    draw=draw,
)
