"""Rotations and flips undo each other, and training on all of them makes the fit symmetric."""

from collections.abc import Iterator

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.data.augmentation import Flip
from ansatz.data.augmentation.colors import blended, gray
from ansatz.data.augmentation.moves import rotate_quarters as quarter_turned


def measure(generator: torch.Generator, *, side: int = 6, rows: int = 80) -> Finding:
    """Images rotated there and back, and least squares with and without all eight versions."""
    images = torch.rand(rows, side, side, generator=generator, dtype=torch.float64)
    y = torch.randn(rows, generator=generator, dtype=torch.float64)
    there = [rotate_quarters(images, *g) for g in elements()]
    back = max(gap(undone(z, *g), images) for z, g in zip(there, elements(), strict=True))
    twice = max(gap(rotate_quarters(z, *g), images) for z, g in zip(there, elements(), strict=True))
    bright = contrast(contrast(images, 2.0, clip=False), 0.5, clip=False)
    clipped = contrast(contrast(images, 2.0, clip=True), 0.5, clip=False)
    plain, _ = least_squares(images, y)
    fitted, condition = least_squares(torch.cat(there), y.repeat(8))
    checks = [
        Check(
            "largest change by one of 8 rotations and flips and its inverse",
            back,
            0.0,
            0.0,
            "exact: pixels move, none is computed",
            wrong=Wrong("the same transform twice", measured=twice),
        ),
        Check(
            "largest change by twice the contrast, then half of it",
            gap(bright, images),
            0.0,
            16 * EPS,
            "rounding: 16 operations on numbers below 1",
            wrong=Wrong("clipped to [0, 1] in between", measured=gap(clipped, images)),
        ),
        Check(
            "largest asymmetry of the weights fitted to all 8",
            asymmetry(fitted),
            0.0,
            64 * EPS * condition**2 * float(fitted.abs().max()),
            "rounding: 64 eps times the squared condition number of the rows",
            wrong=Wrong("fitted to the images alone", measured=asymmetry(plain)),
        ),
    ]
    table = Table(["fit", "asymmetry"], [["alone", asymmetry(plain)], ["all", asymmetry(fitted)]])
    return Finding(checks, table, {"plain": plain, "fitted": fitted})


def elements() -> Iterator[tuple[int, bool]]:
    """The symmetries of a square: quarter rotations, with and without a flip before."""
    yield from ((turns, flip) for turns in range(4) for flip in (False, True))


def rotate_quarters(images: Tensor, turns: int, flip: bool) -> Tensor:
    """(B, H, W), flipped and then rotated, as the augmentations do."""
    return quarter_turned(flipped(images) if flip else images, torch.full((len(images),), turns))


def undone(images: Tensor, turns: int, flip: bool) -> Tensor:
    """The inverse of ``rotate_quarters``: first back, then flipped."""
    before = quarter_turned(images, torch.full((len(images),), -turns % 4))
    return flipped(before) if flip else before


def flipped(images: Tensor) -> Tensor:
    """Left and right exchanged."""
    return Flip(p=1.0)(images.unsqueeze(1)).squeeze(1)


def contrast(images: Tensor, factor: float, *, clip: bool) -> Tensor:
    """Deviations from each image's mean, times a factor."""
    x = images.unsqueeze(1)
    mean = gray(x).mean((1, 2, 3), keepdim=True)
    return blended(x, mean, torch.full((len(x),), factor).to(x), clip=clip).squeeze(1)


def least_squares(images: Tensor, y: Tensor) -> tuple[Tensor, float]:
    """Weights (H, W) of a linear model, and the condition number of its rows."""
    flat = images.flatten(1)
    w = torch.linalg.lstsq(flat, y.unsqueeze(1)).solution
    return w.reshape(images.shape[1:]), float(torch.linalg.cond(flat))


def asymmetry(w: Tensor) -> float:
    """max |w∘g - w| over the eight symmetries."""
    return max(gap(rotate_quarters(w.unsqueeze(0), *g), w.unsqueeze(0)) for g in elements())


def gap(a: Tensor, b: Tensor) -> float:
    """max |a - b|."""
    return float((a - b).abs().max())


def draw(paper: Figure, finding: Finding) -> None:
    """The weights of the two fits."""
    panels = paper.subplots(1, 2)
    titles = ("fitted to images as they are ...", "... and to all eight turns and flips")
    for axes, key, title in zip(panels, ("plain", "fitted"), titles, strict=True):
        w = finding.data[key]
        top = float(w.abs().max())
        picture = axes.imshow(w, cmap="PuOr", vmin=-top, vmax=top)
        paper.colorbar(picture, ax=axes, label="weight of a pixel", shrink=0.8)
        axes.set(xticks=[], yticks=[])
        axes.set_title(title)


claim = Claim(
    id="augmentation-group",
    title="Rotations and flips are a group, and a fit to all of them is symmetric",
    statement=(
        "Each rotation and flip of an image has an inverse that restores the image bit for bit; a "
        "change of contrast can be undone up to rounding, unless it was clipped. The labels do not "
        "change, so least squares on all eight versions of an image has weights that no rotation "
        "or flip changes."
    ),
    formula=(
        r"g^{-1}(g(x)) = x, \qquad \mathcal{S}_G = \bigcup_{g \in G} \{(g(x_i), y_i)\} "
        r"\;\Rightarrow\; \hat w(g(x)) = \hat w(x) \quad \forall g \in G"
    ),
    sources=("M168", "M169"),
    measure=measure,
    reference=(
        "Chen, Dobriban and Lee (2020), A group-theoretic framework for data augmentation. "
        "https://arxiv.org/abs/1907.10905"
    ),
    full={"side": 12, "rows": 400},
    draw=draw,
)
