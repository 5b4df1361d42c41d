"""The estimator of a kind of outcome, made with the options that are its own."""

import inspect
from collections.abc import Mapping
from typing import Any

from ansatz import likelihoods, networks
from ansatz.errors import UsageError
from ansatz.estimators.classifier import Classifier
from ansatz.fitting.problem import Problem
from ansatz.estimators.ranker import Ranker
from ansatz.estimators.regressor import Regressor
from ansatz.estimators.segmenter import Segmenter
from ansatz.fitting.settings import OF_MLP
from ansatz.estimators.survival import SurvivalRegressor
from ansatz.estimators.table_estimator import TableEstimator

ESTIMATORS: dict[str, type[TableEstimator]] = {
    "number": Regressor,
    "class": Classifier,
    "survival": SurvivalRegressor,
    "ranking": Ranker,
    "mask": Segmenter,
}
_OF_LINEAR = {"class_weight", "classes", "layout", "prior", "unranked"}
_LAW, _NETWORK = "likelihood.", "network."  # before the keys of their options, where said


def split_options(
    likelihood: str | None, options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of the estimator and the network, and those of the likelihood.

    Example:
        >>> from ansatz.fitting.kinds import split_options
        >>> split_options("normal_mixture", {"components": 2, "epochs": 5})
        ({'epochs': 5}, {'components': 2})
    """
    named = {k.removeprefix(_LAW): v for k, v in options.items() if k.startswith(_LAW)}
    others = {k: v for k, v in options.items() if not k.startswith(_LAW)}
    if likelihood is None:
        if named:
            raise UsageError(f"--set {_LAW}{next(iter(named))}: name the likelihood as well.")
        return others, {}
    known = inspect.signature(likelihoods.registry.get(likelihood)).parameters
    odd = [name for name in named if name not in known]
    if odd:
        raise UsageError(f"--set {_LAW}{odd[0]}: not an option of {likelihood}.")
    estimator = {name for kind in ESTIMATORS.values() for name in kind._get_param_names()}
    mine = {k: v for k, v in others.items() if k in known and k not in estimator}
    return {k: v for k, v in others.items() if k not in mine}, {**mine, **named}


def make_estimator(
    problem: Problem,
    network: str,
    *,
    options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> TableEstimator:
    """The estimator for the outcomes of a table.

    Args:
        problem: the table, with its law or the candidates.
        network: by name.
        options: of the estimator or of the network.
        settings: further arguments of the estimator, which options may replace.

    Example:
        >>> from ansatz.fitting.kinds import make_estimator
        >>> from ansatz.fitting.problem import pose
        >>> from ansatz.fitting.uses import Uses
        >>> problem = pose({"a": [1.0, 2.0, 4.0], "y": ["u", "v", "u"]}, Uses(target=["y"]))
        >>> type(make_estimator(problem, "mlp")).__name__
        'Classifier'
    """
    kind = ESTIMATORS[problem.kind]
    factory = networks.registry.get(network)
    known = kind._get_param_names()
    if problem.is_grid and network != "mlp":  # its dropout is its own
        takes = inspect.signature(factory).parameters
        known = [name for name in known if name not in OF_MLP or name not in takes]
    mine = {name: value for name, value in (options or {}).items() if name in known}
    others = {
        name.removeprefix(_NETWORK): value
        for name, value in (options or {}).items()
        if name not in known
    }
    if network == "linear" and not problem.is_grid:  # on grids it is trained like others
        _refuse_of_networks([*others, *(name for name in mine if name not in _OF_LINEAR)], problem)
    return kind(
        **{
            "likelihood": problem.likelihood,
            "network": network,
            **settings,
            **({"likelihood_options": problem.law_options} if problem.law_options else {}),
            **({"network_options": others} if others else {}),
            **mine,
        }
    )


def _refuse_of_networks(names: list[str], problem: Problem) -> None:
    """A linear model has options of its law and its outcomes alone: others would do nothing."""
    if names:
        laws = " or ".join(problem.laws)
        raise UsageError(
            f"'{names[0]}' is no option of a linear model with likelihood {laws}. To see the "
            f"likelihood's: ansatz show {problem.laws[0]}."
        )
