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

    Example:
        >>> import numpy as np
        >>> from ansatz.data.grids.colours import colour_name, colours_of
        >>> colour_name(colours_of(np.array([255, 128, 0])))
        '#ff8000'
    """
    red, green, blue = (levels[..., k].astype(np.int64) for k in range(3))
    return (red << 16 | green << 8 | blue) + _FIRST


def greys_as_colours(levels: np.ndarray) -> np.ndarray:
    """The number of each grey value's colour, int64; negative values stay as they are.

    Example:
        >>> import numpy as np
        >>> from ansatz.data.grids.colours import colour_name, greys_as_colours
        >>> colour_name(greys_as_colours(np.array([16]))[0])
        '#101010'
    """
    greys = levels.astype(np.int64)
    return np.where(greys < 0, greys, greys * _GREY + _FIRST)


def is_colour(value: int | None) -> bool:
    """Whether a number is a colour's.

    Example:
        >>> import numpy as np
        >>> from ansatz.data.grids.colours import colours_of, is_colour
        >>> is_colour(255), is_colour(colours_of(np.array([0, 0, 0])))
        (False, True)
    """
    return value is not None and bool(value >= _FIRST)


def colour_name(value: int) -> str:
    """A colour's number as ``#rrggbb``.

    Example:
        >>> from ansatz.data.grids.colours import colour_name, colour_number
        >>> colour_name(colour_number("#00FF7f"))
        '#00ff7f'
    """
    return f"#{value - _FIRST:06x}"


def colour_number(name: str) -> int:
    """The number of a colour called ``#rrggbb``.

    Example:
        >>> from ansatz.data.grids.colours import colour_number
        >>> colour_number("#000001") - colour_number("#000000")
        1
    """
    if not _NAME.fullmatch(name.lower()):
        raise UsageError(f"unlabelled is a number, or a colour like '#000000', got '{name}'.")
    return int(name[1:], 16) + _FIRST


def are_colours(names: Iterable[object]) -> bool:
    """Whether all classes are called like colours.

    Example:
        >>> from ansatz.data.grids.colours import are_colours
        >>> are_colours(["#000000", "#ff0000"]), are_colours(["0", "255"])
        (True, False)
    """
    return all(_NAME.fullmatch(str(name)) for name in names)


def rgb_of(name: str) -> tuple[int, int, int]:
    """Red, green and blue of ``#rrggbb``.

    Example:
        >>> from ansatz.data.grids.colours import rgb_of
        >>> rgb_of("#ff8000")
        (255, 128, 0)
    """
    red, green, blue = bytes.fromhex(name[1:])
    return red, green, blue
