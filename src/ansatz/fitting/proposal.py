"""Proposes the likelihoods whose support holds the values of the target."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ansatz import outcomes
from ansatz.data.dates import looks_like_dates
from ansatz.data.spelling import find_spelling
from ansatz.errors import DataError
from ansatz.fitting.column_roles import ColumnRoles, is_numeric

COARSE = 3.0  # steps per sd: below, a density does not describe whole numbers
AMOUNT = 30.0  # whole numbers of this size beside many zeros may be amounts, such as claims
HUGE = 1e100  # of an outcome: its powers and exponentials have no place in a double
REALS = ("normal", "laplace", "student_t")
POSITIVE = ("gamma", "log_normal", "weibull")
TIMES = ("exponential", "weibull", "log_normal", "gamma")
INFLATED = ("zero_inflated_poisson", "hurdle_poisson", "zero_inflated_negative_binomial")


def candidates(y: Any, *, exposure: bool = False, censored: bool = False) -> list[str]:
    r"""The likelihoods whose support holds all of y, simplest first.

    The values decide, never their type: 3.0 is a count and "3" is not.

    ======================================  ======================================================
    values                                  likelihoods
    ======================================  ======================================================
    no numbers                              bernoulli (two levels) or categorical
    two values, each seen more than once    bernoulli, and so is 0/1 always
    whole numbers from 0                    poisson, negative_binomial; where zeros are in excess
                                            the zero-inflated and the hurdle likelihoods; normal;
                                            from 1, if sd(y) is at least 3, gamma and log_normal;
                                            beside zeros in excess, from a median of 30, tweedie
    inside (0, 1)                           beta, normal
    [0, 1] with an end                      zero_one_inflated_beta
    positive                                normal, gamma, log_normal, weibull, laplace, student_t
    from 0, with zeros                      tweedie, normal
    any other                               normal, laplace, student_t
    censored times                          exponential, weibull, log_normal, gamma
    ======================================  ======================================================

    Zeros are in excess when their share p exceeds :math:`e^{-\bar y}` by two standard errors. No
    Poisson distribution given x does without it: by Jensen's inequality
    :math:`p = E[e^{-\mu(x)}] \ge e^{-E[\mu(x)]}`, so that fewer zeros never speak for inflation,
    and whether more of them do, the log score given x decides. The same holds for
    over-dispersion, which variation of x alone brings about; so nothing else is tested here.

    Args:
        y: ``(N,)`` outcomes without missing values, or ``(N, K)`` for K targets of one likelihood.
        exposure: whether the logarithm of an exposure is added to the linear predictor: then
            likelihoods with a log link, where there are any.
        censored: whether some of the times are known in part only.
    """
    if censored:
        return list(TIMES)
    values = np.asarray(y)
    if values.dtype.kind not in "iuf":
        return ["bernoulli" if len(np.unique(values.astype(str))) == 2 else "categorical"]
    levels, counts = np.unique(values, return_counts=True)
    if _is_binary(levels, counts):
        return ["bernoulli"]
    if len(levels) == 1:
        return ["normal"]  # nothing to compare likelihoods by
    values = values.astype(np.float64)
    if not (np.abs(values) < HUGE).all():
        return ["normal"]
    candidates = _whole(values) if (levels == np.round(levels)).all() else _real(values)
    link = [likelihood for likelihood in candidates if likelihood not in REALS]
    return link if exposure and link else candidates


def _is_binary(levels: NDArray[Any], counts: NDArray[np.intp]) -> bool:
    if len(levels) != 2:
        return False
    return (levels[0] == 0 and levels[1] == 1) or bool(counts.min() > 1)


def _whole(y: NDArray[np.float64]) -> list[str]:
    """Likelihoods of whole numbers; continuous ones are compared by the probability of a step."""
    if y.min() < 0:
        return list(REALS)
    candidates = ["poisson", "negative_binomial"]
    if _zeros_in_excess(y):
        candidates += INFLATED
    candidates.append("normal")
    if y.min() > 0:
        return [*candidates, "gamma", "log_normal"] if y.std() >= COARSE else candidates
    amounts = _zeros_in_excess(y) and np.median(y[y > 0]) >= AMOUNT
    return [*candidates, "tweedie"] if amounts else candidates


def _zeros_in_excess(y: NDArray[np.float64]) -> bool:
    share = float((y == 0).mean())
    error = (share * (1 - share) / y.size) ** 0.5
    return bool(share - 2 * error > np.exp(-y.mean()))


def _real(y: NDArray[np.float64]) -> list[str]:
    low, high = y.min(), y.max()
    if low >= 0 and high <= 1:
        return ["beta", "normal"] if low > 0 and high < 1 else ["zero_one_inflated_beta"]
    if low > 0:
        return ["normal", *POSITIVE, "laplace", "student_t"]
    return ["tweedie", "normal"] if low == 0 else list(REALS)


class Proposal(NamedTuple):
    """Candidate likelihoods, simplest first, their options, and why if there is only one."""

    candidates: list[str]
    options: Mapping[str, Any] = MappingProxyType({})
    why: str = ""


def propose(origin: str, frame: pd.DataFrame, column_roles: ColumnRoles) -> Proposal:
    """The likelihoods whose support holds the outcomes of a table."""
    name = column_roles.outcome_name
    if column_roles.task is not None and outcomes.registry.get(column_roles.task).candidates:
        return Proposal(list(outcomes.registry.get(column_roles.task).candidates))
    if column_roles.is_survival:
        return _propose_survival(frame, column_roles)
    if column_roles.trials is not None:
        return Proposal(["binomial", "beta_binomial"])
    y = frame[column_roles.target]
    if all(is_numeric(y[column]) for column in y):
        return propose_numbers(y, name, exposure=column_roles.exposure is not None)
    if _are_orders(y):
        return Proposal(["plackett_luce"], {}, f"likelihood plackett_luce: '{name}' holds orders.")
    if len(column_roles.target) > 1:
        raise DataError(f"{origin}: several targets must all be numbers: '{name}'.")
    if _are_dates(name, [str(value) for value in y.iloc[:, 0].dropna().unique()]):
        raise DataError(
            f"{origin}: the target '{name}' holds dates. Predict a number, like the days since a "
            "first date, or name classes with --likelihood categorical."
        )
    levels = y.iloc[:, 0].nunique()
    likelihood = "bernoulli" if levels == 2 else "categorical"
    return Proposal([likelihood], {}, f"likelihood {likelihood}: '{name}' has {levels} classes.")


def _are_dates(name: str, levels: list[str]) -> bool:
    found = find_spelling(name, levels)
    return looks_like_dates(levels) or (found is not None and bool(found.format))


def propose_numbers(y: pd.DataFrame, name: str, *, exposure: bool = False) -> Proposal:
    """The likelihoods whose support holds numbers, one column for each target."""
    if y.shape[1] > 1:
        return _propose_vector(y, name)
    values = y.iloc[:, 0].to_numpy(dtype=np.float64)
    if set(np.unique(values)) == {0, 1}:
        return Proposal(["bernoulli"], {}, f"likelihood bernoulli: '{name}' is 0 or 1.")
    return Proposal(candidates(values, exposure=exposure))


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
    if column_roles.strata is not None:
        return Proposal(["cox"], {}, "likelihood cox: --strata asks for a baseline per stratum.")
    times = outcomes["time"] if "time" in outcomes else outcomes[["lower", "upper"]].max(axis=1)
    positive = bool((pd.to_numeric(times, errors="coerce") > 0).all())
    if positive:
        return Proposal(candidates(np.asarray(times, dtype=np.float64), censored=True))
    why = f"likelihood normal: {name} has values that are not positive."
    return Proposal(["normal"], {}, why)


def _are_orders(y: pd.DataFrame) -> bool:
    """Tests whether each cell is an order like b>a>c, or one of the items of these alone."""
    if y.shape[1] != 1:
        return False
    text = y.iloc[:, 0].astype(str)
    several = text.str.contains(">", regex=False)
    items = {item.strip() for order in text[several].unique() for item in order.split(">")}
    return bool(several.any()) and {item.strip() for item in text[~several].unique()} <= items


def _are_rankings(values: NDArray[np.float64]) -> bool:
    """Tests whether each row holds 1, ..., K in some order."""
    count = values.shape[1]
    return count > 2 and bool((np.sort(values, axis=1) == np.arange(1, count + 1)).all())
