"""Lengths and angles: the cosine theorem, Cauchy-Schwarz, and the chain of norms."""

import math

import torch
from torch import Tensor
from torch.linalg import vector_norm

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import INK, LINEAR, MODEL, THIRD


def measure(
    generator: torch.Generator, *, dims: tuple[int, ...] = (1, 2, 5, 20, 100), pairs: int = 200
) -> Finding:
    """Random pairs of vectors of each length, with the extreme ones among them."""
    clouds = {d: vectors(d, pairs, generator) for d in dims}
    chains = {d: chain(x) for d, x in clouds.items()}
    wide = clouds[max(dims)]
    x, y = wide[:pairs], wide[-pairs:]
    inner, size = (x * y).sum(-1), (x.norm(dim=-1) * y.norm(dim=-1))
    squares = vector_norm(x - y, dim=-1) ** 2
    sums = x.square().sum(-1) + y.square().sum(-1)
    scale = EPS * (sums + 2 * size)
    angle, found = angles(max(dims), pairs, generator)
    parallel = (x * (-3 * x)).sum(-1).abs() / (x.norm(dim=-1) * (-3 * x).norm(dim=-1))
    sharp = (inner.abs() / size).max()
    loose = x.norm(dim=-1) / vector_norm(x, math.inf, dim=-1)  # of the parallel pairs
    d = max(dims)
    checks = [
        Check(
            "error of the cosine theorem, in units of eps (|x| + |y|)²",
            float(((squares - (sums - 2 * inner)) / scale).abs().max()),
            0.0,
            d + 4,
            f"sums of {d} products round at most {d} times, the rest 4 times",
            wrong=Wrong(
                "plus twice the inner product",
                measured=float(((squares - (sums + 2 * inner)) / scale).abs().max()),
            ),
        ),
        Check(
            "error of the angle between a vector and its rotation (radians)",
            float((found - angle).abs().max()),
            0.0,
            float(d * EPS / angle.sin().min()),
            f"a cosine with an error of {d} eps has an angle with that error over its sine",
        ),
        Check(
            "largest |<x, y>| / (|x| |y|), parallel pairs among them",
            max(float(sharp), float(parallel.max())),
            1.0,
            d * EPS,
            f"rounding: {d} eps",
            relation="<=",
            wrong=Wrong("the maximum norm in place of |x|", measured=float(loose.max())),
        ),
        Check(
            "largest ratio in the chain of norms",
            max(float(ratios.max()) for ratios in chains.values()),
            1.0,
            d * EPS,
            f"rounding: {d} eps",
            relation="<=",
            wrong=Wrong(
                "the cube root of d in place of the square root",
                measured=float(chains[d][3].max()) * d ** (1 / 2 - 1 / 3),
            ),
        ),
        Check(
            "how nearly each of the four bounds is reached",
            min(float(ratios.amax(1).min()) for ratios in chains.values()),
            1.0,
            d * EPS,
            f"equality for a constant vector or a single entry; rounding: {d} eps",
        ),
    ]
    rows = [[d, *(float(r) for r in ratios.amax(1))] for d, ratios in chains.items()]
    data = {d: (x.abs().sum(-1) / x.norm(dim=-1)).tolist() for d, x in clouds.items()}
    head = ["d", "|x|₂ / √d |x|∞", "|x|∞ / |x|₂", "|x|₂ / |x|₁", "|x|₁ / √d |x|₂"]
    return Finding(checks, Table(head, rows), {"ratio": data})


def vectors(d: int, count: int, generator: torch.Generator) -> Tensor:
    """Normal and sparse vectors, a constant one and one with a single entry: (2 count + 2, d)."""
    dense = torch.randn(count, d, generator=generator, dtype=torch.float64)
    sparse = torch.randn(count, d, generator=generator, dtype=torch.float64) ** 5
    single = torch.zeros(1, d, dtype=torch.float64)
    single[0, -1] = -2.0
    return torch.cat([dense, torch.full((1, d), 0.7, dtype=torch.float64), single, sparse])


def chain(x: Tensor) -> Tensor:
    """The four ratios that are at most 1, (4, N)."""
    top, two, one = (vector_norm(x, p, dim=-1) for p in (math.inf, 2, 1))
    root = math.sqrt(x.shape[-1])
    return torch.stack([two / root / top, top / two, two / one, one / root / two])


def angles(d: int, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Angles by which vectors are rotated in random planes, and those that the cosine gives."""
    angle = 0.1 + (math.pi - 0.2) * torch.rand(count, generator=generator, dtype=torch.float64)
    frame = torch.randn(count, d, 2, generator=generator, dtype=torch.float64)
    first, second = torch.linalg.qr(frame)[0].unbind(-1)  # orthonormal
    x = 3 * first
    y = 0.2 * (angle.cos()[:, None] * first + angle.sin()[:, None] * second)
    return angle, torch.acos((x * y).sum(-1) / (x.norm(dim=-1) * y.norm(dim=-1)))


def draw(paper: Figure, finding: Finding) -> None:
    """The ratio of the sum norm to the Euclidean one between its two bounds."""
    axes = paper.subplots()
    ratio = finding.data["ratio"]
    dims = list(ratio)
    for i, (d, values) in enumerate(ratio.items()):
        half = len(values) // 2
        for part, colour, mark, name in (
            (values[: half - 1], MODEL, "o", "normal entries"),
            (values[half + 1 :], THIRD, "s", "few large entries"),
        ):
            near = [d * (0.97 if mark == "o" else 1.03)] * len(part)
            axes.plot(near, part, mark, color=colour, alpha=0.35, label=name if i == 0 else None)
    axes.plot(dims, [math.sqrt(d) for d in dims], color=LINEAR, label="√d: all entries alike")
    axes.plot(dims, [1.0] * len(dims), color=INK, label="1: a single entry")
    axes.plot(dims, [d ** (1 / 3) for d in dims], "--", color=LINEAR, lw=0.8, label="d^(1/3)")
    axes.set(xlabel="length d of the vector", ylabel="|x|₁ / |x|₂")
    logarithmic(axes.xaxis, axes.yaxis)
    axes.set_title("the sum of absolute values lies between |x|₂ and √d |x|₂")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="norms-and-angles",
    title="The cosine theorem and the chain of norms",
    statement=(
        "The squared distance of two vectors is the sum of their squared lengths minus twice their "
        "inner product, which is at most the product of the lengths; the quotient is the cosine of "
        "the angle. Maximum norm, Euclidean norm and sum norm differ by at most the root of d."
    ),
    formula=(
        r"\|x - y\|^2 = \|x\|^2 + \|y\|^2 - 2 \langle x, y \rangle, \qquad "
        r"|\langle x, y \rangle| \le \|x\| \|y\|, \qquad "
        r"\tfrac{1}{\sqrt d} \|x\|_2 \le \|x\|_\infty \le \|x\|_2 \le \|x\|_1 \le \sqrt d \|x\|_2"
    ),
    sources=("M021", "M022"),
    measure=measure,
    reference="Horn and Johnson (2013), Matrix Analysis, sections 0.6 and 5.4.",
    full={"dims": (1, 2, 5, 20, 100, 1000), "pairs": 2000},
    draw=draw,
)
