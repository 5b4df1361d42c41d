"""The law of a time that may be censored, and outcomes in the form that it takes."""

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

SURVIVAL_LAWS = ("cox", "discrete_hazard", "censored")


def survival_law(
    law: str | Likelihood,
    options: Mapping[str, Any] | None = None,
    *,
    causes: int = 1,
    constant_dispersion: bool = False,
) -> Likelihood:
    """A law of survival times: one by itself, or any law of numbers made to take censoring.

    Args:
        law: ``"cox"``, ``"discrete_hazard"``, the name of any univariate law, or an instance.
        options: of a law given by name.
        causes: how many kinds of events there are.
        constant_dispersion: whether the spread is the same for all x, unless options say it.
    """
    given = dict(options or {})
    name = law if isinstance(law, str) else law.name
    if causes > 1 and name != "discrete_hazard":
        raise DataError(
            f"the event has {causes} causes. {name} knows one: take discrete_hazard, or say which "
            "code is the event: event=(status == 1), or --event COLUMN=1."
        )
    if not isinstance(law, str):
        return law if law.name in SURVIVAL_LAWS else Censored(law=law)
    if law == "discrete_hazard":
        given = {"causes": max(causes, 1), **given}
    if law in SURVIVAL_LAWS:
        found: Likelihood = likelihoods.create(law, **given)
        return found
    kind = likelihoods.registry.get(law)
    if constant_dispersion and "dispersion" in inspect.signature(kind).parameters:
        given = {"dispersion": "constant", **given}
    return Censored(law=law, options=given)


def survival_target(law: Likelihood, outcomes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Outcomes ``(N, 4)`` of lower, upper, cause and entry as the ``(N, 3)`` that the law takes."""
    lower, upper, cause, entry = outcomes.T
    if not isinstance(law, Cox | DiscreteHazard):
        _refuse_negative(law, lower, upper)
        return np.stack([lower, upper, entry], axis=1)
    between = np.isinf(lower) | (np.isfinite(upper) & (lower < upper))
    if between.any():
        row = int(np.flatnonzero(between)[0])
        raise DataError(
            f"{law.name} takes events and right-censored times, got an interval at y[{row}]. Take "
            "a law with a density, like weibull or log_normal."
        )
    return np.stack([lower, cause, entry], axis=1)


def times_and_causes(
    law: Likelihood, y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Times and causes (0: censored) of a law's outcomes; None if any is known as an interval."""
    if isinstance(law, Cox | DiscreteHazard):
        return y[:, 0], y[:, 1]
    lower, upper = y[:, 0], y[:, 1]
    if not ((lower == upper) | np.isinf(upper)).all() or np.isinf(lower).any():
        return None
    return lower, (lower == upper).astype(np.float64)


def _refuse_negative(
    law: Likelihood, lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> None:
    """A row censored at a time before 0 says nothing to a law of positive times: an error in y."""
    bad = (lower < 0) & np.isfinite(lower) & np.isinf(upper)
    if not bad.any():
        return
    inner = getattr(law, "law", law)
    with torch.no_grad():
        raw = torch.zeros(1, inner.outputs(TargetSpec()), dtype=torch.float64)
        least = copy.deepcopy(inner).double().distribution(raw).lower
    if least >= 0:
        row = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"{inner.name} needs times >= 0, got {lower[row]:g} at y[{row}]. Repair the time, or "
            "take a law of any number, like normal."
        )
