"""What each special column of a table is used for."""

import difflib
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from ansatz.errors import DataError, UsageError


class Uses(BaseModel):
    """The columns of a table that are not features, by what they are for.

    Args:
        target: outcomes, one or several.
        weights: frequency weights.
        offset: added to the linear predictor.
        exposure: its logarithm is added to the linear predictor.
        group: rows alike in it stay on one side of every split.
        time: splits are forward in it.

    Example:
        >>> import pandas as pd
        >>> from ansatz.estimators.uses import Uses
        >>> uses = Uses(target=["y"], weights="w")
        >>> list(uses.features(pd.DataFrame({"a": [1], "y": [2], "w": [1]})))
        ['a']
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    target: list[str]
    weights: str | None = None
    offset: str | None = None
    exposure: str | None = None
    group: str | None = None
    time: str | None = None

    def check(self, frame: pd.DataFrame, origin: str) -> None:
        """Every column that is named exists, and none has two uses."""
        if not self.target:
            raise UsageError("no target: name the column to predict with --target.")
        used: dict[str, str] = {}
        for use, names in self._names():
            for name in names:
                if name not in frame.columns:
                    raise DataError(
                        f"{origin}: no column '{name}' for {use}. {near_columns(name, frame)}"
                    )
                if name in used:
                    raise UsageError(f"column '{name}' is both {used[name]} and {use}.")
                used[name] = use

    def features(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The table without the columns that are used otherwise; time stays a feature."""
        gone = [name for use, names in self._names() if use != "time" for name in names]
        return frame.drop(columns=[name for name in gone if name in frame.columns])

    def outcomes(self, frame: pd.DataFrame) -> Any:
        """The target column, or the frame of several."""
        missing = [name for name in self.target if name not in frame.columns]
        if missing:
            raise DataError(f"the table has no target column '{missing[0]}'.")
        return frame[self.target[0]] if len(self.target) == 1 else frame[self.target]

    def weight(self, frame: pd.DataFrame) -> NDArray[np.float64] | None:
        """The weights, or None; negative or missing ones are refused."""
        if self.weights is None or self.weights not in frame.columns:
            return None
        found = _numbers(frame, self.weights, least=0.0)
        if len(found) and not found.any():
            raise DataError(f"column '{self.weights}': the weights of all rows are zero.")
        return found

    def offsets(self, frame: pd.DataFrame) -> NDArray[np.float64] | None:
        """The known part of the linear predictor: offset + log exposure, or None."""
        total = None
        for use, name in (("offset", self.offset), ("exposure", self.exposure)):
            if name is None:
                continue
            if name not in frame.columns:
                raise DataError(
                    f"the table has no column '{name}', which the model needs as {use}."
                )
            part = _numbers(frame, name, least=None)
            if use == "exposure":
                bad = np.flatnonzero(part <= 0)
                if len(bad):
                    raise DataError(
                        f"column '{name}', row {bad[0] + 1}: an exposure must be positive, "
                        f"got {part[bad[0]]}."
                    )
                part = np.log(part)
            total = part if total is None else total + part
        return total

    def _names(self) -> list[tuple[str, list[str]]]:
        single = [(use, getattr(self, use)) for use in ("weights", "offset", "exposure")]
        single += [("group", self.group), ("time", self.time)]
        return [("target", self.target), *((use, [name]) for use, name in single if name)]


def near_columns(name: str, frame: pd.DataFrame) -> str:
    """What a wrong name may have meant: the nearest column, or the first twenty.

    Example:
        >>> import pandas as pd
        >>> from ansatz.estimators.uses import near_columns
        >>> near_columns("prise", pd.DataFrame({"price": [1], "area": [2]}))
        "Did you mean 'price'?"
    """
    names = [str(column) for column in frame.columns]
    near = difflib.get_close_matches(name, names, n=1)
    return f"Did you mean '{near[0]}'?" if near else f"Columns: {', '.join(names[:20])}."


def _numbers(frame: pd.DataFrame, name: str, *, least: float | None) -> NDArray[np.float64]:
    try:
        values = frame[name].to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"column '{name}' must hold numbers, got {frame[name].dtype}.") from None
    bad = ~np.isfinite(values) if least is None else ~(np.isfinite(values) & (values >= least))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        expected = "a finite number" if least is None else f"a finite number >= {least:g}"
        raise DataError(
            f"column '{name}', row {row + 1}: expected {expected}, got {values[row]} "
            f"({int(bad.sum())} such rows)."
        )
    return values
