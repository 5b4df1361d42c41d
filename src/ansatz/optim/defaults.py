"""The settings that an optimiser by name begins with, where a recipe was made for AdamW."""

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

from ansatz.optim.registry import registry


class OptimizerDefaults(NamedTuple):
    """The settings of an optimiser where the user gives none.

    Args:
        learning_rate: None keeps that of the recipe, which was chosen for AdamW.
        steps: the largest budget; None keeps that of the recipe.
        all_rows: whether a step needs the exact gradient: all rows, no dropout, no average of
            weights and a constant rate.
        options: of the optimiser.

    Example:
        >>> from ansatz.optim import default_settings
        >>> default_settings("lbfgs").all_rows, default_settings("sgd").learning_rate
        (True, 0.03)
    """

    learning_rate: float | None = None
    steps: int | None = None
    all_rows: bool = False
    options: Mapping[str, Any] = {}  # never changed


_DEFAULTS = {
    "adadelta": OptimizerDefaults(1.0),
    "adagrad": OptimizerDefaults(1e-2),
    "asgd": OptimizerDefaults(3e-2),
    "entropy_sgd": OptimizerDefaults(0.3),
    "extragradient": OptimizerDefaults(3e-2),
    "heavy_ball": OptimizerDefaults(1e-2),
    "lbfgs": OptimizerDefaults(1.0, 200, True, {"line_search_fn": "strong_wolfe"}),
    "momentum": OptimizerDefaults(1e-2),
    "nesterov": OptimizerDefaults(1e-2),
    "newton": OptimizerDefaults(1.0, 50, True, {"damping": 1e-3}),
    "projected_gradient": OptimizerDefaults(3e-2),
    "proximal_sgd": OptimizerDefaults(3e-2),
    "rprop": OptimizerDefaults(1e-2, 500, True),
    "sgd": OptimizerDefaults(3e-2),
    "sign_descent": OptimizerDefaults(1e-3),
}


def default_settings(name: str) -> OptimizerDefaults:
    """Gives the settings that the optimiser ``name`` begins with.

    Example:
        >>> from ansatz.optim import default_settings
        >>> default_settings("adamw").learning_rate is None
        True
    """
    registry.get(name)  # an unknown name suggests the nearest
    return _DEFAULTS.get(name, OptimizerDefaults())


def takes_option(name: str, option: str) -> bool:
    """Tests whether the optimiser ``name`` has an option.

    Example:
        >>> from ansatz.optim import takes_option
        >>> takes_option("sgd", "weight_decay"), takes_option("rprop", "weight_decay")
        (True, False)
    """
    return option in inspect.signature(registry.get(name)).parameters
