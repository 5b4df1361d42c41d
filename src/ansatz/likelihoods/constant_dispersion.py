"""Laws whose dispersion is constant, or predicted from x."""

import inspect
from typing import Literal

from ansatz.likelihoods.censored import Censored
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.likelihoods.registry import registry
from ansatz.likelihoods.truncated import Truncated

Dispersion = Literal["constant", "predicted"]


def with_dispersion(law: Likelihood, dispersion: Dispersion) -> Likelihood:
    """The same law with its dispersion constant or predicted; one that is given stays as it is.

    Example:
        >>> from ansatz.likelihoods.constant_dispersion import with_dispersion
        >>> from ansatz.likelihoods import Normal
        >>> with_dispersion(Normal(), "constant").options
        {'dispersion': 'constant'}
    """
    if not varies(law):
        return law
    if isinstance(law, Censored):
        return Censored(law=with_dispersion(law.law, dispersion))
    if isinstance(law, Truncated):
        inner = with_dispersion(law.law, dispersion)
        return Truncated(inner, lower=law.options["lower"], upper=law.options["upper"])
    changed: Likelihood = registry.create(law.name, **{**law.options, "dispersion": dispersion})
    return changed


def current_dispersion(law: Likelihood) -> str | float | None:
    """``"predicted"``, ``"constant"``, what is given instead, or None for a law that has none.

    Example:
        >>> from ansatz.likelihoods.constant_dispersion import current_dispersion
        >>> from ansatz.likelihoods import Poisson
        >>> current_dispersion(Poisson()) is None
        True
    """
    law = getattr(law, "law", law)  # what is censored or truncated
    parameter = inspect.signature(type(law).__init__).parameters.get("dispersion")
    if parameter is None:
        return None
    found: str | float = law.options.get("dispersion", parameter.default)
    return found


def varies(law: Likelihood) -> bool:
    """Whether the law has a dispersion that is learned, once or from x: neither known nor measured.

    Example:
        >>> from ansatz.likelihoods.constant_dispersion import varies
        >>> from ansatz.likelihoods import Barron, Normal
        >>> varies(Normal()), varies(Normal(dispersion=0.5)), varies(Barron(dispersion="mad"))
        (True, False, False)
    """
    return current_dispersion(law) in ("constant", "predicted")
