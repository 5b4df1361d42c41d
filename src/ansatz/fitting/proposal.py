"""Which likelihoods a target's values allow: candidates come from their support, never from their type."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ansatz import outcomes
from ansatz.data.dates import looks_like_dates
from ansatz.errors import DataError
from ansatz.fitting.candidates import candidates
from ansatz.fitting.column_roles import ColumnRoles


class Proposal(NamedTuple):
    """Candidate likelihoods, simplest first, with their options; a sentence where there is one likelihood."""

    candidates: list[str]
    options: Mapping[str, Any] = MappingProxyType({})
    why: str = ""


def propose(origin: str, frame: pd.DataFrame, column_roles: ColumnRoles) -> Proposal:
    """The likelihoods whose support holds the outcomes of a table.

    Args:
        origin: what errors call the table.
        frame: rows whose outcome is known.
        column_roles: which columns tell the outcome.
    """
    name = column_roles.outcome_name
    if column_roles.task is not None and outcomes.registry.get(column_roles.task).candidates:
        return Proposal(list(outcomes.registry.get(column_roles.task).candidates))
    if column_roles.is_survival:
        return _propose_survival(frame, column_roles)
    if column_roles.trials is not None:
        return Proposal(["binomial", "beta_binomial"])
    y = frame[column_roles.target]
    if all(is_numeric(y[column]) for column in y):
        return _propose_numbers(y, column_roles)
    if _are_orders(y):
        return Proposal(["plackett_luce"], {}, f"likelihood plackett_luce: '{name}' holds orders.")
    if len(column_roles.target) > 1:
        raise DataError(f"{origin}: several targets must all be numbers: '{name}'.")
    if looks_like_dates([str(value) for value in y.iloc[:, 0].unique()]):
        raise DataError(
            f"{origin}: the target '{name}' holds dates. Predict a number, like the days since a "
            "first date, or name classes with --likelihood categorical."
        )
    levels = y.iloc[:, 0].nunique()
    likelihood = "bernoulli" if levels == 2 else "categorical"
    return Proposal([likelihood], {}, f"likelihood {likelihood}: '{name}' has {levels} classes.")


def _propose_numbers(y: pd.DataFrame, column_roles: ColumnRoles) -> Proposal:
    name = column_roles.outcome_name
    if y.shape[1] > 1:
        return _propose_vector(y, name)
    values = y.iloc[:, 0].to_numpy(dtype=np.float64)
    if set(np.unique(values)) == {0, 1}:
        return Proposal(["bernoulli"], {}, f"likelihood bernoulli: '{name}' is 0 or 1.")
    return Proposal(candidates(values, exposure=column_roles.exposure is not None))


def _propose_vector(y: pd.DataFrame, name: str) -> Proposal:
    values = y.to_numpy(dtype=np.float64)
    away = np.abs(values.sum(axis=1) - 1).max()
    if (values > 0).all() and away <= 0.02:
        why = f"likelihood dirichlet: '{name}' are parts of a whole"
        if away <= 1e-6:
            return Proposal(["dirichlet"], {}, f"{why}.")
        why += f", their sums within {away:.1g} of 1 and divided by it (normalize=true)."
        return Proposal(["dirichlet"], {"normalize": True}, why)
    why = f"likelihood normal for each of '{name}'; multivariate_normal lets them go together."
    total = float(np.median(values.sum(axis=1)))
    if (values > 0).all() and np.abs(values.sum(axis=1) - total).max() <= 0.02 * total:
        why = (
            f"likelihood normal for each of '{name}', but each row adds up to {total:.3g}: if they "
            "are parts of a whole, divide them by it, and dirichlet fits."
        )
    if _are_rankings(values):
        why = (
            f"likelihood normal for each of '{name}', but each row holds the numbers from 1 to "
            f"{values.shape[1]} once: if they are rankings, --likelihood plackett_luce."
        )
    return Proposal(["normal"], {}, why)


def _propose_survival(frame: pd.DataFrame, column_roles: ColumnRoles) -> Proposal:
    outcomes = column_roles.outcomes(frame)
    name = column_roles.outcome_name
    if "event" in outcomes and is_numeric(outcomes["event"]) and outcomes["event"].max() > 1:
        why = f"likelihood discrete_hazard: {name} has several causes."
        return Proposal(["discrete_hazard"], {}, why)
    times = outcomes["time"] if "time" in outcomes else outcomes[["lower", "upper"]].max(axis=1)
    positive = bool((pd.to_numeric(times, errors="coerce") > 0).all())
    if positive:
        return Proposal(candidates(np.asarray(times, dtype=np.float64), censored=True))
    why = f"likelihood normal: {name} has values that are not positive."
    return Proposal(["normal"], {}, why)


def _are_orders(y: pd.DataFrame) -> bool:
    """Whether each cell is an order like b>a>c, or one of the items of these alone."""
    if y.shape[1] != 1:
        return False
    text = y.iloc[:, 0].astype(str)
    several = text.str.contains(">", regex=False)
    items = {item.strip() for order in text[several].unique() for item in order.split(">")}
    return bool(several.any()) and {item.strip() for item in text[~several].unique()} <= items


def _are_rankings(values: NDArray[np.float64]) -> bool:
    """Whether each row holds 1, ..., K in some order."""
    count = values.shape[1]
    return count > 2 and bool((np.sort(values, axis=1) == np.arange(1, count + 1)).all())


def is_numeric(column: pd.Series) -> bool:
    """Whether a column holds integers or floating-point numbers."""
    return getattr(column.dtype, "kind", "O") in "iuf"
