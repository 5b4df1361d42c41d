"""Colours as classes: whole numbers that no grey value has, named ``#rrggbb``."""

import re
from collections.abc import Iterable

import numpy as np

from ansatz.errors import UsageError

_FIRST = 1 << 32  # black; grey values have at most 32 bits
_NAME = re.compile("#[0-9a-f]{6}")
_GREY = 0x010101  # times a level: as much red, green and blue


def colours_of(levels: np.ndarray) -> np.ndarray:
    """The number of each colour, int64.

    Args:
        levels: red, green and blue in 0..255, ``(..., 3)``.
    """
    red, green, blue = (levels[..., k].astype(np.int64) for k in range(3))
    return (red << 16 | green << 8 | blue) + _FIRST


def greys_as_colours(levels: np.ndarray) -> np.ndarray:
    """The number of each grey value's colour, int64; negative values stay as they are."""
    greys = levels.astype(np.int64)
    return np.where(greys < 0, greys, greys * _GREY + _FIRST)


def is_colour(value: int | None) -> bool:
    """Whether a number is a colour's."""
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
    """Whether all classes are called like colours."""
    return all(_NAME.fullmatch(str(name)) for name in names)


def rgb_of(name: str) -> tuple[int, int, int]:
    """Red, green and blue of ``#rrggbb``."""
    red, green, blue = bytes.fromhex(name[1:])
    return red, green, blue
