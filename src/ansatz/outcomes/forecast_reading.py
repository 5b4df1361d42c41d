"""Reads tables of time series as windows, one row for each origin of a forecast."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ansatz.data.frames import as_frame
from ansatz.data.registry import fetch, load, names
from ansatz.data.sequences.panel import Panel, panel_of
from ansatz.data.sequences.windows import Windows
from ansatz.data.table import read_table
from ansatz.errors import DataError, ModelError, UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.model import Model
from ansatz.fitting.tensor_structure import Read

FORECASTING = ("horizon", "window", "season", "known", "edges", "parts", "drop")


def read_windows(data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any]) -> Read:
    """All origins of a table of series that have an outcome ahead."""
    return windows_of(data, column_roles, reader, future=False)


def windows_of(
    data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any], *, future: bool
) -> Read:
    """The origins of a table: those with outcomes, or the last of each series.

    Args:
        data: a file, a frame, a named data set or a panel.
        column_roles: target, time, identifier, exposure, weights.
        reader: horizon, window, season, known, edges, parts, drop; others read the table.
        future: the last observed step of each series instead of all that have outcomes.
    """
    options = {name: reader.get(name) for name in FORECASTING}
    horizon = options["horizon"]
    if horizon is None:
        raise UsageError("how many steps ahead? Name them: --horizon 24.")
    origin, panel = _panel(data, column_roles, reader)
    season = options["season"] or panel.clock.season
    length = options["window"] or default_window(panel, horizon, season)
    how: dict[str, Any] = {"horizon": horizon, "length": length, "season": season}
    if future:
        rows = Windows.latest(panel, **how)
    else:
        longest = int(panel.lengths.max())
        if longest <= horizon:
            raise DataError(
                f"{origin}: --horizon {horizon} is longer than the series, whose longest has "
                f"{longest} step{'s' if longest > 1 else ''}."
            )
        rows = Windows.all(panel, **how)
        if not len(rows):
            raise DataError(f"{origin}: no value of '{column_roles.target[0]}' has one before it.")
        if options["parts"]:
            rows.parts = _parts(options["parts"])
    edges = options["edges"]
    rows.reading = {
        "target": column_roles.target[0] if column_roles.target else None,
        "time": column_roles.time,
        "exposure": column_roles.exposure,
        "weights": column_roles.weights,
        "id": column_roles.identifier,
        **{name: options[name] for name in ("known", "drop")},
        "edges": str(edges) if isinstance(edges, str | Path) else None,
        **{"horizon": horizon, "window": length, "season": season},
    }
    notes = tuple(panel.notes) if not future else ()
    return Read(origin, rows, _frame(rows, column_roles), None, notes)


def windows_of_table(data: Any, reading: Mapping[str, Any], *, future: bool = False) -> Read:
    """The origins of a table, a series with its times or an array, read by names of columns."""
    if isinstance(data, pd.Series):
        name = reading.get("target") or str(data.name or "y")
        data = pd.DataFrame({"time": data.index, name: data.to_numpy()})
        reading = {**reading, "target": name, "time": "time"}
    elif isinstance(data, list | tuple | np.ndarray):
        values = np.asarray(data, dtype=np.float64)
        if values.ndim != 1:
            raise DataError(
                f"an array holds one series, (T,), got shape {values.shape}; several are a table "
                "with id=."
            )
        data = pd.DataFrame({"time": np.arange(len(values)), "y": values})
        reading = {**reading, "target": "y", "time": "time"}
    for name in ("target", "time"):
        if reading.get(name) is None and not isinstance(data, Panel):
            raise UsageError(f"a table needs {name}=, the name of a column.")
    roles = ColumnRoles(
        target=[reading["target"]] if reading.get("target") else [],
        time=reading.get("time"),
        exposure=reading.get("exposure"),
        weights=reading.get("weights"),
        identifier=reading.get("id"),
    )
    return windows_of(data, roles, reading, future=future)


def again(model: Model, data: Any, *, future: bool, edges: Any = None) -> Read:
    """The origins of a history, read as the series of the fit were; None for those of the fit."""
    outcome: Any = model.outcome
    if isinstance(data, Read):
        return data._replace(rows=data.rows.with_link(outcome.link))
    if data is None:
        if outcome.history is None:
            raise ModelError("the model was saved without its series: give a history.")
        data = outcome.history
    reading = {**outcome.reading, **({} if edges is None else {"edges": edges})}
    found = windows_of_table(data, reading, future=future)
    if not len(found.rows):
        raise DataError(f"{found.origin}: no value of '{reading['target']}' was observed.")
    return found._replace(rows=found.rows.with_link(outcome.link))


def default_window(panel: Panel, horizon: int, season: int) -> int:
    """Two weeks of hours, two years of weeks, four seasons of others; at least two horizons."""
    week = season * 7 if panel.clock.kind == "time" and panel.clock.length < 86_400 else season
    wanted = max(2 * week, 4 * season if season < 32 else 0, 2 * horizon, 8)
    most = int(panel.lengths.max()) // 5
    return max(1, min(wanted, max(most, min(2 * horizon, int(panel.lengths.max()) // 3)), 512))


def _parts(given: Sequence[int]) -> tuple[int, int, int]:
    if len(given) != 3 or min(given) < 1:
        raise UsageError(
            "--parts takes the steps of training, validation and test: 8640,2880,2880."
        )
    return given[0], given[1], given[2]


def _panel(data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any]) -> tuple[str, Panel]:
    if isinstance(data, Panel):
        return "the series", data
    if column_roles.time is None:
        raise UsageError("forecasts need the column of times: --time date.")
    if len(column_roles.target) != 1:
        raise UsageError("a forecast has one --target; panels of several series have --id.")
    if column_roles.offset is not None or column_roles.group is not None:
        raise UsageError("a forecast takes --exposure and --id, not --offset or --group.")
    others = (*FORECASTING, "id", "target", "time", "exposure", "weights")
    plain = {k: v for k, v in reader.items() if k not in others}
    origin, frame, notes = _table(data, plain)
    edges = reader.get("edges")
    if isinstance(edges, str | Path):
        edges = read_table(_beside(data, edges)).frame
    elif edges is not None:
        edges = as_frame(edges)
    panel = panel_of(
        frame,
        origin,
        time=column_roles.time,
        target=column_roles.target[0],
        id=column_roles.identifier,
        exposure=column_roles.exposure,
        weights=column_roles.weights,
        known=reader.get("known") or (),
        drop=reader.get("drop") or (),
        edges=edges,
    )
    panel.notes[:0] = notes
    return origin, panel


def _table(data: Any, options: Mapping[str, Any]) -> tuple[str, pd.DataFrame, list[str]]:
    if not isinstance(data, str | Path):
        return "the table", as_frame(data).rename(columns=str), []
    if isinstance(data, str) and data in names() and not Path(data).exists():
        return data, load(data).frame, []
    table = read_table(data, **options)
    return table.origin, table.frame, list(table.notes)


def _beside(data: Any, edges: str | Path) -> str | Path:
    """A file of edges as it is named, or among those of a named data set."""
    if isinstance(data, str) and data in names() and not Path(edges).exists():
        own = fetch(data) / edges
        return own if own.exists() else edges
    return edges


def _frame(rows: Windows, column_roles: ColumnRoles) -> pd.DataFrame:
    """The columns beside the rows: the first outcome, the time of the origin, the series."""
    y, panel = rows.outcomes(), rows.panel
    seen = np.isfinite(y)
    first = y[np.arange(len(y)), seen.argmax(1)] if len(y) else np.zeros(0)
    columns: dict[str, Any] = {
        (column_roles.target[0] if column_roles.target else "y"): first,
        (column_roles.time or "time"): panel.clock.times(rows.step),
    }
    if column_roles.identifier is not None:
        columns[column_roles.identifier] = np.array(panel.names, dtype=object)[rows.series]
    if column_roles.exposure is not None and panel.exposure is not None:
        columns[column_roles.exposure] = np.nan_to_num(panel.exposure[rows.origin], nan=1.0)
    if column_roles.weights is not None:
        columns[column_roles.weights] = np.ones(len(y))
    return pd.DataFrame(columns)
