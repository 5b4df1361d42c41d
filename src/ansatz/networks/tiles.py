"""Prediction of large images by overlapping tiles.

Along each axis an image of n pixels is cut into cores of ``tile - 2 * overlap`` pixels; a tile is a
core with ``overlap`` pixels of its surroundings on both sides.
"""

import math
from collections.abc import Callable, Iterator
from itertools import groupby, product
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.layers.convolution import mirror_index
from ansatz.layers.limits import require_whole

Blend = Literal["crop", "linear", "gaussian"]
Border = Literal["mirror", "keep"]


class Tile(NamedTuple):
    """One tile along one axis: where its window and its core lie in the image.

    Args:
        start: first pixel of the window; below 0 where it reaches beyond the image.
        stop: one after its last pixel.
        core: first and one after the last pixel that it answers for.

    Example:
        >>> from ansatz.networks import Tile
        >>> Tile(-2, 8, (0, 6)).stop
        8
    """

    start: int
    stop: int
    core: tuple[int, int]


def tiles(length: int, tile: int, overlap: int, border: Border = "mirror") -> list[Tile]:
    """Splits one axis into tiles.

    Args:
        length: pixels of the axis.
        tile: pixels of a window.
        overlap: pixels of it on either side that belong to its surroundings.
        border: ``"mirror"``: all windows have ``tile`` pixels, some beyond the border; ``"keep"``:
            they end where the image ends.

    Example:
        >>> from ansatz.networks import tiles
        >>> [tuple(t) for t in tiles(10, tile=8, overlap=2, border="keep")]
        [(0, 6, (0, 4)), (2, 10, (4, 8)), (6, 10, (8, 10))]
    """
    step = tile - 2 * overlap
    found = []
    for first in range(0, length, step):
        start, stop = first - overlap, first + step + overlap
        if border == "keep":
            start, stop = max(start, 0), min(stop, length)
        found.append(Tile(start, stop, (first, min(first + step, length))))
    return found


def predict_tiles(
    function: Callable[[Tensor], Tensor],
    image: Tensor,
    *,
    tile: int | tuple[int, ...],
    overlap: int | tuple[int, ...],
    multiple: int = 1,
    batch_size: int = 4,
    blend: Blend = "crop",
    border: Border = "mirror",
) -> Tensor:
    r"""Predicts at every pixel of large images, tile by tile.

    With ``blend="crop"`` each pixel is answered by the tile whose core holds it, so that it has at
    least ``overlap`` pixels of context on every side. If an answer depends on no pixel farther than
    r away, and :math:`\text{overlap} \ge r`, tiles give *the answer of the whole image*: of
    ``function(image)`` with ``border="keep"``, where windows end with the image and the network
    pads as it always does; of the image continued by its mirror image with ``border="mirror"``.
    A network that halves the grid L times must meet every tile with the same pixels pooled
    together: ``multiple`` = :math:`2^L` (``network.stride``) rounds the overlap up and the tile
    down so that tiles begin at multiples of it.

    ``"linear"`` and ``"gaussian"`` use the whole answer of every tile instead, and average where
    tiles overlap: pixels near the edge of a tile weigh less, which hides seams where the overlap is
    smaller than r:

    .. math:: f_i = \sum_t w_{ti} f_{ti} / \sum_t w_{ti}

    ``function`` may answer with fewer pixels than it was given, as the unpadded U-Net does (572 in,
    388 out): its answers are those of the window's centre, and ``overlap`` must be at least the
    (572 - 388) / 2 = 92 pixels that it takes off. At most ``batch_size`` windows are in memory,
    besides the image and the result; no gradient is kept.

    Args:
        function: ``(n, C, *window)`` -> ``(n, P, *window)``: a network in evaluation mode.
        image: images or volumes.
        tile: pixels of a window along each axis.
        overlap: context on either side, less than half a tile.
        multiple: of which number of pixels the places of tiles are multiples.
        batch_size: windows per call.
        blend: how tiles are put together.
        border: what lies beyond the image.

    Shapes:
        - image: ``(B, C, *size)``.
        - returns: ``(B, P, *size)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import predict_tiles
        >>> blur = torch.nn.AvgPool2d(3, stride=1, padding=1)  # an answer sees 1 pixel around it
        >>> image = torch.randn(1, 1, 50, 70)
        >>> tiled = predict_tiles(blur, image, tile=16, overlap=1, border="keep")
        >>> torch.allclose(tiled, blur(image), atol=1e-6)
        True

    References:
        Ronneberger, Fischer and Brox (2015), U-Net, section 2, figure 2 (the overlap-tile
        strategy). https://arxiv.org/abs/1505.04597; Isensee et al. (2021), nnU-Net (Gaussian
        weights). https://doi.org/10.1038/s41592-020-01008-z
    """
    axes = image.ndim - 2
    _check(image, blend, border)
    require_whole("batch_size of predict_tiles", batch_size)
    require_whole("multiple of predict_tiles", multiple)
    sizes, margins = _per_axis("tile", tile, axes), _per_axis("overlap", overlap, axes)
    sizes, margins = _aligned(sizes, margins, multiple)
    grid = [tiles(*which, border) for which in zip(image.shape[2:], sizes, margins, strict=True)]
    canvas = _Canvas(image, blend, margins)
    with torch.no_grad():
        for windows in _alike(image, grid, batch_size):
            canvas.add(windows, function(torch.cat([canvas.window(*w) for w in windows])))
    return canvas.result()


Window = tuple[int, tuple[Tile, ...]]  # the row of the batch, and a tile per axis


def _alike(image: Tensor, grid: list[list[Tile]], batch_size: int) -> Iterator[list[Window]]:
    """Batches of windows of one shape, in a fixed order."""

    def shape(window: Window) -> tuple[int, ...]:
        return tuple(t.stop - t.start for t in window[1])

    every = sorted(product(range(len(image)), product(*grid)), key=shape, reverse=True)
    for _, members in groupby(every, key=shape):
        group = list(members)
        yield from (group[i : i + batch_size] for i in range(0, len(group), batch_size))


class _Span(NamedTuple):
    """The pixels of an axis that a tile's answer is used for, and the pixel that it begins with."""

    first: int
    last: int
    origin: int


class _Canvas:
    """The result as far as it is known."""

    def __init__(self, image: Tensor, blend: Blend, margins: tuple[int, ...]) -> None:
        self.image, self.blend, self.margins = image, blend, margins
        self.total: Tensor | None = None
        self.weight: Tensor | None = None

    def window(self, row: int, place: tuple[Tile, ...]) -> Tensor:
        """``(1, C, *window)``, mirrored beyond the border."""
        x = self.image[row : row + 1]
        for axis, (tile, n) in enumerate(zip(place, self.image.shape[2:], strict=True), 2):
            before, after = max(-tile.start, 0), max(tile.stop - n, 0)
            if before or after:
                # The whole axis, since a border wider than the image is reflected again.
                index = mirror_index(n, before, after, x.device)
                x = x.index_select(axis, index[tile.start + before : tile.stop + before])
            else:
                x = x.narrow(axis, tile.start, tile.stop - tile.start)
        return x

    def add(self, windows: list[Window], answers: Tensor) -> None:
        """Puts the answers for some windows in their place."""
        if self.total is None:
            shape = (len(self.image), answers.shape[1], *self.image.shape[2:])
            self.total = answers.new_zeros(shape)
            self.weight = None if self.blend == "crop" else answers.new_zeros(shape[2:])
        for (row, place), answer in zip(windows, answers, strict=True):
            spans = [self._span(axis, tile, answer) for axis, tile in enumerate(place)]
            here = [(s.first, s.last) for s in spans]
            there = [(s.first - s.origin, s.last - s.origin) for s in spans]
            part = _cut(answer, there)
            if self.weight is None:
                _cut(self.total[row], here).copy_(part)
                continue
            weights = _cut(self._weights(answer, place), there)
            _cut(self.total[row], here).add_(weights * part)
            if row == 0:  # they are the same for all images
                _cut(self.weight, here).add_(weights)

    def _span(self, axis: int, tile: Tile, answer: Tensor) -> _Span:
        asked, answered = tile.stop - tile.start, answer.shape[1 + axis]
        taken = asked - answered
        origin = tile.start + taken // 2
        fits = taken >= 0 and taken % 2 == 0
        if not fits or origin > tile.core[0] or origin + answered < tile.core[1]:
            raise UsageError(
                f"predict_tiles got answers of {answered} pixels for windows of {asked}: they may "
                f"lose equally many on both sides, with border='mirror' up to the overlap of "
                f"{self.margins[axis]}, with border='keep' none."
            )
        if self.blend == "crop":
            return _Span(*tile.core, origin)
        return _Span(max(origin, 0), min(origin + answered, self.image.shape[2 + axis]), origin)

    def _weights(self, answer: Tensor, place: tuple[Tile, ...]) -> Tensor:
        """The product of a weight per axis, largest in the middle of the tile."""
        weights = answer.new_ones(())
        for axis, tile in enumerate(place):
            size = answer.shape[1 + axis]
            shared = 2 * self.margins[axis] - (tile.stop - tile.start - size)  # with a neighbour
            weights = weights.unsqueeze(-1) * _profile(size, shared, self.blend, answer)
        return weights

    def result(self) -> Tensor:
        """All answers, once every tile was added."""
        assert self.total is not None
        return self.total if self.weight is None else self.total / self.weight


def _cut(x: Tensor, ends: list[tuple[int, int]]) -> Tensor:
    """A view of the pixels between the ends of the last axes."""
    for axis, (first, last) in enumerate(ends, x.ndim - len(ends)):
        x = x.narrow(axis, first, last - first)
    return x


def _profile(size: int, ramp: int, blend: Blend, like: Tensor) -> Tensor:
    """Weights along one axis of a tile: a trapezium, or a bell of an eighth of the tile."""
    place = torch.arange(size, dtype=like.dtype, device=like.device)
    if blend == "gaussian":
        z = (place - (size - 1) / 2) / max(size / 8, 0.5)
        return torch.exp(-0.5 * z * z).clamp(min=1e-4)  # no pixel without any weight
    depth = torch.minimum(place, size - 1 - place) + 1  # pixels from the edge
    return (depth / (ramp + 1)).clamp(max=1)


def _per_axis(option: str, value: int | tuple[int, ...], axes: int) -> tuple[int, ...]:
    values = (value,) * axes if isinstance(value, int) else tuple(value)
    if len(values) != axes:
        raise UsageError(f"{option} needs one number, or one for each of {axes} axes, got {value}.")
    low = 1 if option == "tile" else 0
    return tuple(require_whole(f"{option} of predict_tiles", v, low=low) for v in values)


def _aligned(
    sizes: tuple[int, ...], margins: tuple[int, ...], multiple: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Overlaps rounded up and cores rounded down to a multiple, if something is left of them."""
    wide = tuple(-(-margin // multiple) * multiple for margin in margins)
    cores = [(n - 2 * m) // multiple * multiple for n, m in zip(sizes, wide, strict=True)]
    for size, margin, core in zip(sizes, margins, cores, strict=True):
        if core < 1:
            of = f" in multiples of {multiple}" if multiple > 1 else ""
            raise UsageError(f"overlap must be below half a tile of {size}{of}, got {margin}.")
    return tuple(core + 2 * m for core, m in zip(cores, wide, strict=True)), wide


def _check(image: Tensor, blend: object, border: object) -> None:
    if image.ndim < 3 or math.prod(image.shape) == 0:
        raise UsageError(
            f"predict_tiles needs images of shape (B, C, *size), got {tuple(image.shape)}."
        )
    for option, value, known in (("blend", blend, Blend), ("border", border, Border)):
        if value not in get_args(known):
            words = ", ".join(repr(word) for word in get_args(known))
            raise UsageError(f"{option} of predict_tiles must be one of {words}, got {value!r}.")
