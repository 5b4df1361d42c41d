"""The names that a search may vary."""

import inspect
from collections.abc import Callable
from typing import Any

from ansatz import likelihoods, networks
from ansatz.estimators.table_estimator import TableEstimator
from ansatz.fitting.job import Job, has_masks
from ansatz.fitting.settings import OF_GRIDS, OF_MLP, OF_TABLES
from ansatz.tuning.space import SHAPE

# Arguments of an estimator that change no model, or that the search itself sets.
_NOT_SEARCHED = {"random_state", "n_jobs", "device", "time_limit", "verbose", "warm_start"}
_NOT_SEARCHED |= {"network", "likelihood_options", "network_options", "likelihood", "x"}


def known_options(
    estimator: TableEstimator, network: str, law: str, *, grid: bool = False
) -> list[str]:
    """Options of the estimator, the network and the law, by name.

    Args:
        estimator: of the fits.
        network: by name.
        law: by name.
        grid: whether x are signals, images or volumes, to which other options apply.

    Example:
        >>> from ansatz import Regressor
        >>> from ansatz.tuning.options import known_options
        >>> "dropout" in known_options(Regressor(), "mlp", "normal")
        True
        >>> "augment" in known_options(Regressor(), "mlp", "normal")
        False
    """
    silent = {*_NOT_SEARCHED, *(OF_TABLES if grid else OF_GRIDS)}
    silent |= set() if network == "mlp" else set(OF_MLP)
    names = [name for name in estimator._get_param_names() if name not in silent]
    names += SHAPE if network == "mlp" else ()
    names += _arguments(networks.registry.get(network))
    names += _arguments(likelihoods.registry.get(law))
    return [name for name in dict.fromkeys(names) if name not in ("inputs", "outputs", "generator")]


def network_values(estimator: TableEstimator, learn: Job) -> dict[str, Any]:
    """The options of a network as a fit would make it, its own defaults among them.

    Args:
        estimator: with the network by name.
        learn: the rows to learn from.

    Example:
        >>> import numpy as np
        >>> from ansatz import Classifier
        >>> from ansatz.tuning.options import network_values
        >>> model = Classifier(network="small_resnet", network_options={"depth": 8})
        >>> job = model._read(np.zeros((4, 16, 16), np.float32), [0, 1, 0, 1])
        >>> found = network_values(model, job)
        >>> found["depth"], found["dropout"]
        (8, 0.0)
    """
    name = estimator._network_for(learn.grid, masks=has_masks(learn))
    found = inspect.signature(networks.registry.get(str(name))).parameters.values()
    own = {each.name: each.default for each in found if each.default is not inspect.Parameter.empty}
    own.pop("generator", None)
    return {**own, **estimator._options(name, estimator._recipe(learn), learn.grid)}


def _arguments(function: Callable[..., Any]) -> list[str]:
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    found = inspect.signature(function).parameters.values()
    return [parameter.name for parameter in found if parameter.kind not in kinds]
