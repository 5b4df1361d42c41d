"""The likelihood of a time that may be censored, and outcomes in the form that it takes."""

import copy
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz import likelihoods
from ansatz.errors import DataError
from ansatz.likelihoods import Censored, Cox, DiscreteHazard, Likelihood
from ansatz.spec import TargetSpec

SURVIVAL_LIKELIHOODS = ("cox", "discrete_hazard", "censored")


def survival_likelihood(
    likelihood: str | Likelihood,
    options: Mapping[str, Any] | None = None,
    *,
    causes: int = 1,
    constant_dispersion: bool = False,
) -> Likelihood:
    """A likelihood of survival times: one by itself, or any likelihood of numbers made to take censoring.

    Args:
        likelihood: ``"cox"``, ``"discrete_hazard"``, the name of any univariate likelihood, or an
            instance.
        options: of a likelihood given by name.
        causes: how many kinds of events there are.
        constant_dispersion: whether the spread is the same for all x, unless options say it.
    """
    given = dict(options or {})
    name = likelihood if isinstance(likelihood, str) else likelihood.name
    if causes > 1 and name != "discrete_hazard":
        raise DataError(
            f"the event has {causes} causes. {name} knows one: take discrete_hazard, or say which "
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
    """Outcomes ``(N, 4)`` of lower, upper, cause and entry as the ``(N, 3)`` that the likelihood takes."""
    lower, upper, cause, entry = outcomes.T
    if not isinstance(likelihood, Cox | DiscreteHazard):
        _refuse_negative(likelihood, lower, upper)
        return np.stack([lower, upper, entry], axis=1)
    between = np.isinf(lower) | (np.isfinite(upper) & (lower < upper))
    if between.any():
        row = int(np.flatnonzero(between)[0])
        raise DataError(
            f"{likelihood.name} takes events and right-censored times, got an interval at y[{row}]. Take "
            "a likelihood with a density, like weibull or log_normal."
        )
    return np.stack([lower, cause, entry], axis=1)


def times_and_causes(
    likelihood: Likelihood, y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Times and causes (0: censored) of a likelihood's outcomes; None if any is known as an interval."""
    if isinstance(likelihood, Cox | DiscreteHazard):
        return y[:, 0], y[:, 1]
    lower, upper = y[:, 0], y[:, 1]
    if not ((lower == upper) | np.isinf(upper)).all() or np.isinf(lower).any():
        return None
    return lower, (lower == upper).astype(np.float64)


def _refuse_negative(
    likelihood: Likelihood, lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> None:
    """A row censored at a time before 0 says nothing to a likelihood of positive times: an error in y."""
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
