"""Documents for language models: files of text, columns of texts, folders."""

from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

from ansatz.data.files import checked_path, read_bytes
from ansatz.data.sequences.reading import decode, read_texts
from ansatz.data.sequences.sequences import Texts, is_texts
from ansatz.errors import DataError, UsageError

MANY = 20  # documents from which on whole documents are validation and test


def read_documents(
    data: Any, text: str | None = None, **options: Any
) -> tuple[str, list[str], list[str]]:
    """What errors call the data, the documents, and notes.

    Args:
        data: a file ``.txt`` or ``.txt.gz``, whatever :func:`read_texts` takes, or texts.
        text: the column of texts.
        options: of the reader; ``encoding`` for text.
    """
    notes: list[str] = []
    if isinstance(data, str | PathLike) and _is_plain(Path(data)):
        path = checked_path(data)
        found = [decode(read_bytes(path), data, options.get("encoding"))]
        origin = str(data)
    elif not isinstance(data, str | PathLike) and (isinstance(data, Texts) or is_texts(data)):
        origin, found = "the texts", Texts(getattr(data, "texts", data)).texts.tolist()
    else:
        origin, frame, notes = read_texts(data, text, **options)
        name = text or _text_column(frame, origin)
        if name not in frame.columns:
            known = ", ".join(map(str, frame.columns))
            raise UsageError(f"{origin}: no column '{name}'. Columns: {known}.")
        found = Texts(frame[name]).texts.tolist()
    found = [each for each in found if each]
    if not any(each.strip() for each in found):
        raise DataError(f"{origin} is empty: it holds no text.")
    zero = sum(each.count("\0") for each in found)
    if zero:
        notes = [*notes, f"NUL characters, read as spaces: {zero}."]
    return origin, found, notes


def _is_plain(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith(".txt") and not path.is_dir()


def _text_column(frame: Any, origin: str) -> str:
    named = [n for n in frame.columns if isinstance(next(iter(frame[n].dropna()), None), str)]
    if len(named) == 1 or "text" in named:
        return "text" if "text" in named else str(named[0])
    if not named:
        raise UsageError(f"{origin}: no column holds text.")
    listed = ", ".join(map(str, named))
    raise UsageError(f"{origin}: several columns hold text: {listed}. Name one: --text {named[0]}.")


def split_documents(
    documents: list[str], test: float, valid: float, seed: int
) -> list[list[tuple[str, int]]]:
    """Splits documents into training (0), validation (1) and test (2).

    Of many documents whole ones are chosen by the hash of their content, so that duplicates stay
    together. Of a few, the test is the end of the stream and validation what precedes it.

    Args:
        documents: texts.
        test: share of the test.
        valid: share of validation.
        seed: of the hash.
    """
    import numpy as np

    ends = (1 - test - valid, 1 - test)
    if len(documents) >= MANY:
        keys = Texts(documents).content_keys(seed)
        rank = np.searchsorted(np.unique(keys), keys) / len(np.unique(keys))
        parts = (rank[:, None] >= np.array(ends) - 1e-12).sum(1)
        return [[(text, int(k))] for text, k in zip(documents, parts, strict=True)]
    total, at = sum(map(len, documents)), 0
    cuts = [round(total * each) for each in ends]
    found = []
    for text in documents:
        inside = [min(max(cut - at, 0), len(text)) for cut in cuts]
        bounds = [0, *inside, len(text)]
        pieces = [(text[a:b], k) for k, (a, b) in enumerate(pairwise(bounds))]
        found.append([piece for piece in pieces if piece[0]])
        at += len(text)
    return found
