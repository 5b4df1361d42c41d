"""The estimator through which a user meets a fitted model."""

import importlib
from typing import Any

from ansatz.fitting.model import Model


def face_of(model: Model) -> Any:
    """The estimator of the model's outcome, fitted.

    Args:
        model: fitted.
    """
    module, _, name = model.outcome.face.partition(":")
    kind = getattr(importlib.import_module(module), name)
    known = kind._get_param_names()
    given = model.task.settings.arguments
    face = kind(**{key: value for key, value in given.items() if key in known})
    face.adopt(model)
    return face
