"""Files of tagged sentences: CoNLL-U, columns with a blank line between sentences, JSON lines."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ansatz.data.files import checked_path, read_bytes
from ansatz.data.frames import as_frame
from ansatz.data.registry import load, names
from ansatz.data.sequences.reading import decode, read_texts
from ansatz.data.sequences.sentences import Sentences
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.tensor_structure import Read

CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
PART = "part"
Lists = list[list[Any]]


def read_tags(data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any]) -> Read:
    """Sentences with a list of tags each.

    Args:
        data: a file, a frame whose values are lists, or a data set of sentences.
        column_roles: the target names the column of tags: of CoNLL-U by its name (``upos``, the
            default), of other files by its number from 1; tokens are in the first.
        reader: the encoding.
    """
    target = column_roles.target[0] if column_roles.target else None
    if isinstance(data, str) and data in names() and not Path(data).exists():
        return _named(data, target)
    low = str(data).lower().removesuffix(".gz")
    if not isinstance(data, str | Path) or low.endswith((".jsonl", ".ndjson")):
        return _frame(data, target)
    text = decode(read_bytes(checked_path(data)), data, reader.get("encoding"))
    conllu = low.endswith((".conllu", ".conll-u"))
    target = target or ("upos" if conllu else "2")
    column = _column(target, conllu, text, str(data))
    words, tags = _sentences(text, str(data), column, conllu)
    if not words:
        raise DataError(f"{data} holds no sentences.")
    return Read(str(data), Sentences.of(words), _one_column(target, tags), target)


def _column(target: str, conllu: bool, text: str, origin: str) -> int:
    """The column of tags, from 0; of two columns, whatever it is called, the second."""
    if conllu and target in CONLLU[2:]:
        return CONLLU.index(target)
    if target.isdecimal() and int(target) > 1:
        return int(target) - 1
    if not conllu and len(next(filter(str.strip, text.splitlines()), "").split()) <= 2:
        return 1
    known = f"one of {', '.join(CONLLU[2:])}, or " if conllu else ""
    raise UsageError(f"{origin}: --target {target}: {known}the number of a column from 2 on.")


def _sentences(text: str, origin: str, column: int, conllu: bool) -> tuple[Lists, list[Any]]:
    words: Lists = []
    tags: list[Any] = []
    own: tuple[list[str], list[str | None]] = ([], [])
    first = next((line for line in text.splitlines() if line.strip() and line[0] != "#"), "")
    cut = "\t" if conllu or "\t" in first else None
    token, bare = (1, False) if conllu else (0, len(first.split(cut)) <= column)
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if not line.strip():
            if own[0] and own[0] != ["-DOCSTART-"]:
                words.append(own[0])
                tags.append(None if bare or not any(own[1]) else tuple(own[1]))
            own = ([], [])
            continue
        if conllu and line.startswith("#"):
            continue
        cells = line.rstrip("\r\n").split(cut)
        if conllu and not cells[0].isdecimal():  # of several words at once, or an empty node
            continue
        if len(cells) <= max(token, 0 if bare else column) or not cells[token]:
            raise DataError(
                f"{origin}, line {number} (sentence {len(words) + 1}): a token without a tag: "
                f"{len(cells)} columns, the tag is column {column + 1}."
            )
        own[0].append(cells[token])
        tag = None if bare else cells[column].strip()
        own[1].append(None if tag in ("", "_") else tag)
    return words, tags


def _one_column(target: str, tags: list[Any]) -> pd.DataFrame:
    column = np.empty(len(tags), dtype=object)
    column[:] = tags
    return pd.DataFrame({target: column})


def _frame(data: Any, target: str | None) -> Read:
    """A table whose values are lists: tokens in its first such column, else the target."""
    if isinstance(data, str | Path):
        origin, frame, _ = read_texts(data)
    else:
        origin, frame = "the table", as_frame(data)
    lists = [n for n in frame.columns if isinstance(frame[n].dropna().iloc[:1].max(), list | tuple)]
    others = [name for name in lists if name != target]
    if not others:
        raise DataError(f"{origin}: no column holds lists of words.")
    target = target or (lists[1] if len(lists) > 1 else "tags")
    beside = frame.drop(columns=others[0])
    if target in beside:
        given = [tuple(v) if isinstance(v, list | tuple) else None for v in beside[target]]
        beside[target] = _one_column(target, given)[target].to_numpy()
    else:
        beside[target] = None
    return Read(origin, Sentences.of(frame[others[0]].tolist()), beside, target)


def _named(name: str, target: str | None) -> Read:
    """A data set with a row for each word."""
    frame = load(name).frame
    if not {"sentence", "token"} <= set(frame.columns):
        raise UsageError(f"the data set {name} holds no tagged sentences.")
    target = target or "upos"
    starts = np.flatnonzero(frame["sentence"].diff().fillna(1).to_numpy() != 0)
    offsets = np.append(starts, len(frame))
    tags = [tuple(each) for each in np.split(frame[target].to_numpy(object), starts[1:])]
    beside = _one_column(target, tags)
    part = PART if PART in frame.columns else None
    if part:
        beside[part] = frame[part].to_numpy()[starts]
    words = frame["token"].to_numpy(object)
    return Read(name, Sentences(words, offsets), beside, target, part=part)
