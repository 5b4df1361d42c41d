"""Forecasts as a table: a row for each series and step ahead."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ansatz.fitting.intervals import interval_of
from ansatz.fitting.model import Model


def forecast_frame(
    model: Model, rows: Any, levels: Sequence[float], paths: NDArray[np.float64] | None
) -> pd.DataFrame:
    """``series, time, step, prediction, lower, upper``, and a column for each path.

    Args:
        model: fitted.
        rows: windows, one for each series.
        levels: of the intervals; of several the bounds are ``lower_50`` and so on.
        paths: ``(n, S, H)``.
    """
    served = model.predictive(rows)
    point = np.asarray(model.outcome.point(served)).reshape(len(rows), -1)
    count, H = point.shape
    steps = np.tile(np.arange(1, H + 1), count)
    series = np.repeat(rows.series, H)
    columns: dict[str, Any] = {
        "series": np.array(rows.panel.names, dtype=object)[series],
        "time": rows.panel.clock.times(np.repeat(rows.step, H) + steps),
        "step": steps,
        "prediction": point.ravel(),
    }
    for level in levels:
        bounds = interval_of(model, served, level, method="predictive", trials=None)
        bounds = np.asarray(bounds).reshape(count * H, 2)
        end = "" if len(levels) == 1 else f"_{100 * level:g}"
        columns[f"lower{end}"], columns[f"upper{end}"] = bounds.T
    for k in range(0 if paths is None else paths.shape[1]):
        assert paths is not None
        columns[f"path_{k + 1}"] = paths[:, k].ravel()
    return pd.DataFrame(columns)
