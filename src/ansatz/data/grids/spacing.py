"""Brings volumes to one spacing: a voxel then has the same width in all of them."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from ansatz.data.grids.listing import Listing
from ansatz.data.grids.masks import KEPT_AS
from ansatz.data.grids.nifti import is_nifti, read_header
from ansatz.data.grids.options import GridReading
from ansatz.errors import DataError, UsageError

_ALIKE = 1e-3  # relative difference of widths that differ by rounding alone
_LARGEST = 2**31  # voxels of a volume after resampling

Widths = tuple[float, ...]  # of a voxel, from the slowest axis to the fastest, as in a shape
Size = tuple[int, ...]


class Found(NamedTuple):
    """Size and spacing of a volume in its file."""

    size: Size
    widths: Widths


class Spacing(NamedTuple):
    """The spacing and the size that volumes are brought to, and what each has in its file.

    Args:
        common: the width of a voxel along each axis.
        size: voxels along each axis; smaller volumes are padded around, larger ones cropped.
        places: volumes and masks by their paths.
        pads: whether volumes of other sizes are padded or cropped; False leaves them.
    """

    common: Widths
    size: Size
    places: dict[Path, Found]
    pads: bool

    def values(self, grid: np.ndarray, path: Path) -> np.ndarray:
        """A volume ``(C, *size)`` at the common spacing, linear between the voxels."""
        own = self.places[path].widths
        if not alike(own, self.common):
            grid = np.stack([resample(each, own, self.common, mode="linear") for each in grid])
        return _fitted(grid, self.size, None) if self.pads else grid

    def codes(self, codes: np.ndarray, path: Path) -> np.ndarray:
        """A mask ``(1, *size)`` at the common spacing, each voxel as the nearest one."""
        own = self.places[path].widths
        if not alike(own, self.common):
            codes = resample(codes[0], own, self.common, mode="nearest")[None]
        return _fitted(codes, self.size, KEPT_AS) if self.pads else codes


def resample(
    values: np.ndarray,
    own: Widths,
    other: Widths,
    *,
    mode: Literal["linear", "nearest"],
    size: Size | None = None,
) -> np.ndarray:
    r"""Values at the centres of voxels of another width.

    .. math:: y_j = x\left(\frac{(j + \frac12) t}{s} - \frac12\right)

    along each axis, with s the ``own`` width, t the ``other``, and x(u) between the voxels
    ``"linear"`` or that of the ``"nearest"`` one. The first voxels of both begin at the same
    edge, and beyond the last centres the outermost values hold.

    Args:
        values: ``(*size)``, one channel.
        own: the width of a voxel along each axis, s.
        other: the width that is wanted, t.
        mode: ``"linear"`` for measurements, ``"nearest"`` for classes.
        size: voxels along each axis of the result; None for as many as cover the same extent.
    """
    from scipy import ndimage

    ratio = np.divide(other, own)
    shape = resampled_size(values.shape, own, other) if size is None else size
    order = 1 if mode == "linear" else 0
    given = values.astype(np.float32) if order else values
    made = ndimage.affine_transform(
        given, ratio, ratio / 2 - 0.5, output_shape=shape, order=order, mode="nearest"
    )
    if values.dtype.kind == "f" or not order:
        return np.asarray(made)
    return np.asarray(np.rint(made).astype(values.dtype))


def resampled_size(size: Sequence[int], own: Widths, other: Widths) -> Size:
    """Voxels that cover the same extent, to the nearest whole number."""
    sides = zip(size, own, other, strict=True)
    return tuple(max(1, math.floor(n * s / t + 0.5)) for n, s, t in sides)


def alike(one: Widths, other: Widths) -> bool:
    """Tests whether two spacings differ by no more than rounding."""
    return bool(np.allclose(one, other, rtol=_ALIKE, atol=0))


def common_spacing(
    listing: Listing, options: GridReading, damaged: dict[int, DataError], notes: list[str]
) -> Spacing | None:
    """The spacing of NIfTI volumes: the one asked for, else the medians of all that are read.

    None where the voxels stay as they are: ``"none"``, files that have no spacing, and volumes of
    one size and spacing.
    """
    asked = options.spacing
    paths = {k: path for k, path in enumerate(listing.paths) if k not in damaged}
    if asked == "none" or not all(map(is_nifti, paths.values())):
        if asked not in ("none", "auto"):
            raise UsageError(
                f"{listing.origin} has no spacing, which NIfTI files have: leave out --spacing "
                "(spacing=)."
            )
        return None
    found = _found(paths, damaged)
    if not found or (asked == "auto" and not any(each.widths[0] for each in found.values())):
        return None
    for place, each in list(found.items()):
        if not each.widths[0]:
            damaged[place] = DataError(
                f"{listing.paths[place]} has no spacing (pixdim 0), and others do: write it, or "
                "keep the voxels of all as they are, --spacing none (spacing='none')."
            )
            del found[place]
    if not found:
        return None
    common = _chosen(asked, list(found.values()), listing.paths[min(found)])
    return _planned(common, found, listing, options, notes)


def _found(paths: dict[int, Path], damaged: dict[int, DataError]) -> dict[int, Found]:
    found = {}
    for place, path in paths.items():
        try:
            header = read_header(path)
        except DataError as error:
            damaged[place] = error
            continue
        widths = header.widths
        if any(widths) and not all(0 < width < math.inf for width in widths):
            damaged[place] = DataError(
                f"{path}: a spacing (pixdim) of {text(widths)}; expected widths > 0. To keep the "
                "voxels as they are: --spacing none (spacing='none')."
            )
            continue
        found[place] = Found(header.shape[-len(widths) :], widths)
    return found


def _chosen(asked: Widths | str, found: list[Found], first: Path) -> Widths:
    axes = len(found[0].widths)
    if isinstance(asked, str):
        same = [each.widths for each in found if len(each.widths) == axes]
        median = np.median(np.array(same), axis=0).tolist()
        return same[0] if all(alike(same[0], each) for each in same) else tuple(median)
    if len(asked) != axes:
        raise UsageError(f"--spacing has {len(asked)} values, {first} has {axes} axes.")
    return tuple(reversed(asked))


def _planned(
    common: Widths,
    found: dict[int, Found],
    listing: Listing,
    options: GridReading,
    notes: list[str],
) -> Spacing:
    same = {k: each for k, each in found.items() if len(each.widths) == len(common)}
    for place in found.keys() - same.keys():
        axes = len(found[place].widths)
        raise DataError(f"{listing.paths[place]} has {axes} axes, others {len(common)}: give one.")
    odd = [k for k, each in same.items() if not alike(each.widths, common)]
    sizes = {k: resampled_size(each.size, each.widths, common) for k, each in same.items()}
    pads = bool(odd) or options.spacing != "auto"
    if pads:
        size = options.size or tuple(map(max, zip(*sizes.values(), strict=True)))
    else:
        size = options.size or sizes[min(sizes)]  # others than the first are refused, as arrays are
        sizes = {}
    if math.prod(size) > _LARGEST:
        raise UsageError(f"--spacing {text(common)} makes volumes of {math.prod(size):,} voxels.")
    if odd:
        usual = Counter(text(same[k].widths) for k in odd).most_common(3)
        listed = "; ".join(f"{count} of {words}" for words, count in usual)
        notes.append(
            f"{len(odd)} of {len(same)} volumes resampled to a spacing of {text(common)} (linear, "
            f"masks nearest): {listed}. To keep voxels: --spacing none (spacing='none')."
        )
    padded = sum(each != size for each in sizes.values())
    if padded:
        shown = " x ".join(map(str, size))
        notes.append(f"{padded} volumes padded or cropped to {shown}; no class is known around.")
    both = [*listing.paths], [*listing.masks]
    places = {paths[k]: each for paths in both if paths for k, each in same.items()}
    return Spacing(common, size, places, pads)


def text(widths: Widths) -> str:
    """A spacing in the order of the header, the fastest axis first."""
    return " x ".join(f"{width:.4g}" for width in reversed(widths))


def _fitted(values: np.ndarray, size: Size, outside: int | None) -> np.ndarray:
    """``(C, *size)`` around the same centre: cropped, or padded by the border or a value."""
    for axis, want in enumerate(size, 1):
        extra = want - values.shape[axis]
        if extra < 0:
            start = -extra // 2
            values = values.take(range(start, start + want), axis)
        elif extra > 0:
            widths = [(0, 0)] * values.ndim
            widths[axis] = (extra // 2, extra - extra // 2)
            values = (
                np.pad(values, widths, mode="edge")
                if outside is None
                else np.pad(values, widths, constant_values=outside)
            )
    return values
