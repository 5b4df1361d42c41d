"""Data for a fitted model, read as those of its fit were."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ansatz.errors import UsageError
from ansatz.fitting.contracts.outcome import Metrics
from ansatz.fitting.contracts.rows import Rows
from ansatz.fitting.split import warn_of_duplicates

if TYPE_CHECKING:
    import pandas as pd

Notify = Callable[[str], None]  # takes a sentence about what was read


class Written(NamedTuple):
    """A report of written predictions that are not a table."""

    document: dict[str, Any]
    sentence: str  # the same for a terminal


class ReadAgain:
    """Holds all rows to predict or to evaluate by as one table in memory.

    A structure whose rows come in chunks, or whose predictions are written otherwise than as a
    table, returns a subclass from ``read_again``.

    Args:
        table: what ``predict_frame`` and ``evaluate`` of an estimator take; ``table[mask]`` gives
            some of its rows.
    """

    in_chunks: ClassVar[bool] = False  # whether ``frames`` yields more than one table
    table: Any

    def __init__(self, table: Any) -> None:
        self.table = table

    @property
    def names(self) -> Mapping[str, Sequence[str]]:
        """Columns that name the rows, written before their predictions."""
        return {}

    def take(self, mask: NDArray[np.bool_]) -> Any:
        """Some rows of the table."""
        return self.table[mask]

    def rows(self, estimator: Any, most: int) -> Rows:
        """The first rows, as a network's encoder takes them."""
        found: Rows = estimator.rows(self.table)
        return found[slice(0, most)]

    def frames(self, estimator: Any, **options: Any) -> "Iterator[pd.DataFrame]":
        """Predicts the rows by an estimator, table by table."""
        found = estimator.predict_frame(self.table, **options)
        for place, (name, values) in enumerate(self.names.items()):
            found.insert(place, name, list(values))
        yield found

    def writes(self, path: Path) -> bool:
        """Tests whether predictions go to such a path in a form of their own, by :meth:`write`."""
        return False

    def write(self, estimator: Any, path: Path, *, overwrite: bool) -> Written:
        """Writes predictions in a form of their own, whole or not at all."""
        raise UsageError(f"--out {path}: predictions are CSV; name the file something.csv.")

    def evaluate(self, estimator: Any) -> tuple[Metrics, list[str]]:
        """Evaluates an estimator on the rows; the sentences warn of duplicates of training rows."""
        metrics: Metrics = estimator.evaluate(self.table, warn=False)
        mask = estimator.duplicates(self.table)
        rest = mask.any() and not mask.all()
        honest = estimator.evaluate(self.take(~mask), warn=False) if rest else None
        return metrics, warn_of_duplicates(mask, honest)
