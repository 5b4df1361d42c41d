"""The outcomes of a table, checked against their law before anything is trained."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch

from ansatz import likelihoods, outcomes
from ansatz.errors import DataError
from ansatz.fitting.problem import outcome_of
from ansatz.fitting.proposal import is_numeric
from ansatz.fitting.uses import Uses

if TYPE_CHECKING:
    from ansatz.fitting.model import Model

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
    """
    likelihoods.registry.get(law)  # an unknown name is an error with a suggestion
    kind = outcomes.registry.get(outcome_of(law, uses))
    try:
        kind.check_columns(frame, uses, law, dict(options or {}), named=named)
    except DataError as error:
        raise locate(error, origin, frame, uses) from None


def check_known(model: "Model", frame: pd.DataFrame, origin: str) -> None:
    """Refuses outcomes that the law of a fitted model cannot produce: they have no score.

    Args:
        model: fitted by ``ansatz.fit``.
        frame: rows whose outcome is known.
        origin: what errors call the table.
    """
    uses = model.uses
    assert uses is not None
    try:
        codes, _ = model.outcome.encode(uses.outcomes(frame), model.task.settings, reset=False)
        model.likelihood.check(torch.from_numpy(np.array(codes)))
    except DataError as error:
        raise locate(error, origin, frame, uses) from None


def locate(error: DataError, origin: str, frame: pd.DataFrame, uses: Uses) -> DataError:
    """The same error, told of a table: its name, the column, and rows as the table counts them."""
    where = "" if str(error).startswith(("row ", "column ")) else f"{uses.outcome_name}: "
    named = where if uses.is_survival or len(uses.target) > 1 else f"column '{uses.target[0]}': "
    return DataError(f"{origin}, {named if where else ''}{_name_row(str(error), frame)}")


def numbers_of(frame: pd.DataFrame, name: str, law: str) -> np.ndarray:
    """Reads a target column as numbers that can be squared."""
    column = frame[name]
    if not is_numeric(column):
        bad = pd.to_numeric(column.astype(str), errors="coerce").isna().to_numpy()
        row = int(np.flatnonzero(bad)[0]) if bad.any() else 0
        raise DataError(
            f"row {row_number(frame, row)}, column '{name}': {law} needs numbers, got "
            f"{str(column.iloc[row])[:60]!r}. For classes use bernoulli or categorical."
        )
    values: np.ndarray = column.to_numpy(dtype=np.float64, copy=True)
    row = int(np.abs(values).argmax())
    if np.abs(values[row]) > LARGEST and np.isfinite(values[row]):
        raise DataError(
            f"row {row_number(frame, row)}, column '{name}': {values[row]:g} is too large to be "
            "squared. Divide the column by a power of ten."
        )
    return values


def _name_row(message: str, frame: pd.DataFrame) -> str:
    """Puts the table's row number in place of y[17] or y[17, 2]."""
    return re.sub(
        r"y\[(\d+)(?:, \d+)*\]", lambda found: f"row {row_number(frame, int(found[1]))}", message
    )


def row_number(frame: pd.DataFrame, position: int) -> int:
    """The number of a row as its file counts them."""
    label = frame.index[position]
    return int(label) + 1 if isinstance(label, int | np.integer) else position + 1
