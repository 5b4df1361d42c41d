"""The names that a search may vary."""

import inspect
from collections.abc import Callable
from typing import Any

from ansatz import likelihoods, networks
from ansatz.estimators.table_estimator import TableEstimator

# Arguments of an estimator that change no model, or that the search itself sets.
_NOT_SEARCHED = {"random_state", "n_jobs", "device", "time_limit", "verbose", "warm_start"}
_NOT_SEARCHED |= {"network", "likelihood_options", "network_options", "likelihood"}


def known_options(estimator: TableEstimator, network: str, law: str) -> list[str]:
    """Options of the estimator, the network and the law, by name.

    Example:
        >>> from ansatz import Regressor
        >>> from ansatz.tuning.options import known_options
        >>> "dropout" in known_options(Regressor(), "mlp", "normal")
        True
    """
    names = [name for name in estimator._get_param_names() if name not in _NOT_SEARCHED]
    names += _arguments(networks.registry.get(network))
    names += _arguments(likelihoods.registry.get(law))
    return [name for name in dict.fromkeys(names) if name not in ("inputs", "outputs", "generator")]


def _arguments(function: Callable[..., Any]) -> list[str]:
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    found = inspect.signature(function).parameters.values()
    return [parameter.name for parameter in found if parameter.kind not in kinds]
