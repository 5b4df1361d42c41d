"""Long tables: a row is a step of the sequence that its identifier names."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ansatz.data.sequences.reading import read_texts
from ansatz.data.sequences.visits import Visits, in_order
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles, near_columns
from ansatz.fitting.tensor_structure import Read


def roles_of_long(column_roles: ColumnRoles) -> ColumnRoles:
    """The roles of the columns of sequences: time orders their steps; they are kept together."""
    order = column_roles.order or column_roles.time
    changed = {"time": None, "order": order, "group": column_roles.group or column_roles.identifier}
    if column_roles.is_survival and column_roles.lower is None and column_roles.entry is None:
        changed["entry"] = order
    return column_roles.model_copy(update=changed)


def read_long(data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any]) -> Read:
    """A sequence for each value of the identifier; its outcome is the same in all its rows.

    Times of events are read as start-stop rows: one sequence for each visit, of the visits up to
    it, watched from that visit to the next. So a prediction uses no later visit.

    Args:
        data: a table or where it is.
        column_roles: of :func:`roles_of_long`.
        reader: options of a table's reader.
    """
    identifier, order = str(column_roles.identifier), column_roles.order
    origin, frame, notes = read_texts(data, None, **reader)
    for use, name in (("--id", identifier), ("--time", order)):
        if name is not None and name not in frame.columns:
            raise UsageError(f"{origin}: no column '{name}' ({use}). {near_columns(name, frame)}")
    frame, offsets, times = in_order(frame.reset_index(drop=True), identifier, order, origin)
    by_visit = order is not None and column_roles.entry == order
    named = [*column_roles.outcome_columns, column_roles.event, column_roles.strata]
    named += [column_roles.weights, column_roles.offset, column_roles.exposure, column_roles.group]
    special = {str(n).rpartition("=")[0] if n not in frame.columns else n for n in named if n}
    special = {name for name in special if name in frame.columns} | {identifier}
    first = frame.iloc[offsets[:-1]]
    for name in sorted(special - {identifier} - ({order} if by_visit else set())):
        _require_constant(frame, name, identifier, offsets, origin)
    features = frame.drop(columns=[*special, *([order] if order in frame.columns else [])])
    if times is not None and order is not None:
        since = times - np.repeat(times[offsets[:-1]], np.diff(offsets))
        gap = np.diff(times, prepend=times[:1])
        gap[offsets[:-1]] = 0.0
        features = features.assign(**{f"{order}[since first]": since, f"{order}[gap]": gap})
    if not features.shape[1]:
        raise UsageError(f"{origin}: no column is left to predict from.")
    rows = Visits(features, offsets)
    beside = first[sorted(special, key=frame.columns.get_loc)].reset_index(drop=True)
    if by_visit and times is not None and column_roles.target[0] in frame.columns:
        rows, beside = _start_stop(rows, frame, times, beside, column_roles)
    return Read(origin, rows, beside, None, tuple(notes))


def _require_constant(
    frame: pd.DataFrame, name: str, identifier: str, offsets: np.ndarray, origin: str
) -> None:
    codes, _ = pd.factorize(frame[name])
    varies = codes != np.repeat(codes[offsets[:-1]], np.diff(offsets))
    if varies.any():
        place = int(np.flatnonzero(varies)[0])
        raise UsageError(
            f"{origin}: '{name}' varies within --id {identifier}={frame[identifier].iloc[place]}; "
            "a sequence has one outcome. For an outcome of every row leave out --x and --id: "
            f"--group {identifier} keeps its rows on one side of every split."
        )


def _start_stop(
    rows: Visits,
    frame: pd.DataFrame,
    times: np.ndarray,
    beside: pd.DataFrame,
    column_roles: ColumnRoles,
) -> tuple[Visits, pd.DataFrame]:
    """A sequence for each visit, watched from it until the next one or the end."""
    counts, offsets = rows.offsets.diff().numpy(), rows.offsets.numpy()
    place = np.repeat(np.arange(len(rows)), counts)
    last = np.zeros(len(frame), dtype=bool)
    last[offsets[1:] - 1] = True
    target, entry = column_roles.target[0], str(column_roles.entry)
    long = beside.iloc[place].reset_index(drop=True)
    end = pd.to_numeric(long[target], errors="coerce").to_numpy(dtype=np.float64)
    late = np.flatnonzero(times >= end)
    if len(late):
        who = {name: long[name].iloc[late[0]] for name in (column_roles.group,) if name}
        raise DataError(
            f"a visit at '{entry}' {times[late[0]]:g} is not before the end '{target}' "
            f"{end[late[0]]:g} ({who}): leave such rows out."
        )
    until = np.where(last, end, np.append(times[1:], np.inf))
    long[entry], long[target] = times, until
    if column_roles.event is not None:
        name, equals, value = column_roles.event.rpartition("=")
        plain = column_roles.event in beside.columns or not equals
        name = column_roles.event if plain else name
        if plain:
            long[name] = long[name].where(last, 0)
        else:
            happened = long[name].astype(str) == value
            long[name] = long[name].astype(object).where(last | ~happened, "watched")
    return rows.prefixes(), long
