"""Times that may be censored: the forms in which people have them, and their likelihoods."""

import copy
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray

from ansatz import likelihoods
from ansatz.errors import DataError
from ansatz.likelihoods import Censored, Cox, DiscreteHazard, Likelihood
from ansatz.outcomes.registry import SURVIVAL_LIKELIHOODS
from ansatz.spec import TargetSpec

COLUMNS = ("lower", "upper", "cause", "entry")


def survival_outcomes(
    y: Any,
    event: ArrayLike | None = None,
    entry: ArrayLike | None = None,
    upper: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Outcomes as ``(N, 4)``: lower, upper, cause, entry.

    An event has lower = upper = its time and a cause from 1; a row censored at c has lower = c,
    upper infinite and cause 0; an interval has lower < upper. No entry is minus infinity.

    Args:
        y: times ``(N,)``; a frame with the columns time and event, or lower and upper, and
            entry; a structured array with a Boolean and a numeric field; ``(N, 2)`` or ``(N, 3)``
            numbers (time, event, entry).
        event: ``(N,)`` True or 1 where the time is that of an event, 0 where the row was
            censored; further whole numbers are causes. All events if there is none.
        entry: ``(N,)`` times from which rows were watched.
        upper: ``(N,)`` right ends: then y are the left ends, and the outcome lies between.
    """
    if y is None:
        raise DataError("a survival model requires y to be passed, but the target y is None.")
    parts = _parts(y)
    for name, values in (("event", event), ("entry", entry), ("upper", upper)):
        if values is not None:
            parts[name] = np.asarray(values)
    if "upper" in parts and "lower" not in parts:
        parts["lower"] = parts.pop("time")
    if "lower" in parts:
        lower, last, cause = _interval(parts)
    else:
        lower, last, cause = _right_censored(parts)
    if "entry" in parts:
        start = _numbers("entry", parts["entry"], len(lower))
        start = np.where(np.isnan(start), -np.inf, start)
    else:
        start = np.full(len(lower), -np.inf)
    # Of an interval only the end must lie beyond: the row was seen free of the event at its entry.
    until = np.where(np.isfinite(last) & (lower < last), last, lower)
    late = np.isfinite(start) & (start >= until)
    _refuse(late, "entry must be before the outcome", start, until)
    return np.stack([lower, last, cause, start], axis=1)


def _parts(y: Any) -> dict[str, Any]:
    if isinstance(y, pd.DataFrame):
        found = {str(name): y[name].to_numpy() for name in y.columns}
        if "time" not in found and "lower" not in found:
            raise DataError(
                "a frame of survival outcomes has the columns time and event, or lower and upper, "
                f"and entry if rows entered late; got {', '.join(found)}."
            )
        return found
    values = np.asarray(y)
    if values.dtype.names:  # as scikit-survival has them
        return _fields(values)
    if values.ndim == 1:
        return {"time": values}
    if values.ndim == 2 and values.shape[1] in (1, 2, 3):
        names = ("time", "event", "entry")[: values.shape[1]]
        return {name: values[:, k] for k, name in enumerate(names)}
    raise DataError(
        f"survival outcomes are times (N,), or (N, 3) of time, event and entry, got {values.shape}."
    )


def _fields(values: NDArray[Any]) -> dict[str, Any]:
    assert values.dtype.names is not None
    events = [name for name in values.dtype.names if values.dtype[name].kind == "b"]
    times = [name for name in values.dtype.names if values.dtype[name].kind in "fiu"]
    if len(events) != 1 or len(times) not in (1, 2):
        raise DataError("a structured array of survival outcomes has a Boolean field and a time.")
    late = next((name for name in times if name in ("entry", "start")), None)
    time = next(name for name in times if name != late)
    found = {"time": values[time], "event": values[events[0]]}
    return found if late is None else {**found, "entry": values[late]}


def _right_censored(parts: dict[str, Any]) -> tuple[NDArray[np.float64], ...]:
    time = _numbers("time", parts["time"], len(parts["time"]))
    _refuse(~np.isfinite(time), "a time must be a finite number", time)
    cause = np.ones(len(time)) if "event" not in parts else _causes(parts["event"], len(time))
    return time, np.where(cause > 0, time, np.inf), cause


def _causes(event: Any, count: int) -> NDArray[np.float64]:
    values = np.asarray(event)
    if values.dtype.kind in "OUST":
        text = pd.Series(values).replace({"True": 1, "true": 1, "TRUE": 1, "False": 0})
        text = text.replace({"false": 0, "FALSE": 0})
        numbers = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64)
        if np.isnan(numbers).any():
            row = int(np.flatnonzero(np.isnan(numbers))[0])
            raise DataError(
                f"the event must be 0 or 1, got {str(values[row])[:40]!r} at y[{row}]. Say which "
                "value is the event: event=(status == 'dead'), or --event COLUMN=VALUE."
            )
        values = numbers
    cause = _numbers("event", values, count)
    _refuse(~((cause >= 0) & (cause == np.round(cause))), "the event must be 0, 1, 2, ...", cause)
    if len(cause) and cause.min() > 0 and len(np.unique(cause)) > 1:
        codes = ", ".join(f"{code:g}" for code in np.unique(cause)[:5])
        raise DataError(
            f"the event has the codes {codes} and no 0 for rows that were censored. Say which code "
            "is the event: event=(status == 2), or --event COLUMN=2."
        )
    return cause


def _interval(parts: dict[str, Any]) -> tuple[NDArray[np.float64], ...]:
    if "event" in parts:
        raise DataError("lower and upper ends describe what is known; they take no event.")
    if "upper" not in parts:
        raise DataError("lower ends need upper ends, infinite or missing where they are open.")
    lower = _numbers("lower", parts["lower"], len(parts["lower"]))
    upper = _numbers("upper", parts["upper"], len(lower))
    lower, upper = (
        np.where(np.isnan(lower), -np.inf, lower),
        np.where(np.isnan(upper), np.inf, upper),
    )
    _refuse(lower > upper, "the lower end must not be above the upper", lower, upper)
    _refuse(np.isinf(lower) & np.isinf(upper), "an interval needs an end", lower, upper)
    return lower, upper, (lower == upper).astype(np.float64)


def _numbers(name: str, values: Any, count: int) -> NDArray[np.float64]:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"the {name} must hold numbers, got {np.asarray(values).dtype}.") from None
    if found.shape != (count,):
        raise DataError(f"the {name} must have shape ({count},), got {found.shape}.")
    return found


def _refuse(bad: NDArray[np.bool_], expected: str, *values: NDArray[np.float64]) -> None:
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        got = " and ".join(f"{value[row]:g}" for value in values)
        raise DataError(f"{expected}, got {got} at y[{row}].")


def survival_likelihood(
    likelihood: str | Likelihood,
    options: Mapping[str, Any] | None = None,
    *,
    causes: int = 1,
    constant_dispersion: bool = False,
) -> Likelihood:
    """Makes a likelihood of survival times; one of numbers becomes :class:`Censored`."""
    given = dict(options or {})
    name = likelihood if isinstance(likelihood, str) else likelihood.name
    if causes > 1 and name != "discrete_hazard":
        raise DataError(
            f"the event has {causes} causes. {name} knows one: take discrete_hazard, or name the "
            "code is the event: event=(status == 1), or --event COLUMN=1."
        )
    if not isinstance(likelihood, str):
        return (
            likelihood
            if likelihood.name in SURVIVAL_LIKELIHOODS
            else Censored(likelihood=likelihood)
        )
    if likelihood == "discrete_hazard":
        given = {"causes": max(causes, 1), **given}
    if likelihood in SURVIVAL_LIKELIHOODS:
        found: Likelihood = likelihoods.create(likelihood, **given)
        return found
    kind = likelihoods.registry.get(likelihood)
    if constant_dispersion and "dispersion" in inspect.signature(kind).parameters:
        given = {"dispersion": "constant", **given}
    return Censored(likelihood=likelihood, options=given)


def survival_target(likelihood: Likelihood, outcomes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turns ``(N, 4)`` of lower, upper, cause and entry into the likelihood's ``(N, 3)``."""
    lower, upper, cause, entry = outcomes.T
    if not isinstance(likelihood, Cox | DiscreteHazard):
        _refuse_negative(likelihood, lower, upper)
        return np.stack([lower, upper, entry], axis=1)
    between = np.isinf(lower) | (np.isfinite(upper) & (lower < upper))
    if between.any():
        row = int(np.flatnonzero(between)[0])
        raise DataError(
            f"{likelihood.name} takes events and right-censored times, got an interval at "
            f"y[{row}]. Take a likelihood with a density, like weibull or log_normal."
        )
    return np.stack([lower, cause, entry], axis=1)


def times_and_causes(
    likelihood: Likelihood, y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Gives times and causes (0: censored) of outcomes; None if any is an interval."""
    if isinstance(likelihood, Cox | DiscreteHazard):
        return y[:, 0], y[:, 1]
    lower, upper = y[:, 0], y[:, 1]
    if not ((lower == upper) | np.isinf(upper)).all() or np.isinf(lower).any():
        return None
    return lower, (lower == upper).astype(np.float64)


def _refuse_negative(
    likelihood: Likelihood, lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> None:
    """Rejects rows censored before 0, which tell a likelihood of positive times nothing."""
    bad = (lower < 0) & np.isfinite(lower) & np.isinf(upper)
    if not bad.any():
        return
    inner = getattr(likelihood, "likelihood", likelihood)
    with torch.no_grad():
        raw = torch.zeros(1, inner.outputs(TargetSpec()), dtype=torch.float64)
        least = copy.deepcopy(inner).double().distribution(raw).lower
    if least >= 0:
        row = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"{inner.name} needs times >= 0, got {lower[row]:g} at y[{row}]. Repair the time, or "
            "take a likelihood of any number, like normal."
        )
