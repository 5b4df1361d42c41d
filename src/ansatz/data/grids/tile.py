"""One tile of an example that is cut into several."""

from typing import NamedTuple

from ansatz.data.grids.page import Place


class Tile(NamedTuple):
    """A tile by the file or page that it is cut from and its place in it.

    Args:
        place: the file or page.
        number: 0 for the first tile; people count from 1.
    """

    place: "Place | Tile"
    number: int

    def __str__(self) -> str:
        return f"{self.place} tile {self.number + 1}"
