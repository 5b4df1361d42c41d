"""One piece of an example that is cut into several."""

from typing import NamedTuple

from ansatz.data.grids.page import Place


class Piece(NamedTuple):
    """A piece by the file or page that it is cut from and its place in it.

    Args:
        place: the file or page.
        number: 0 for the first piece; people count from 1.

    Example:
        >>> from pathlib import Path
        >>> from ansatz.data.grids.piece import Piece
        >>> str(Piece(Path("a.npy"), 1))
        'a.npy piece 2'
    """

    place: "Place | Piece"
    number: int

    def __str__(self) -> str:
        return f"{self.place} piece {self.number + 1}"
