"""Which structure data have: as it was said, else the first that recognizes them."""

from collections.abc import Mapping
from typing import Any

from ansatz import structures
from ansatz.structures.registry import DEFAULT


def structure_of(
    data: Any, asked: str | None = None, options: Mapping[str, Any] | None = None
) -> str:
    """The structure of data for a fit, by name.

    Args:
        data: what ``ansatz.fit`` was given.
        asked: the structure that was asked for; a wrong name suggests the nearest right one.
        options: of the reader.
    """
    if asked is not None and asked != "auto":
        structures.registry.get(asked)
        return asked
    return _first(lambda member: member.recognizes(data, options or {}))


def structure_of_rows(X: Any, asked: str = "auto") -> str:
    """The structure of what was handed to an estimator as X, by name."""
    if asked != "auto":
        structures.registry.get(asked)
        return asked
    return _first(lambda member: member.recognizes_rows(X))


def _first(recognizes: Any) -> str:
    for name in structures.names():
        if name != DEFAULT and recognizes(structures.registry.get(name)):
            return name
    return DEFAULT
