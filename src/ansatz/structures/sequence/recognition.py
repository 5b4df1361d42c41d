"""Recognizes texts and signals of unequal length by a cheap look that loads no reader."""

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ansatz.data.grids.listing import family
from ansatz.data.sequences.sequences import Sequences, Texts, is_texts


def recognizes_data(data: Any) -> bool:
    """Tests whether data are a folder of text files or a file of JSON lines."""
    if not isinstance(data, str | PathLike):
        return isinstance(data, Texts | Sequences)
    name = Path(data).name.lower().removesuffix(".gz")
    if name.endswith((".jsonl", ".ndjson")):
        return True
    return Path(data).is_dir() and next(text_files(Path(data)), None) is not None


def text_files(folder: Path) -> Any:
    """The text files of a folder and of the folders in it."""
    for depth in ("*.txt", "*/*.txt"):
        yield from sorted(folder.glob(depth))


def recognizes_rows(X: Any) -> bool:
    """Tests whether X can only be texts, or arrays of several lengths and one width."""
    if isinstance(X, Texts | Sequences):
        return True
    if is_texts(X):
        first = X.iloc[0] if hasattr(X, "iloc") else X[0]
        return family(Path(str(first)[:200])) is None
    if not isinstance(X, list | tuple) or len(X) < 2:
        return False
    shapes = {tuple(getattr(each, "shape", ())) for each in X}
    ranks, widths = {len(shape) for shape in shapes}, {shape[1:] for shape in shapes}
    return ranks == {2} and len(shapes) > 1 and len(widths) == 1 and not _are_images(X[0])


def _are_images(first: Any) -> bool:
    return getattr(np.asarray(first), "dtype", None) == np.uint8
