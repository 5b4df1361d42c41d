"""Masks: a class for each pixel, from whole numbers or colours."""

import re
from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
import torch
from torch import Tensor

from ansatz.data.batch import UNLABELLED
from ansatz.data.grids.grid_files import GridFiles
from ansatz.data.grids.grids import Grids, Rows
from ansatz.errors import DataError, UsageError

_FIRST = 1 << 32  # black; grey values have at most 32 bits
_NAME = re.compile("#[0-9a-f]{6}")
_GREY = 0x010101  # times a level: as much red, green and blue


def colours_of(levels: np.ndarray) -> np.ndarray:
    """The number of each colour, int64."""
    red, green, blue = (levels[..., k].astype(np.int64) for k in range(3))
    return (red << 16 | green << 8 | blue) + _FIRST


def greys_as_colours(levels: np.ndarray) -> np.ndarray:
    """The number of each grey value's colour, int64; negative values stay as they are."""
    greys = levels.astype(np.int64)
    return np.where(greys < 0, greys, greys * _GREY + _FIRST)


def is_colour(value: int | None) -> bool:
    """Tests whether a number is a colour's."""
    return value is not None and bool(value >= _FIRST)


def colour_name(value: int) -> str:
    """A colour's number as ``#rrggbb``."""
    return f"#{value - _FIRST:06x}"


def colour_number(name: str) -> int:
    """The number of a colour called ``#rrggbb``."""
    if not _NAME.fullmatch(name.lower()):
        raise UsageError(f"unlabelled is a number, or a colour like '#000000', got '{name}'.")
    return int(name[1:], 16) + _FIRST


def are_colours(names: Iterable[object]) -> bool:
    """Tests whether all classes are called like colours."""
    return all(_NAME.fullmatch(str(name)) for name in names)


def rgb_of(name: str) -> tuple[int, int, int]:
    """Red, green and blue of ``#rrggbb``."""
    red, green, blue = bytes.fromhex(name[1:])
    return red, green, blue


KEPT_AS = 255  # so that one byte per pixel is enough
MOST_CLASSES = 255


class Masks(Grids):
    """N masks of one size: the class 0..K-1 of each pixel, or -1 where it is not known.

    They are kept in a byte per pixel, 255 standing for -1, in memory or in files.

    Args:
        store: a uint8 tensor ``(N, 1, *size)`` or :class:`GridFiles`.
        names: what the examples are called.
        classes: the names of the classes.

    Example:
        >>> import numpy as np
        >>> from ansatz.data.grids import Masks
        >>> masks = Masks.coded(np.array([[[0, 255], [255, 0]]]), "masks")
        >>> masks.load().tolist(), masks.classes
        ([[[0, 1], [1, 0]]], ('0', '255'))
    """

    def __init__(
        self,
        store: Tensor | GridFiles,
        names: Sequence[str] | None = None,
        classes: Sequence[str] = (),
    ) -> None:
        super().__init__(store, names)
        self.classes = tuple(classes)

    @classmethod
    def coded(
        cls,
        values: object,
        what: str,
        *,
        classes: Sequence[str] | None = None,
        unlabelled: int | None = None,
    ) -> "Masks":
        """Masks from whole numbers ``(N, *size)``: their sorted values become classes 0..K-1.

        Args:
            values: the numbers; negative ones are pixels of unknown class.
            what: what errors call them.
            classes: the names of the classes; None for the values themselves.
            unlabelled: a value that means "not known" too.
        """
        numbers = _whole(values, what)
        refuse_colour(unlabelled, what)
        found = [value for value in values_in(numbers) if value >= 0 and value != unlabelled]
        named = class_names(found, classes, what)
        codes = codes_of(numbers, np.array(found))
        return cls(torch.from_numpy(codes).unsqueeze(1), classes=named)

    def __getitem__(self, rows: Rows) -> Self:
        """The masks at ``rows``."""
        chosen = super().__getitem__(rows)
        chosen.classes = self.classes
        return chosen

    @property
    def shape(self) -> tuple[int, ...]:
        """``size`` of one mask: there are no channels."""
        return super().shape[1:]

    def load(self, rows: Rows | None = None, *, threads: bool = True) -> Tensor:
        """``(n, *size)`` int64 classes, -1 where a pixel's class is not known."""
        kept = super().load(rows, threads=threads).squeeze(1).to(torch.int64)
        return kept.masked_fill_(kept == KEPT_AS, UNLABELLED)

    def to_memory(self) -> Self:
        """The same masks as one tensor."""
        if self.is_in_memory:
            return self
        return type(self)(self._stored(), self.names, self.classes)


def values_in(numbers: np.ndarray) -> list[int]:
    """The different whole numbers in an array, sorted."""
    if numbers.dtype == np.uint8:  # counting is ten times faster than sorting
        return [int(k) for k in np.flatnonzero(np.bincount(numbers.ravel(), minlength=256))]
    flat = numbers.ravel()  # what begins a run is enough, and quicker to sort
    begins = np.concatenate([flat[:1], flat[1:][flat[1:] != flat[:-1]]])
    return [int(value) for value in np.unique(begins)]


def codes_of(numbers: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The place of each number among sorted ``values``, in bytes; 255 where it is not there."""
    if numbers.dtype == np.uint8:
        return codes_of(np.arange(256), values)[numbers]
    codes = np.searchsorted(values, numbers).clip(max=len(values) - 1)
    return np.where(values[codes] == numbers, codes, KEPT_AS).astype(np.uint8)


def class_names(values: list[int], classes: Sequence[str] | None, what: str) -> tuple[str, ...]:
    """The names of the classes that sorted ``values`` stand for, as many as there are."""
    if not values:
        raise DataError(f"{what}: no pixel has a class.")
    if len(values) > MOST_CLASSES and is_colour(values[-1]):
        raise DataError(f"{what} hold {too_many_colours(len(values))}")
    if len(values) > MOST_CLASSES:
        raise DataError(
            f"{what} hold {len(values)} different values, more than {MOST_CLASSES} classes. "
            "Masks hold a class per pixel; for numbers per pixel give them as arrays."
        )
    own = tuple(colour_name(value) if is_colour(value) else str(value) for value in values)
    if classes is None:
        return own
    if len(classes) != len(values):
        raise DataError(
            f"{what} hold the {len(values)} values {', '.join(own[:8])}; "
            f"{len(classes)} classes are named. Name each value's class, in order."
        )
    return tuple(str(name) for name in classes)


def too_many_colours(count: int) -> str:
    """The error of too many colours."""
    return (
        f"{count} different colours, more than {MOST_CLASSES} classes: compression (JPEG) and "
        "smoothed outlines invent colours. Save masks as PNG, one colour for each class."
    )


def refuse_colour(unlabelled: int | None, what: str) -> None:
    """Rejects a colour where masks hold numbers."""
    if is_colour(unlabelled):
        raise UsageError(f"{what} hold numbers: --unlabelled (unlabelled=) is one, no colour.")


def _whole(values: object, what: str) -> np.ndarray:
    array = values.cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if array.dtype.kind == "f":
        if not np.isfinite(array).all() or (array != np.round(array)).any():
            raise DataError(
                f"{what} hold numbers that are not whole; masks hold a class per pixel."
            )
    elif array.dtype.kind not in "biu":
        raise DataError(f"{what} hold values of type {array.dtype}; expected whole numbers.")
    if not 2 <= array.ndim <= 4 or 0 in array.shape:
        raise DataError(f"{what} have shape {array.shape}; expected (N, *size).")
    return array if array.dtype == np.uint8 else array.astype(np.int64)
