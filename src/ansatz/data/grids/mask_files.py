"""Mask files: whole numbers per pixel, coded as classes."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from ansatz.data.grids.fitting import inner_box
from ansatz.data.grids.grid_files import GridFiles
from ansatz.data.grids.image import SIXTEEN
from ansatz.data.grids.image_file import Limits, opened, orientation, upright
from ansatz.data.grids.masks import class_names, codes_of, values_in
from ansatz.data.grids.page import Place
from ansatz.data.grids.runs import in_runs
from ansatz.data.unlabelled import UNLABELLED
from ansatz.errors import DataError

if TYPE_CHECKING:
    from PIL.Image import Image


def open_mask(path: Place, limits: Limits) -> np.ndarray:
    """The whole numbers in an image, ``(H, W)``: grey values, or places in its palette.

    Colours are no classes, and the values between two classes that JPEG invents are none either:
    both are refused.

    Example:
        >>> import pathlib, tempfile
        >>> from PIL import Image
        >>> from ansatz.data.grids.image_file import Limits
        >>> from ansatz.data.grids.mask_files import open_mask
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.png"
        >>> Image.new("L", (5, 4), 3).save(path)
        >>> open_mask(path, Limits()).max()
        np.uint8(3)
    """
    with opened(path, limits) as image:
        turn, lossy = orientation(image), image.format in ("JPEG", "MPO")
        image.load()
        found = upright(image.convert("L") if image.mode == "1" else image, turn)
        if found.mode not in ("L", "P", "I", *SIXTEEN):
            found = _grey_of_equal(path, found)
        values = np.asarray(found)
    if values.dtype != np.uint8:
        values = values.astype(np.int32)
    if lossy and len(values_in(values)) > 2:
        raise DataError(f"{path}: JPEG invents values between classes. Save masks as PNG.")
    return values


def read_mask(path: Place, size: tuple[int, int], limits: Limits) -> np.ndarray:
    """The numbers in a mask, ``(H, W)``, fitted into ``size`` as its image is.

    Palettes count by their index. The nearest pixel is taken; outside of the mask it is -1.

    Example:
        >>> import pathlib, tempfile
        >>> from PIL import Image
        >>> from ansatz.data.grids.image_file import Limits
        >>> from ansatz.data.grids.mask_files import read_mask
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.png"
        >>> Image.new("L", (4, 2), 255).save(path)
        >>> read_mask(path, (4, 4), Limits())[:, 0].tolist()
        [-1, 255, 255, -1]
    """
    values = open_mask(path, limits)
    if values.shape == size:
        return values
    top, left, height, width = inner_box((values.shape[0], values.shape[1]), size)
    rows, columns = (
        ((np.arange(n) + 0.5) * m / n).astype(np.intp)
        for n, m in zip((height, width), values.shape, strict=True)
    )
    made = np.full(size, UNLABELLED, np.int32)
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
    """Mask files whose values are known, and the names of the classes; each is read once.

    Example:
        >>> import pathlib, tempfile
        >>> from PIL import Image
        >>> from ansatz.data.grids.image_file import Limits
        >>> from ansatz.data.grids.mask_files import mask_files
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.png"
        >>> Image.new("L", (4, 4), 255).save(path)
        >>> said = {"classes": None, "unlabelled": None, "damaged": {}}
        >>> mask_files([path], ["a"], (4, 4), Limits(), **said)[1]
        ('255',)
    """

    def values_of(place: int) -> list[int] | DataError:
        try:
            return values_in(open_mask(paths[place], limits))
        except DataError as error:
            return error

    found: set[int] = set()
    places = [place for place in range(len(paths)) if place not in damaged]
    for place, seen in zip(places, in_runs(values_of, places, paths, ahead=256), strict=True):
        if isinstance(seen, DataError):
            damaged[place] = seen
        else:
            found.update(seen)
            if len(found) > 1000:  # numbers, not classes: no need to see them all
                break
    if not found and damaged:
        raise damaged[min(damaged)]
    values = sorted(value for value in found - {unlabelled} if value >= 0)  # below: not known
    named = class_names(values, classes, f"masks like {names[0]}")
    read = partial(_coded, values=np.array(values), size=size, limits=limits)
    return GridFiles(tuple(paths), tuple(names), read, (1, *size), torch.uint8), named


def _coded(path: Place, values: np.ndarray, size: tuple[int, int], limits: Limits) -> np.ndarray:
    """``(1, H, W)`` uint8 codes; 255 for what is no class."""
    return codes_of(read_mask(path, size, limits), values)[None]


def _grey_of_equal(path: Place, image: "Image") -> "Image":
    """The red channel of an image whose colours are all grey and opaque."""
    bands = image.split() if image.mode in ("RGB", "RGBA", "LA") else ()
    levels = [np.asarray(band) for band in bands]
    opaque = image.mode == "RGB" or (levels and (levels.pop() == 255).all())
    if not opaque or any((level != levels[0]).any() for level in levels):
        raise DataError(
            f"{path} is a mask in mode {image.mode}; expected one whole number per pixel: save it "
            "as grey values or with a palette."
        )
    return bands[0]
