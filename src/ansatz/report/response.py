"""The numbers of a prediction whose dependence on a column can be drawn."""

from typing import NamedTuple

MOST = 3  # curves in one panel


class Response(NamedTuple):
    """What is drawn: the names of the numbers, and where a time is part of them."""

    names: tuple[str, ...]
    picks: tuple[int, ...]  # which of a vector
    horizon: float = 0.0
