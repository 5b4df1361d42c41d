"""From features of nodes or edges to numbers; all that is learned comes from training rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from torch import Tensor

from ansatz.data import Preprocessor
from ansatz.data.graphs.features import Features
from ansatz.errors import DataError
from ansatz.layers.graph_batch import SparseRows

MANY = 50  # columns from which on an array of mostly zeros is held without them
DENSE = 0.2  # share of numbers that are not 0, above which it is not
EMBED_ABOVE = 10**9  # networks of graphs take levels as indicators


class FeatureMap:
    """The map of the features of nodes or edges to the numbers that a network takes.

    Tables are standardised and coded as tables are. Sparse rows without negative numbers (counts
    of words) are divided by their sums. Nodes without features get 1 and the logarithm of one more
    than their number of edges.

    Args:
        state: ``kind`` is ``"table"``, ``"sparse"`` or ``"degree"``; what belongs to it.
    """

    def __init__(self, state: Mapping[str, Any]) -> None:
        self.kind = str(state["kind"])
        self.count = int(state.get("count", 0))
        self.shares = bool(state.get("shares", False))
        table = state.get("table")
        self.table = None if table is None else Preprocessor.from_state(table)

    @classmethod
    def fit(cls, x: Features, rows: NDArray[Any], weight: NDArray[Any] | None) -> "FeatureMap":
        """Learns the map from some rows of x, each of which counts by its weight."""
        count = int(x.shape[1])
        if not count:
            return cls({"kind": "degree"})
        if issparse(x) or _is_sparse(x):
            found = csr_matrix(x)[rows]
            return cls({"kind": "sparse", "count": count, "shares": not (found.data < 0).any()})
        part = x.iloc[rows] if hasattr(x, "iloc") else x[rows]
        table = Preprocessor.fit(part, weight=weight, embed_above=EMBED_ABOVE, dtype=torch.float64)
        return cls({"kind": "table", "count": count, "table": table.state()})

    @property
    def features(self) -> int:
        """The number of features of the result."""
        if self.kind == "degree":
            return 2
        return self.count if self.table is None else len(self.table.feature_names)

    @property
    def names(self) -> list[str]:
        """The names of the features of the result."""
        if self.kind == "degree":
            return ["1", "log degree"]
        own = None if self.table is None else self.table.feature_names
        return [f"x{k + 1}" for k in range(self.count)] if own is None else list(own)

    @property
    def notes(self) -> list[str]:
        """Notes on columns that were left out, filled or coded."""
        return [] if self.table is None else self.table.notes

    def encode(
        self, x: Features, degrees: NDArray[np.int64], notes: list[str] | None
    ) -> "Tensor | SparseRows":
        """The numbers of all rows in float64, sparse where x is."""
        if self.kind == "degree":
            both = np.stack([np.ones(len(degrees)), np.log1p(degrees)], 1)
            return torch.from_numpy(both)
        if int(x.shape[1]) != self.count and self.table is None:
            raise DataError(
                f"the graph has {x.shape[1]} features of a node, the model was trained on "
                f"{self.count}."
            )
        if self.table is not None:
            (found,) = self.table.transform(x, clip=True, notes=notes)
            return found.double()
        rows = csr_matrix(x).astype(np.float64)
        rows.eliminate_zeros()
        if self.shares:
            total = np.asarray(rows.sum(1)).ravel()
            total[total == 0] = 1.0
            rows = csr_matrix(rows.multiply(1 / total[:, None]))
        rows.sort_indices()
        parts = (rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64))
        values, columns, offsets = map(torch.from_numpy, parts)
        return SparseRows.from_csr(values, columns, offsets, self.count)

    def state(self) -> dict[str, Any]:
        """All of it as JSON."""
        table = None if self.table is None else self.table.state()
        return {"kind": self.kind, "count": self.count, "shares": self.shares, "table": table}


def _is_sparse(x: Features) -> bool:
    """Tests whether an array of many columns holds mostly zeros, and nothing missing."""
    if hasattr(x, "iloc") or x.shape[1] < MANY or np.isnan(x).any():
        return False
    return bool((x != 0).mean() < DENSE)
