"""The names and types of what can be said about grids that are to be read."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, TypedDict

from ansatz.errors import UsageError


class GridOptions(TypedDict, total=False):
    """Options of :func:`~ansatz.data.grids.read_grids`, which describes them.

    Example:
        >>> from ansatz.data.grids.reading_options import GridOptions
        >>> GridOptions(size=32, pages="images")["size"]
        32
    """

    size: int | Sequence[int] | None
    channels: int | str | None
    image: str | None
    masks: Any
    pages: str
    tiles: int | None
    classes: Sequence[str] | None
    unlabelled: int | str | None
    signals: bool
    target: Sequence[str]
    outcomes: bool
    shares: bool | None
    limit_pixels: int
    limit_bytes: int
    on_corrupt: str
    memory_limit: str | int | None


def require_known(names: Iterable[str]) -> None:
    """Rejects a name that is not an option, with the nearest one that is.

    Example:
        >>> from ansatz.data.grids.reading_options import require_known
        >>> require_known(["sise"])
        Traceback (most recent call last):
        ...
        ansatz.errors.UsageError: read_grids has no option 'sise'. Did you mean 'size'?
    """
    known = GridOptions.__annotations__
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean '{near[0]}'?" if near else f"It has {', '.join(sorted(known))}."
            raise UsageError(f"read_grids has no option '{name}'. {hint}")
