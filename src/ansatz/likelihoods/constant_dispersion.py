"""Likelihoods whose dispersion is constant, or predicted from x."""

import inspect
from typing import Literal

from ansatz.likelihoods.censored import Censored
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.likelihoods.registry import registry
from ansatz.likelihoods.truncated import Truncated

Dispersion = Literal["constant", "predicted"]


def with_dispersion(likelihood: Likelihood, dispersion: Dispersion) -> Likelihood:
    """The same likelihood with its dispersion constant or predicted; a given one stays as it is."""
    if not varies(likelihood):
        return likelihood
    if isinstance(likelihood, Censored):
        return Censored(likelihood=with_dispersion(likelihood.likelihood, dispersion))
    if isinstance(likelihood, Truncated):
        inner = with_dispersion(likelihood.likelihood, dispersion)
        return Truncated(
            inner, lower=likelihood.options["lower"], upper=likelihood.options["upper"]
        )
    changed: Likelihood = registry.create(
        likelihood.name, **{**likelihood.options, "dispersion": dispersion}
    )
    return changed


def current_dispersion(likelihood: Likelihood) -> str | float | None:
    """``"predicted"``, ``"constant"``, the given value, or None for a likelihood without one."""
    likelihood = getattr(likelihood, "likelihood", likelihood)  # what is censored or truncated
    parameter = inspect.signature(type(likelihood).__init__).parameters.get("dispersion")
    if parameter is None:
        return None
    found: str | float = likelihood.options.get("dispersion", parameter.default)
    return found


def varies(likelihood: Likelihood) -> bool:
    """Whether the likelihood learns a dispersion, once or from x: neither known nor measured."""
    return current_dispersion(likelihood) in ("constant", "predicted")
