"""One page of a file that holds several: a TIFF stack, an animation."""

from pathlib import Path
from typing import Literal, NamedTuple

Pages = Literal["auto", "first", "images", "volume"]


class Page(NamedTuple):
    """A page by its file and its place in it.

    Args:
        path: the file.
        number: 0 for the first page; people count from 1.
    """

    path: Path
    number: int

    def __str__(self) -> str:
        return f"{self.path} page {self.number + 1}"


Place = Path | Page  # where one image is


def file_of(place: Place) -> Path:
    """The file that an image is in."""
    return place.path if isinstance(place, Page) else place
