"""Files found, each with its row; nothing of them read yet."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import numpy as np

from ansatz.data.grids.places import Page, Place
from ansatz.errors import DataError

ARRAYS = frozenset({".npy", ".nii"})
ADVICE = " To leave such files out: --skip-corrupt (on_corrupt='skip')."
_DEEPEST = 8  # folders below the one given
SUFFIXES = frozenset(
    ".png .jpg .jpeg .jpe .jfif .webp .bmp .gif .tif .tiff .pgm .ppm .pbm .pnm".split()
)
UNREAD = frozenset(  # pictures to people, but not to us
    ".svg .pdf .fits .fit .heic .heif .avif .psd .eps .ps .dcm .jp2 .jxl .raw .cr2 .nef".split()
)
_FAMILIES = {"image": SUFFIXES | UNREAD, "array": ARRAYS}


@dataclass
class Listing:
    """Paths, what they are called, and the columns that came with them.

    Args:
        origin: what errors call the data.
        paths: one file per example.
        names: what the files are called in tables.
        columns: further columns by name, as long as ``paths``.
        masks: the file of each example's mask; empty where there are no masks.
        notes: what was assumed.
        target: the column to predict if nobody says.
        pages: which page of its file each example is, 0 for the first, None for the whole file;
            empty where all are whole files.
    """

    origin: str
    paths: list[Path]
    names: list[str]
    columns: dict[str, list[object]] = field(default_factory=dict)
    masks: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    target: str | None = None
    pages: list[int | None] = field(default_factory=list)

    @property
    def places(self) -> list[Place]:
        """The place of each example."""
        return self._on_pages(self.paths)

    @property
    def mask_places(self) -> list[Place]:
        """The place of each example's mask."""
        return self._on_pages(self.masks)

    def _on_pages(self, paths: list[Path]) -> list[Place]:
        if not self.pages:
            return list(paths)
        found = zip(paths, self.pages, strict=False)  # there may be no masks
        return [path if page is None else Page(path, page) for path, page in found]

    def one(self, place: int) -> "Listing":
        """The file at a place alone, without a mask."""
        columns = {name: [cells[place]] for name, cells in self.columns.items()}
        pages = self.pages[place : place + 1]
        paths, names = [self.paths[place]], [self.names[place]]
        return Listing(self.origin, paths, names, columns, pages=pages)


def family(path: Path) -> str | None:
    """``"image"`` or ``"array"`` by the ending of a file's name; None for anything else."""
    ending = path.suffix.lower()
    if ending == ".gz":
        ending = Path(path.stem).suffix.lower()
        return "array" if ending == ".nii" else None
    return next((name for name, endings in _FAMILIES.items() if ending in endings), None)


def files_below(folder: Path) -> list[Path]:
    """The images or arrays in a folder and the folders in it, in the order people count.

    Hidden files are not looked at, links to folders not followed.
    """
    found: list[Path] = []
    for here, folders, files in os.walk(folder, onerror=_refuse):
        depth = len(Path(here).relative_to(folder).parts)
        folders[:] = [each for each in folders if not each.startswith(".") and depth < _DEEPEST]
        names = (Path(here) / each for each in files if not each.startswith("."))
        found += [path for path in names if family(path)]
    return sorted(found, key=natural)


def entries(folder: Path) -> tuple[list[Path], list[Path]]:
    """The folders and the files in a folder, hidden ones left out, in the order people count."""
    try:
        found = sorted(_visible(folder), key=natural)
    except OSError as error:
        _refuse(error)
    is_folder = [path.is_dir() for path in found]
    folders = [path for path, yes in zip(found, is_folder, strict=True) if yes]
    return folders, [path for path, yes in zip(found, is_folder, strict=True) if not yes]


def natural(path: Path) -> list[tuple[int, int, str]]:
    """A key for sorting by which ``9.png`` comes before ``10.png``."""
    parts = re.split(r"([0-9]{1,18})", str(path))
    return [(1, int(p), "") if k % 2 else (0, 0, p) for k, p in enumerate(parts)]


def _visible(folder: Path) -> Iterator[Path]:
    return (path for path in folder.iterdir() if not path.name.startswith("."))


def _refuse(error: OSError) -> NoReturn:
    raise DataError(f"{error.filename} cannot be read: {error.strerror or error}.") from None


def report_damaged(
    damaged: dict[int, DataError], count: int, skips: bool, notes: list[str]
) -> np.ndarray:
    """Returns the readable places; raises or notes an error about the others."""
    if damaged:
        first, *others = (str(damaged[place]) for place in sorted(damaged))
        many = f" {len(others)} more cannot be read." if others else ""
        if not skips:
            raise DataError(f"{first}{many}{ADVICE}")
        if len(damaged) == count:
            raise DataError(f"{first}{many} Nothing is left.")
        listed = " ".join([first, *others[:4]])
        notes.append(f"{len(damaged)} of {count} files left out: {listed}")
    return np.array([place for place in range(count) if place not in damaged], np.int64)
