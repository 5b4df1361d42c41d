"""The outcomes of a table, checked against their law before anything is trained."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch

from ansatz import likelihoods
from ansatz.data.rankings import read_rankings
from ansatz.errors import DataError, UsageError
from ansatz.estimators.classifier import CLASS_LAWS
from ansatz.fitting.proposal import is_numeric
from ansatz.outcomes.survival_law import SURVIVAL_LAWS, survival_law, survival_target
from ansatz.outcomes.survival_times import survival_outcomes
from ansatz.fitting.uses import Uses

LARGEST = 1e100  # variances and their products stay below the largest double, 1.8e308


def check_outcomes(
    origin: str,
    frame: pd.DataFrame,
    uses: Uses,
    law: str,
    options: Mapping[str, Any] | None = None,
    *,
    named: bool = False,
) -> None:
    """Refuses outcomes that the law cannot produce; rows are named as the table counts them.

    Args:
        origin: what errors call the table.
        frame: rows whose outcome is known.
        uses: which columns tell the outcome.
        law: by name.
        options: of the law.
        named: the user named the law: classes are classes however many there are.

    Example:
        >>> import pandas as pd
        >>> from ansatz.fitting.outcome_checks import check_outcomes
        >>> from ansatz.fitting.uses import Uses
        >>> check_outcomes("t.csv", pd.DataFrame({"y": [1.0, -2.0]}), Uses(target=["y"]), "gamma")
        Traceback (most recent call last):
        ...
        ansatz.errors.DataError: t.csv, column 'y': ..., got -2.0 at row 2. ...
    """
    given = dict(options or {})
    kind = likelihoods.registry.get(law)  # an unknown name is an error with a suggestion
    try:
        if uses.is_survival or law in SURVIVAL_LAWS:
            outcomes = survival_outcomes(_survival_frame(frame, uses))
            made = survival_law(law, given, causes=int(outcomes[:, 2].max()))
            made.check(torch.from_numpy(survival_target(made, outcomes)))
        elif law == "plackett_luce":
            read_rankings(frame[uses.target])
        elif law in CLASS_LAWS:
            _check_classes(frame, uses, named)
        elif kind.event_ndim:
            _check_vector(frame, uses, law, given)
        else:
            for name in uses.target:
                _check_column(frame, name, law, given)
    except DataError as error:
        raise locate(error, origin, frame, uses) from None


def locate(error: DataError, origin: str, frame: pd.DataFrame, uses: Uses) -> DataError:
    """The same error, told of a table: its name, the column, and rows as the table counts them.

    Example:
        >>> import pandas as pd
        >>> from ansatz.errors import DataError
        >>> from ansatz.fitting.outcome_checks import locate
        >>> from ansatz.fitting.uses import Uses
        >>> frame = pd.DataFrame({"y": [1.0, -2.0]})
        >>> str(locate(DataError("got -2 at y[1]."), "t.csv", frame, Uses(target=["y"])))
        "t.csv, column 'y': got -2 at row 2."
    """
    where = "" if str(error).startswith(("row ", "column ")) else f"{uses.outcome_name}: "
    named = where if uses.is_survival or len(uses.target) > 1 else f"column '{uses.target[0]}': "
    return DataError(f"{origin}, {named if where else ''}{_name_row(str(error), frame)}")


def _survival_frame(frame: pd.DataFrame, uses: Uses) -> Any:
    outcomes = uses.outcomes(frame)
    return outcomes if isinstance(outcomes, pd.DataFrame) else outcomes.to_frame("time")


def _numbers(frame: pd.DataFrame, name: str, law: str) -> np.ndarray:
    column = frame[name]
    if not is_numeric(column):
        bad = pd.to_numeric(column.astype(str), errors="coerce").isna().to_numpy()
        row = int(np.flatnonzero(bad)[0]) if bad.any() else 0
        raise DataError(
            f"row {_row(frame, row)}, column '{name}': {law} needs numbers, got "
            f"{str(column.iloc[row])[:60]!r}. For classes use bernoulli or categorical."
        )
    values: np.ndarray = column.to_numpy(dtype=np.float64, copy=True)
    row = int(np.abs(values).argmax())
    if np.abs(values[row]) > LARGEST and np.isfinite(values[row]):
        raise DataError(
            f"row {_row(frame, row)}, column '{name}': {values[row]:g} is too large to be squared. "
            "Divide the column by a power of ten."
        )
    return values


def _check_column(frame: pd.DataFrame, name: str, law: str, options: Mapping[str, Any]) -> None:
    values = torch.from_numpy(_numbers(frame, name, law))
    try:
        likelihoods.create(law, **options).check(values)
    except DataError as error:
        raise DataError(f"column '{name}': {error}") from None


def _check_vector(frame: pd.DataFrame, uses: Uses, law: str, options: Mapping[str, Any]) -> None:
    names = [name for name in uses.outcome_columns if name]
    if law in ("binomial", "beta_binomial") and uses.trials is None:
        raise UsageError(f"{law} counts successes of trials: name their column with --trials.")
    if len(names) < 2:
        raise UsageError(f"{law} is a law of vectors: name their columns, --target A,B,...")
    values = np.stack([_numbers(frame, name, law) for name in names], axis=1)
    likelihoods.create(law, **options).check(torch.from_numpy(values))


def _check_classes(frame: pd.DataFrame, uses: Uses, named: bool) -> None:
    if len(uses.target) > 1:
        raise UsageError("one target at a time for classes; fit each column by itself.")
    column = frame[uses.target[0]]
    levels = column.nunique()
    if levels < 2:
        raise DataError(
            f"column '{column.name}': only one class, {str(column.iloc[0])[:60]!r}. "
            "There is nothing to tell apart."
        )
    if not named and (levels > 1_000 or (levels > 20 and levels > len(column) / 2)):
        raise DataError(
            f"column '{column.name}': {levels} classes in {len(column)} rows. If it "
            "holds numbers or names rather than classes, choose another target or --likelihood; "
            "if they are classes: --likelihood categorical."
        )


def _name_row(message: str, frame: pd.DataFrame) -> str:
    """Puts the table's row number in place of y[17] or y[17, 2]."""
    return re.sub(
        r"y\[(\d+)(?:, \d+)*\]", lambda found: f"row {_row(frame, int(found[1]))}", message
    )


def _row(frame: pd.DataFrame, position: int) -> int:
    label = frame.index[position]
    return int(label) + 1 if isinstance(label, int | np.integer) else position + 1
