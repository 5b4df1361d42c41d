"""The estimator through which a user meets a fitted model."""

from typing import Any

from ansatz.fitting.model import Model
from ansatz.registry import load


def estimator_of(model: Model) -> Any:
    """The estimator of the model's outcome, fitted.

    Args:
        model: fitted.
    """
    kind = load(model.outcome.face)
    known = kind._get_param_names()
    given = model.task.settings.arguments
    face = kind(**{key: value for key, value in given.items() if key in known})
    face.adopt(model)
    return face
