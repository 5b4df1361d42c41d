"""Recognizes sets and point clouds that stand in their own containers."""

from typing import Any

from ansatz.data.sets.sets import Elements, Sets


def are_sets(X: Any) -> bool:
    """Tests whether X is a container of sets, or of their elements."""
    owner = X.sets if isinstance(X, Elements) else X
    return type(owner) is Sets
