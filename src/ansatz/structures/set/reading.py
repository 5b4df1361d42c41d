"""Reads sets: the rows of a long table, or the arrays of a file."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ansatz.data.files import checked_path
from ansatz.data.sequences.reading import read_texts
from ansatz.data.sequences.visits import in_order
from ansatz.data.sets.sets import Sets
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles, near_columns
from ansatz.fitting.tensor_structure import Read


def read_sets(data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any], kind: Any) -> Read:
    """A set for each value of the identifier of a long table, or for each row of arrays.

    Args:
        data: a table, ``.npz`` arrays ``x`` and ``offsets``, a mapping of those, or where it is.
        column_roles: of the sets; ``identifier`` names the set that a row is an element of.
        reader: options of a table's reader; ``labels`` names the outcomes of elements.
        kind: the class of the examples.
    """
    reader = dict(reader)
    labels = reader.pop("labels", None)
    arrays = _arrays(data)
    if arrays is not None:
        return _of_arrays(*arrays, labels, kind, again=bool(column_roles.target))
    identifier = column_roles.identifier
    if identifier is None:
        raise UsageError("sets of a table need the column that names the set of a row: --id COL.")
    drop = reader.pop("drop", ())
    origin, frame, notes = read_texts(data, None, **reader)
    if identifier not in frame.columns:
        raise UsageError(
            f"{origin}: no column '{identifier}' (--id). {near_columns(identifier, frame)}"
        )
    frame, offsets, _ = in_order(frame.reset_index(drop=True), identifier, None, origin)
    lines, frame = frame.index.to_numpy(), frame.reset_index(drop=True)
    return of_table(frame, offsets, lines, origin, tuple(notes), column_roles, labels, drop)


def of_table(
    frame: pd.DataFrame,
    offsets: Any,
    lines: Any,
    origin: str,
    notes: tuple[str, ...],
    column_roles: ColumnRoles,
    labels: str | None,
    drop: Any,
) -> Read:
    """Sets of a table whose rows stand together, or its elements where these have labels."""
    identifier = str(column_roles.identifier)
    named = [*column_roles.outcome_columns, column_roles.event, column_roles.entry]
    named += [column_roles.strata, column_roles.trials, column_roles.weights, column_roles.offset]
    named += [column_roles.exposure, column_roles.group, column_roles.time, labels]
    names = {str(n).rpartition("=")[0] if n not in frame.columns else str(n) for n in named if n}
    special = {name for name in names if name in frame.columns} | {identifier}
    first = offsets[:-1]
    if labels is None:
        for name in sorted(special - {identifier}):
            codes, _ = pd.factorize(frame[name])
            varies = np.flatnonzero(codes != np.repeat(codes[first], np.diff(offsets)))
            if len(varies):
                row = int(varies[0])
                raise DataError(
                    f"{origin}, row {lines[row] + 1}: '{name}' varies within {identifier} "
                    f"{frame[identifier].iloc[row]}; a set has one. For an outcome of every "
                    f"element: --labels {name}."
                )
    gone = [*special, *(name for name in drop if name in frame.columns)]
    features = frame.drop(columns=gone)
    if not features.shape[1]:
        raise UsageError(f"{origin}: no column is left to predict from.")
    ids = frame[identifier].to_numpy()[first]
    sets = Sets(features, offsets, None, ids)
    kept = sorted(special, key=frame.columns.get_loc)
    if labels is None:
        beside = frame.iloc[first][kept].reset_index(drop=True)
        return Read(origin, sets, beside, None, notes)
    if labels not in frame.columns and not column_roles.target:  # else they are to be predicted
        raise UsageError(
            f"{origin}: no column '{labels}' (--labels). {near_columns(labels, frame)}"
        )
    order = np.argsort(lines, kind="stable")  # as the rows of the file stand
    beside = frame[kept].iloc[order].reset_index(drop=True)
    return Read(origin, sets.elements()[order], beside, labels, notes)


def _arrays(data: Any) -> tuple[str, dict[str, Any]] | None:
    """The arrays of a file or a mapping that holds ``x``; None for a table."""
    if isinstance(data, Mapping) and np.ndim(data.get("x", 0)) >= 2:
        return "the arrays", dict(data)
    if not isinstance(data, str | PathLike) or not str(data).lower().endswith(".npz"):
        return None
    path = checked_path(data)
    try:
        with np.load(path, allow_pickle=False) as found:
            return str(data), {name: found[name] for name in found.files}
    except (ValueError, OSError, EOFError) as error:
        what = "it holds Python objects" if "allow_pickle" in str(error) else str(error)
        raise DataError(
            f"{data}: {what}. Store numbers: np.savez(file, x=..., offsets=...)."
        ) from (None)


def _of_arrays(
    origin: str, arrays: dict[str, Any], labels: str | None, kind: Any, *, again: bool = False
) -> Read:
    """Sets of ``x`` and ``offsets``, with arrays of one number per set or element beside them."""
    if "x" not in arrays:
        raise DataError(f"{origin}: no array 'x' with the elements; it has {', '.join(arrays)}.")
    x, offsets = arrays.pop("x"), arrays.pop("offsets", None)
    if offsets is None:
        if np.ndim(x) != 3:
            raise DataError(
                f"{origin}: x of shape {np.shape(x)} needs offsets, or the shape (N, n, D)."
            )
        offsets = np.arange(len(x) + 1) * x.shape[1]
        x = x.reshape(-1, x.shape[2])
    sets = kind.packed(x, offsets, origin)
    size = {"set": len(sets), "element": len(sets.values)}
    flat = {
        name: each.reshape(-1) if np.ndim(each) == 2 and name == labels else each
        for name, each in arrays.items()
    }
    if labels is not None:
        owner = np.repeat(np.arange(len(sets)), sets.lengths)
        if again and labels not in flat:
            return Read(origin, sets.elements(), pd.DataFrame({GROUP: owner}))
        if labels not in flat or np.shape(flat[labels]) != (size["element"],):
            raise DataError(
                f"{origin}: labels '{labels}' must be an array of {size['element']}, one for each "
                "element."
            )
        frame = pd.DataFrame({labels: flat[labels], GROUP: owner})
        return Read(origin, sets.elements(), frame, labels)
    columns = {k: each for k, each in flat.items() if np.shape(each) == (size["set"],)}
    others = sorted(flat.keys() - columns.keys())
    notes = (f"arrays that have no row for each {kind.unit} were not read: {', '.join(others)}.",)
    frame = pd.DataFrame(columns, index=range(size["set"]))
    target = "y" if "y" in frame.columns else None
    return Read(origin, sets, frame, target, notes if others else ())


GROUP = "set"  # the column of the number of each element's set


def as_sets(X: Any, kind: Any) -> Any:
    """Sets, or elements of sets, of what a user hands over."""
    if isinstance(X, Mapping):
        if "x" not in X:
            raise DataError("a mapping of sets needs 'x', and 'offsets' where sets differ in size.")
        return _of_arrays("X", dict(X), None, kind).rows
    if isinstance(X, pd.DataFrame) or hasattr(X, "columns"):
        raise UsageError(
            "a table of elements needs the set of each row: ansatz.fit(table, x='set', "
            "identifier=...), or Sets(table, offsets)."
        )
    if isinstance(X, str | Path):
        raise UsageError("X is a path; ansatz.fit reads files, an estimator takes arrays.")
    return kind.of(X)
