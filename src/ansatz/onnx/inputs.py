"""The inputs of an exported model: those of its structure, and offsets."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansatz import outcomes
from ansatz.data.numeric import as_numbers
from ansatz.errors import UsageError
from ansatz.fitting.contracts.exporter import Exporter, Input
from ansatz.fitting.model import Model

OFFSETS = {
    "offset": "numbers (N,), added to the linear predictor",
    "exposure": "positive numbers (N,), whose logarithm is added to the linear predictor",
}


def fitted_model(given: Any) -> Model:
    """The fitted model of an estimator, of the result of a fit or a search, or itself."""
    estimator = getattr(given, "model", given)  # of ansatz.fit, the fitted estimator in it
    found = getattr(estimator, "model_", estimator)
    if isinstance(found, Model):
        return found
    if hasattr(estimator, "predict"):
        raise UsageError(f"this {type(estimator).__name__} is not fitted yet: call fit first.")
    raise UsageError(f"export takes a fitted estimator, got {type(given).__name__}.")


def exporter_of(model: Model) -> Exporter:
    """The exporter of the model's structure; raises where there is none."""
    found: Exporter | None = model.structure.exporter(model.encoder, model.features.get("names"))
    if found is None:
        raise UsageError(f"models of structure '{model.structure.name}' cannot be exported.")
    return found


def graph_inputs(model: Model) -> list[Input]:
    """The inputs of a fitted model, in the order of its columns, offsets last."""
    kinds = [outcomes.registry.get(name) for name in outcomes.names()]
    reserved = {"raw"}.union(*(kind.outputs for kind in kinds))
    found = [*exporter_of(model).inputs, *offset_inputs(model)]
    return [replace(given, name=_free(given.name, reserved)) for given in found]


def offset_inputs(model: Model) -> list[Input]:
    """The offsets of the linear predictor, as inputs of a graph."""
    if not model.has_offset:
        return []
    named: dict[str, str | None] = {"offset": "offset"}
    if model.column_roles is not None:
        named = {"offset": model.column_roles.offset, "exposure": model.column_roles.exposure}
    return [
        Input(name, name, kind, takes=OFFSETS[kind])
        for kind, name in named.items()
        if name is not None
    ]


def feed(estimator: Any, rows: Any, *, double: bool = False) -> dict[str, NDArray[Any]]:
    """The rows of a table as onnxruntime takes them; a service does the same without ansatz.

    Args:
        estimator: the model that was exported.
        rows: a pandas frame with the columns of the fit, or an array where it was fitted to one;
            of grids ``(N, C, *size)``.
        double: whether the file was exported in double precision.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.onnx import feed
        >>> model = Regressor(network="linear").fit(np.arange(3.0).reshape(-1, 1), [1.0, 2.0, 4.0])
        >>> feed(model, np.ones((2, 1)))["X"].shape
        (2, 1)
    """
    model, kind = fitted_model(estimator), np.float64 if double else np.float32
    values = exporter_of(model).feed(rows, kind)
    with np.errstate(over="ignore"):
        values += [as_numbers(rows[each.column]).astype(kind) for each in offset_inputs(model)]
    return {each.name: value for each, value in zip(graph_inputs(model), values, strict=True)}


def _free(name: str, reserved: set[str]) -> str:
    taken = name in reserved or name.startswith(("likelihood_", "ansatz/")) or not name
    return f"column_{name}" if taken else name
