"""Images, signals or volumes read as a question: what is to be predicted from them."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ansatz import outcomes
from ansatz.data.grids import GridTable, read_grids
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles, near_columns
from ansatz.fitting.problem import Problem, check_outcomes
from ansatz.fitting.proposal import Proposal, propose
from ansatz.structures.grid.reading import holds_signals, sides, special_columns

MASK = "mask"  # what the target is called where it is a label for every pixel
_OF_MASKS = ("dice", "sum")
_NAMED = 20  # classes of masks that a note lists


def grid_problem(data: Any, column_roles: ColumnRoles, **how: Any) -> Problem:
    """Reads images, signals or volumes; the rows of a table of numbers are signals."""
    how.pop("roles", None)  # columns beside grids are not features
    reader, memory = dict(how.pop("reader", None) or {}), how.pop("memory", None)
    if memory is not None:
        reader["memory_limit"] = memory
    if "size" in reader:
        reader["size"] = sides(reader["size"])
    if holds_signals(data, reader):
        if not column_roles.outcome_columns and column_roles.task is None:
            raise UsageError("no target: name the column to predict with --target.")
        reader |= {
            "signals": True,
            "target": [*special_columns(column_roles), *how.get("drop", ())],
        }
    return build_grid_problem(data, column_roles, reader=reader, **how)


def build_grid_problem(
    data: Any,
    column_roles: ColumnRoles,
    *,
    likelihood: str | None = None,
    options: Mapping[str, Any] | None = None,
    drop: Sequence[str] = (),
    reader: Mapping[str, Any] | None = None,
) -> Problem:
    """Reads grids with the columns beside them, and decides what is predicted.

    Args:
        data: a folder, a file, the name of a data set, arrays, or a ``GridTable``.
        column_roles: target, weights, offset by name; without a target, the data's own.
        likelihood: the likelihood; None lets the values of the target choose.
        options: of the likelihood.
        drop: columns to leave out; none of them is a feature anyway.
        reader: options of :func:`ansatz.data.grids.read_grids`.
    """
    table = read_grids(data, **(reader or {}))
    for name in drop:
        if name not in table.frame.columns:
            near = near_columns(name, table.frame)
            raise UsageError(f"{table.origin}: no column '{name}' to drop. {near}")
    asked = column_roles.task and outcomes.registry.get(column_roles.task)
    is_x = bool(asked and asked.is_x)
    if is_x and not column_roles.target and table.target == "class":  # folders, one for each
        column_roles = column_roles.model_copy(update={"target": [table.target]})
    if not is_x and not column_roles.target and column_roles.lower is None:
        if table.target is None:
            there = ", ".join(map(str, table.frame.columns)) or "none"
            raise UsageError(
                f"{table.origin}: no target: name the column to predict, --target. "
                f"Columns: {there}."
            )
        column_roles = column_roles.model_copy(update={"target": [table.target]})
    if column_roles.target == [MASK] and table.masks is not None:
        return _of_masks(table, column_roles, likelihood, options)
    if likelihood in _OF_MASKS:
        raise UsageError(f"{likelihood} evaluates masks, and {table.origin} has none: --masks DIR.")
    if not is_x:
        _require_two_folders(table, column_roles)
    frame = table.frame.drop(columns=list(drop))
    column_roles = column_roles.expand(frame)
    column_roles.check(frame, table.origin)
    known = column_roles.known(frame)
    if not known.any():
        raise DataError(
            f"{table.origin}: the target '{column_roles.outcome_name}' is missing everywhere."
        )
    notes = list(table.notes)
    if not known.all():
        gone = int((~known).sum())
        notes.append(
            f"examples without a value of '{column_roles.outcome_name}', left out: {gone}."
        )
    frame, grids = frame[known], table.grids[np.flatnonzero(known)]
    part = _part_column(frame)
    if likelihood:
        proposal = Proposal([likelihood])
    elif asked and is_x:
        proposal = Proposal(list(asked.candidates))
    else:
        proposal = _proposed(table, frame, column_roles)
    base, given = proposal.candidates[0], {**proposal.options, **(options or {})}
    check_outcomes(table.origin, frame, column_roles, base, given, named=likelihood is not None)
    notes += [proposal.why] if proposal.why else []
    if len(proposal.candidates) > 1:
        others = ", ".join(proposal.candidates[1:])
        notes.append(f"likelihood {base}: the values would also allow {others} (--likelihood).")
    found = _fingerprint(frame, grids)
    return Problem(table.origin, frame, grids, column_roles, [base], given, notes, found, part=part)


def _require_two_folders(table: GridTable, column_roles: ColumnRoles) -> None:
    """A single example can be evaluated, but not split."""
    if column_roles.target == ["class"] == [table.target] and table.frame["class"].nunique() == 1:
        raise DataError(
            f"{table.origin} holds one class only ('{table.frame['class'].iloc[0]}'); at least two "
            "are needed, each a folder of images."
        )


def _proposed(table: GridTable, frame: pd.DataFrame, column_roles: ColumnRoles) -> Proposal:
    """As for tables, but the labels 0, 1, ..., K - 1 that arrays of images have are classes."""
    if (
        column_roles.target == [table.target]
        and column_roles.event is None
        and column_roles.trials is None
    ):
        found = frame[table.target].unique()
        whole = getattr(found.dtype, "kind", "O") in "iu"
        if whole and len(found) == 1:
            raise DataError(
                f"{table.origin}: '{table.target}' is {found[0]} for every example: one class "
                "only, and nothing to classify."
            )
        if whole and 2 < len(found) <= len(frame) / 2 and set(found) == set(range(len(found))):
            why = (
                f"likelihood categorical: '{table.target}' numbers {len(found)} classes from 0 on; "
                "if it counts something: --likelihood poisson."
            )
            return Proposal(["categorical"], {}, why)
    return propose(table.origin, frame, column_roles)


def _of_masks(
    table: GridTable,
    column_roles: ColumnRoles,
    likelihood: str | None,
    options: Mapping[str, Any] | None,
) -> Problem:
    assert table.masks is not None
    base = likelihood or "categorical"
    frame = table.frame.assign(**{MASK: [f"{key:016x}" for key in table.masks.content_keys()]})
    column_roles.check(frame, table.origin)
    count = len(table.masks.classes)
    named = ", ".join(map(str, table.masks.classes[:_NAMED]))
    more = f" and {count - _NAMED} more" if count > _NAMED else ""
    notes = [*table.notes, f"a label for every pixel: {count} classes, {named}{more}."]
    return Problem(
        table.origin,
        frame,
        table.grids,
        column_roles,
        [base],
        dict(options or {}),
        notes,
        _fingerprint(frame, table.grids),
        given=table.masks,
        task=MASK,
        part=_part_column(frame),
    )


def _part_column(frame: pd.DataFrame) -> str | None:
    """The column that folders train/ and test/, or arrays x_train and x_test, leave behind."""
    if "split" not in frame.columns:
        return None
    found = set(frame["split"])
    return "split" if {"train", "test"} <= found <= {"train", "validation", "test"} else None


def _fingerprint(frame: pd.DataFrame, grids: Any) -> str:
    digest = hashlib.sha256(grids.content_keys().tobytes())
    digest.update("\x1f".join(map(str, frame.columns)).encode())
    if frame.shape[1]:
        digest.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
    return digest.hexdigest()
