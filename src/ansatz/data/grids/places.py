"""The place of one grid: a file, a page of a file, or a tile of either."""

from pathlib import Path
from typing import Literal, NamedTuple

Pages = Literal["auto", "first", "images", "volume"]


class Page(NamedTuple):
    """A page by its file and its place in it."""

    path: Path
    number: int

    def __str__(self) -> str:
        return f"{self.path} page {self.number + 1}"


Place = Path | Page  # where one image is


def file_of(place: Place) -> Path:
    """The file that an image is in."""
    return place.path if isinstance(place, Page) else place


class TilePlace(NamedTuple):
    """A tile by the file or page that it is cut from and its place in it."""

    place: "Place | TilePlace"
    number: int

    def __str__(self) -> str:
        return f"{self.place} tile {self.number + 1}"
