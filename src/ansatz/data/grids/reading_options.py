"""The names and types of what can be said about grids that are to be read."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, TypedDict

from ansatz.errors import UsageError


class GridOptions(TypedDict, total=False):
    """Options of :func:`~ansatz.data.grids.read_grids`, which describes them."""

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
    """Rejects a name that is not an option, with the nearest one that is."""
    known = GridOptions.__annotations__
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean '{near[0]}'?" if near else f"It has {', '.join(sorted(known))}."
            raise UsageError(f"read_grids has no option '{name}'. {hint}")
