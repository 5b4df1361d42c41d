"""Mask files: whole numbers or colours per pixel, coded as classes."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ansatz.data.batch import UNLABELLED
from ansatz.data.grids.grid_files import GridFiles, in_runs
from ansatz.data.grids.image import SIXTEEN
from ansatz.data.grids.image_file import Limits, opened, orientation, upright
from ansatz.data.grids.images import inner_box
from ansatz.data.grids.masks import (
    MOST_CLASSES,
    class_names,
    codes_of,
    colours_of,
    greys_as_colours,
    is_colour,
    too_many_colours,
    values_in,
)
from ansatz.data.grids.places import Place
from ansatz.errors import DataError, UsageError

if TYPE_CHECKING:
    from PIL.Image import Image


def open_mask(path: Place, limits: Limits, *, colours: bool = False) -> np.ndarray:
    """The whole numbers in an image, ``(H, W)``: grey values, places in its palette, or colours.

    What JPEG invents between two classes is refused.
    """
    with opened(path, limits) as image:
        turn, lossy = orientation(image), image.format in ("JPEG", "MPO")
        image.load()
        found = upright(image.convert("L") if image.mode == "1" else image, turn)
        if colours and found.mode == "P":
            found = found.convert("RGBA" if "transparency" in found.info else "RGB")
        is_plain = found.mode in ("L", "P", "I", *SIXTEEN)
        values = np.asarray(found) if is_plain else _opaque(path, found)
    if values.ndim == 3 and not colours and _are_grey(values):
        values = values[..., 0]
    if values.ndim == 3:
        values = colours_of(values)
    elif colours:
        values = _as_colours(path, values)
    elif values.dtype != np.uint8:
        values = values.astype(np.int32)
    if lossy and len(values_in(values)) > 2:
        raise DataError(f"{path}: JPEG invents values between classes. Save masks as PNG.")
    return values


def read_mask(
    path: Place, size: tuple[int, int], limits: Limits, *, colours: bool = False
) -> np.ndarray:
    """The numbers in a mask, ``(H, W)``, fitted into ``size`` as its image is.

    The nearest pixel is taken; outside of the mask it is -1.
    """
    values = open_mask(path, limits, colours=colours)
    if values.shape == size:
        return values
    top, left, height, width = inner_box((values.shape[0], values.shape[1]), size)
    rows, columns = (
        ((np.arange(n) + 0.5) * m / n).astype(np.intp)
        for n, m in zip((height, width), values.shape, strict=True)
    )
    made = np.full(size, UNLABELLED, np.int64 if colours else np.int32)
    made[top : top + height, left : left + width] = values[np.ix_(rows, columns)]
    return made


def mask_files(
    paths: Sequence[Place],
    names: Sequence[str],
    size: tuple[int, int],
    limits: Limits,
    *,
    classes: Sequence[str] | None,
    unlabelled: int | None,
    damaged: dict[int, DataError],
) -> tuple[GridFiles, tuple[str, ...]]:
    """Mask files whose values are known, and the names of the classes; each is read once."""
    what = f"masks like {names[0]}"
    opens = partial(_open, limits=limits)
    values, colours = values_of_all(opens, paths, what, unlabelled, damaged)
    named = class_names(values, classes, what)
    read = partial(_coded, values=np.array(values), colours=colours, size=size, limits=limits)
    return GridFiles(tuple(paths), tuple(names), read, (1, *size), torch.uint8), named


def values_of_all(
    opens: Callable[[Any, bool], np.ndarray],
    paths: Sequence[Place],
    what: str,
    unlabelled: int | None,
    damaged: dict[int, DataError],
) -> tuple[list[int], bool]:
    """The different numbers in all masks, sorted, and whether they are colours.

    One mask that has colours makes all of them coloured: black saved as grey is black.

    Args:
        opens: the numbers of a mask; grey values and palettes as colours where that is True.
        paths: of all masks.
        what: what errors call them.
        unlabelled: the number that is not a class; a colour's makes all of them coloured.
        damaged: places that are known to be unreadable; those found are added.
    """
    colours = is_colour(unlabelled)
    found = _values(opens, paths, colours, damaged)
    if not colours and any(map(is_colour, found)):
        if unlabelled is not None:
            raise UsageError(
                f"{what} hold colours: --unlabelled (unlabelled=) is one, like '#000000', not "
                f"{unlabelled}."
            )
        colours, found = True, _values(opens, paths, True, damaged)
    if not found and damaged:
        raise damaged[min(damaged)]
    return sorted(value for value in found - {unlabelled} if value >= 0), colours  # < 0: not known


def _values(
    opens: Callable[[Any, bool], np.ndarray],
    paths: Sequence[Place],
    colours: bool,
    damaged: dict[int, DataError],
) -> set[int]:
    """The numbers in all masks; those up to the first colour where none was expected."""

    def values_of(place: int) -> list[int] | DataError:
        try:
            seen = values_in(opens(paths[place], colours))
        except DataError as error:
            return error
        if is_colour(seen[-1]) and len(seen) > MOST_CLASSES + 1:  # one may be no class
            return DataError(f"{paths[place]} is a mask of {too_many_colours(len(seen))}")
        return seen

    found: set[int] = set()
    places = [place for place in range(len(paths)) if place not in damaged]
    for place, seen in zip(places, in_runs(values_of, places, paths, ahead=256), strict=True):
        if isinstance(seen, DataError):
            damaged[place] = seen
            continue
        found.update(seen)
        if is_colour(seen[-1]) and not colours:
            break
        if len(found) > 1000:  # numbers, not classes: no need to see them all
            break
    return found


def _open(path: Place, colours: bool, limits: Limits) -> np.ndarray:
    return open_mask(path, limits, colours=colours)


def _coded(
    path: Place, values: np.ndarray, colours: bool, size: tuple[int, int], limits: Limits
) -> np.ndarray:
    """``(1, H, W)`` uint8 codes; 255 for what is not a class."""
    return codes_of(read_mask(path, size, limits, colours=colours), values)[None]


def _opaque(path: Place, image: "Image") -> np.ndarray:
    """Red, green and blue of every pixel, ``(H, W, 3)``."""
    if image.mode in ("RGBA", "LA") and image.getchannel("A").getextrema() == (255, 255):
        return np.asarray(image.convert("RGB"))
    if image.mode != "RGB":
        raise DataError(
            f"{path} is a mask in mode {image.mode}; expected one whole number or opaque colour "
            "per pixel: save it as grey values, with a palette, or as RGB."
        )
    return np.asarray(image)


def _are_grey(levels: np.ndarray) -> bool:
    return bool((levels[..., 1:] == levels[..., :1]).all())


def _as_colours(path: Place, greys: np.ndarray) -> np.ndarray:
    if greys.max() > 255:
        raise DataError(
            f"{path} holds {greys.max()}, and other masks are colours: save all of them alike."
        )
    return greys_as_colours(greys)
