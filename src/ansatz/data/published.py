"""Reads the tables that ``datasets.csv`` describes."""

from pathlib import Path
from typing import Any

import numpy as np

from ansatz.data.bundles import BUNDLES
from ansatz.data.download import find_bundle
from ansatz.data.files import read_bytes
from ansatz.data.table import read_table
from ansatz.errors import DataError

Row = dict[str, str]


def read(row: Row) -> dict[str, Any]:
    """The frame of a data set and, where they are published, its splits."""
    names = row["columns"].split()
    if not row["folder"]:
        return {"frame": _sklearn(row)}
    paths = find_bundle(row["name"], BUNDLES[row["name"]])
    if row["files"] == "@splits":
        return _with_splits(row["name"], names, paths)
    if row["name"] == "adult":
        return _adult(names, paths)
    if row["columns"] == "tags":
        return _tagged(paths)
    if row["columns"] == "triples":
        return _triples(paths)
    if row["columns"] == "graph":
        return _graph(paths)
    if row["columns"] == "pairs":
        return {"frame": _pairs(paths)}
    if row["name"] == "tinyshakespeare":
        return {"frame": _document(paths[0])}
    if row["columns"] == "text":
        return {"frame": _sentences(row["target"], paths)}
    if paths[0].suffix == ".npz":
        return _survival(paths[0])
    return {"frame": read_table(paths[0], header=not names, names=names or None).frame}


def _sklearn(row: Row) -> Any:
    """A small table that comes with scikit-learn; classes by their names."""
    import sklearn.datasets

    options = {"scaled": False} if row["name"] == "diabetes" else {}
    found = getattr(sklearn.datasets, row["files"])(as_frame=True, **options)
    frame = found.frame.rename(columns={"target": row["target"]})
    if "target_names" in found:
        frame[row["target"]] = [str(found.target_names[code]) for code in found.target]
    return frame


def _with_splits(name: str, names: list[str], paths: list[Path]) -> dict[str, Any]:
    """A table of numbers, the target last, with 20 splits given as row numbers."""
    data, features, target, *parts = paths
    frame = read_table(data, delimiter="whitespace", header=False, names=names).frame
    expected = [*range(len(names) - 1)], [len(names) - 1]
    if (_numbers(features).tolist(), _numbers(target).tolist()) != expected:
        raise DataError(f"data set '{name}' has its target in an unexpected column.")
    rows = [_numbers(path) for path in parts]
    return {"frame": frame, "splits": tuple(zip(rows[0::2], rows[1::2], strict=True))}


def _numbers(path: Path) -> np.ndarray:
    return np.loadtxt(path, ndmin=1).astype(np.int64)


def _adult(names: list[str], paths: list[Path]) -> dict[str, Any]:
    import pandas as pd

    how: dict[str, Any] = {"header": False, "names": names, "missing": ["?"], "comment": "|"}
    parts = [read_table(path, **how).frame for path in paths]
    frame = pd.concat(parts, ignore_index=True)
    frame["income"] = frame["income"].str.rstrip(".")  # the test file ends its labels with a stop
    return {"frame": frame, "splits": split_at(len(parts[0]), len(frame))}


def _sentences(target: str, paths: list[Path]) -> Any:
    """A sentence in every line; the class is the ending of its file."""
    import pandas as pd

    parts = [
        pd.DataFrame({"text": path.read_text("cp1252").splitlines(), target: path.suffix[1:]})
        for path in paths
    ]
    return pd.concat(parts, ignore_index=True)


def _tagged(paths: list[Path]) -> dict[str, Any]:
    """A row for each word; an empty line ends a sentence."""
    import pandas as pd

    rows: list[tuple[Any, ...]] = []
    sentence, cut = 1, 0
    for path, part in zip(paths, ("train", "validation", "test"), strict=True):
        cut = len(rows)
        for line in read_bytes(path).decode("utf-8").splitlines():
            if line:
                rows.append((sentence, *line.split("\t"), part))
            else:
                sentence += bool(rows) and rows[-1][0] == sentence
        sentence += bool(rows) and rows[-1][0] == sentence
    frame = pd.DataFrame(rows, columns=["sentence", "token", "upos", "xpos", "part"])
    return {"frame": frame, "splits": split_at(cut, len(frame))}


def _pairs(paths: list[Path]) -> Any:
    """A sentence in every line of a file, its translation in the same line of the next."""
    import pandas as pd

    texts = [read_bytes(path).decode("utf-8").removesuffix("\n").split("\n") for path in paths]
    parts = [
        pd.DataFrame({"source": source, "target": target, "part": part})
        for source, target, part in zip(
            texts[0::2], texts[1::2], ("train", "validation", "test"), strict=True
        )
    ]
    return pd.concat(parts, ignore_index=True)


def _triples(paths: list[Path]) -> dict[str, Any]:
    """Head, relation and tail in each line of three files, for training, validation and test."""
    import pandas as pd

    columns, parts = ["head", "relation", "tail"], ("train", "validation", "test")
    frames = [
        read_table(path, delimiter="\t", header=False, names=columns, text=columns).frame.assign(
            part=part
        )
        for path, part in zip(paths, parts, strict=True)
    ]
    cut = sum(len(frame) for frame in frames[:-1])
    frame = pd.concat(frames, ignore_index=True)
    return {"frame": frame, "splits": split_at(cut, len(frame))}


def _graph(paths: list[Path]) -> dict[str, Any]:
    """One graph with the outcomes of its nodes, or many; outcomes are words."""
    from ansatz.data.graphs.files import read_npz, read_tu

    found = read_npz(paths[0]) if paths[0].suffix == ".npz" else read_tu(paths[0].parent)
    assert found.target is not None
    outcome = found.frame[found.target].astype(str).astype(object)
    if found.known is not None:
        outcome = outcome.where(found.known, None)
    return {"graph": found.graph, "frame": found.frame.assign(**{found.target: outcome})}


def _document(path: Path) -> Any:
    """One text."""
    import pandas as pd

    return pd.DataFrame({"text": [path.read_text("utf-8")]})


def _survival(path: Path) -> dict[str, Any]:
    import pandas as pd

    with np.load(path, allow_pickle=False) as arrays:
        x, time, event = (
            np.concatenate([arrays[f"train_{k}"], arrays[f"test_{k}"]]) for k in ("x", "t", "e")
        )
        cut = len(arrays["train_t"])
    frame = pd.DataFrame(x, columns=[f"x{k}" for k in range(1, x.shape[1] + 1)])
    frame["time"], frame["event"] = time, event
    return {"frame": frame, "splits": split_at(cut, len(frame))}


def split_at(cut: int, count: int) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """One split: the rows before ``cut`` train, the others test."""
    return ((np.arange(cut), np.arange(cut, count)),)
