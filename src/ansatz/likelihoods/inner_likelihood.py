"""A likelihood inside another: by name and options, or as an instance."""

from collections.abc import Mapping
from typing import Any

from ansatz.errors import UsageError
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.likelihoods.registry import create

UNORDERED = ("categorical", "von_mises")  # classes and angles: nothing lies beyond a value


def inner_likelihood(
    outer: str, likelihood: str | Likelihood, options: Mapping[str, Any] | None = None
) -> tuple[Likelihood, dict[str, Any]]:
    """The likelihood of single ordered numbers, and the name and options that remake it."""
    if isinstance(likelihood, str):
        likelihood = create(likelihood, **(options or {}))
    elif options:
        raise UsageError(
            f"{outer}: options belong to a likelihood given by name, but this one is an instance."
        )
    if not isinstance(likelihood, Likelihood):
        raise UsageError(f"{outer} needs a likelihood's name or a Likelihood, got {likelihood!r}.")
    if not likelihood.has_distribution:
        reason = "a loss without a density"
    elif likelihood.event_ndim or not likelihood.additive:
        reason = "whose outcomes are several numbers"
    elif likelihood.name in UNORDERED:
        reason = "whose outcomes have no order"
    else:
        return likelihood, {"likelihood": likelihood.name, "options": dict(likelihood.options)}
    raise UsageError(
        f"{outer} needs a likelihood of single numbers, got {likelihood.name!r}, {reason}. "
        "Take one like weibull, log_normal, normal or poisson."
    )
