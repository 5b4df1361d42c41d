"""Data sets by name: a table, perhaps with images, and its target."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ansatz.data.bundles import BUNDLES, IMAGE_BUNDLES, ROWS
from ansatz.data.download import find_bundle
from ansatz.errors import UsageError
from ansatz.facts import Facts, as_html, as_text
from ansatz.registry import Registry

if TYPE_CHECKING:
    import pandas as pd

    from ansatz.data.graphs import Graph, Graphs
    from ansatz.data.grids import Grids, Masks


@dataclass(frozen=True, repr=False)
class Dataset:
    """A table with a question.

    Args:
        name: as in ``ansatz data list``.
        frame: all rows, target included.
        target: the column to predict; several where the outcome has several parts; ``"mask"``
            where it is a class per pixel.
        description: one sentence.
        license: what its publisher says.
        likelihood: a likelihood that suits the target; empty where none of the simple ones does.
        exclude: columns that give the target away.
        splits: the published splits, as (train, test) row numbers.
        grids: the images or volumes, one per row; None for tables.
        masks: a class for each of their pixels; None where there are none.
        graph: of which the rows are nodes, or many graphs; None for tables.

    Example:
        >>> from ansatz.data import load
        >>> iris = load("iris")
        >>> iris.frame.shape, iris.target, iris.likelihood
        ((150, 5), 'species', 'categorical')
    """

    name: str
    frame: "pd.DataFrame"
    target: str | tuple[str, ...]
    description: str
    license: str
    likelihood: str = ""
    exclude: tuple[str, ...] = ()
    splits: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
    grids: "Grids | None" = None
    masks: "Masks | None" = None
    graph: "Graph | Graphs | None" = None

    def __repr__(self) -> str:
        return as_text(*self._facts())

    def _repr_html_(self) -> str:
        return as_html(*self._facts())

    def _facts(self) -> tuple[str, Facts]:
        rows, columns = self.frame.shape
        size = "" if self.grids is None else f", grids of shape {self.grids.shape}"
        target = self.target if isinstance(self.target, str) else ", ".join(self.target)
        return f"Dataset '{self.name}': {rows:,} rows, {columns} columns{size}", [
            ("target", target),
            ("likelihood", self.likelihood),
            ("columns", ", ".join(map(str, self.frame.columns[:20]))),
            ("left out", ", ".join(self.exclude)),
            ("splits", len(self.splits)),
            ("about", self.description),
            ("license", self.license),
        ]

    def split(self, k: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Gives the row numbers (train, test) of the k-th published split."""
        if not 0 <= k < len(self.splits):
            raise UsageError(
                f"data set '{self.name}' has {len(self.splits)} published splits, asked for {k}."
            )
        return self.splits[k]


def _reader(row: dict[str, str]) -> Callable[[], Dataset]:
    """The reader of the data set that a row of ``datasets.csv`` describes."""

    def read() -> Dataset:
        if row["images"]:
            from ansatz.data.image_sets import read as read_parts
        else:
            from ansatz.data.published import read as read_parts
        stem, _, last = row["target"].partition("1-")  # rank1-43 are 43 columns
        names = [f"{stem}{k}" for k in range(1, int(last) + 1)] if last else stem.split()
        return Dataset(
            row["name"],
            target=names[0] if len(names) == 1 else tuple(names),
            description=row["summary"],
            license=row["license"],
            likelihood=row["likelihood"],
            exclude=tuple(row["exclude"].split()),
            **read_parts(row),
        )

    parts = [row["summary"], row["note"], f"References:\n    {row['reference']}"]
    read.__doc__ = "\n\n".join(part for part in parts if part)
    return read


registry = Registry("data set", {name: _reader(row) for name, row in ROWS.items()})
register = registry.register


def load(name: str) -> Dataset:
    """Loads the data set called ``name``: from ``$ANSATZ_DATA``, the cache, or the network.

    Example:
        >>> from ansatz.data import load
        >>> load("diabetes").target
        'progression'
    """
    dataset: Dataset = registry.create(name)
    return dataset


def names() -> list[str]:
    """Lists the names of all data sets.

    Example:
        >>> from ansatz.data import names
        >>> "abalone" in names()
        True
    """
    return registry.names()


class DatasetEntry(NamedTuple):
    """What is known of a data set before it is opened.

    Args:
        name: as in ``ansatz data list``.
        summary: one sentence.
        reference: who published it.
        rows: how many; None for one that was registered by hand.
        columns: their names; images have none.
        question: the options of ``ansatz.fit`` that the data set brings: its target and so on.
        note: what to know before using it.
        source: where the files come from.
        license: what its publisher says.
        images: whether it holds images or volumes.

    Example:
        >>> from ansatz.data.registry import describe
        >>> describe("rossi").question
        {'target': ['week'], 'event': 'arrest'}
    """

    name: str
    summary: str
    reference: str
    rows: int | None = None
    columns: tuple[str, ...] = ()
    question: dict[str, Any] = {}  # noqa: RUF012  # never changed
    note: str = ""
    source: str = ""
    license: str = ""
    images: bool = False


def describe(name: str) -> DatasetEntry:
    """Describes a data set without opening it: rows, columns, target, source, licence.

    Example:
        >>> from ansatz.data import describe
        >>> describe("abalone").summary[:8], describe("abalone").question
        ('Abalone:', {'target': ['rings']})
    """
    entry, row = registry.describe(name), ROWS.get(name)
    if row is None:
        return DatasetEntry(*entry)
    return DatasetEntry(
        *entry,
        rows=int(row["rows"]),
        columns=tuple(row["all_columns"].split(";")) if row["all_columns"] else (),
        question={"target": [row["target"]]} if row["images"] else own_question(name),
        note=row["note"],
        source=row["source"],
        license=row["license"],
        images=bool(row["images"]),
    )


def own_question(data: Any) -> dict[str, Any]:
    """Gives the options that a fit of a named table takes by itself: the target, and so on.

    Empty for other data; a file or folder of that name comes first.
    """
    row = ROWS.get(data) if isinstance(data, str) else None
    if row is None or row["images"] or Path(data).exists():
        return {}
    given = dict(word.split("=") for word in row["fit"].split())
    given = given or {"target": row["target"], "drop": ",".join(row["exclude"].split())}
    found: dict[str, Any] = {}
    for name, value in given.items():
        owner, dot, key = name.partition(".")
        if dot:  # an option of an option, as JSON
            found.setdefault(owner, {})[key] = json.loads(value)
        elif value:
            found[name] = _value(name, value)
    return found


def _value(name: str, text: str) -> Any:
    """A value of ``fit`` in ``datasets.csv``: lists have commas, numbers are numbers."""
    if name in ("target", "drop"):
        return text.split(",")
    if name == "parts":
        return [int(word) for word in text.split(",")]
    if name in ("horizon", "test"):
        return json.loads(text)
    return text


def fetch(name: str) -> Path:
    """Finds the folder of a data set's files, and downloads and verifies them if need be.

    Example:
        >>> from ansatz.data import fetch
        >>> fetch("iris").name
        'data'
    """
    registry.get(name)  # a wrong name suggests the nearest right one
    bundle = {**BUNDLES, **IMAGE_BUNDLES}.get(name)
    if bundle is not None:
        first, *_ = find_bundle(name, bundle)
        return first.parents[bundle.files[0].count("/")]
    import sklearn.datasets

    return Path(sklearn.datasets.__file__).parent / "data"
