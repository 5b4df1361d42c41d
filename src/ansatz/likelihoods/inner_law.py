"""A law inside another: by name and options, or as an instance."""

from collections.abc import Mapping
from typing import Any

from ansatz.errors import UsageError
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.likelihoods.registry import create

UNORDERED = ("categorical", "von_mises")  # classes and angles: nothing lies beyond a value


def inner_law(
    outer: str, law: str | Likelihood, options: Mapping[str, Any] | None = None
) -> tuple[Likelihood, dict[str, Any]]:
    """The law, and the name and options that remake it; only laws of single ordered numbers.

    Example:
        >>> from ansatz.likelihoods.inner_law import inner_law
        >>> inner_law("censored", "normal", {"dispersion": "constant"})[1]
        {'law': 'normal', 'options': {'dispersion': 'constant'}}
        >>> inner_law("censored", "mse")
        Traceback (most recent call last):
        ...
        ansatz.errors.UsageError: censored needs a law of single numbers, got 'mse', ...
    """
    if isinstance(law, str):
        law = create(law, **(options or {}))
    elif options:
        raise UsageError(
            f"{outer}: options belong to a law given by name, but this one is an instance."
        )
    if not isinstance(law, Likelihood):
        raise UsageError(f"{outer} needs a law's name or a Likelihood, got {law!r}.")
    if not law.is_law:
        reason = "a loss without a density"
    elif law.event_ndim or not law.additive:
        reason = "whose outcomes are several numbers"
    elif law.name in UNORDERED:
        reason = "whose outcomes have no order"
    else:
        return law, {"law": law.name, "options": dict(law.options)}
    raise UsageError(
        f"{outer} needs a law of single numbers, got {law.name!r}, {reason}. "
        "Take one like weibull, log_normal, normal or poisson."
    )
