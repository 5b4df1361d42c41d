"""Work on files by a few threads, neighbouring pages of one file together."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

from ansatz.data.grids.image_file import kept_open
from ansatz.data.grids.page import Page, Place
from ansatz.data.grids.pool import in_order
from ansatz.data.grids.tile import Tile

R = TypeVar("R")
_LONGEST = 256  # pages


def in_runs(
    function: Callable[[int], R],
    numbers: Sequence[int],
    places: Sequence[Place | Tile],
    *,
    ahead: int,
) -> Iterator[R]:
    """``map(function, numbers)`` by threads, where each number stands for a file or a page.

    Neighbouring pages of one file are one thread's work, which opens the file once.

    Args:
        function: what is done with a number.
        numbers: in the order of the results.
        places: the file or page at each number.
        ahead: numbers begun before their turn.
    """

    def work(run: list[int]) -> list[R]:
        with kept_open():
            return [function(number) for number in run]

    runs = list(_runs(numbers, places, min(_LONGEST, ahead)))
    longest = max(map(len, runs), default=1)
    for found in in_order(work, runs, ahead=max(1, ahead // longest)):
        yield from found


def _runs(
    numbers: Sequence[int], places: Sequence[Place | Tile], longest: int
) -> Iterator[list[int]]:
    def key(number: int) -> object:
        place = places[number]
        return place.path if isinstance(place, Page) else number

    for _, group in groupby(numbers, key):
        run = list(group)
        yield from (run[start : start + longest] for start in range(0, len(run), longest))
