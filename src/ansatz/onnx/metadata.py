"""What a file says about itself: the law, its columns, its outputs and where it came from."""

import json
from typing import TYPE_CHECKING, Any

import ansatz
from ansatz.onnx.answers import curve_times
from ansatz.onnx.graph import label_list
from ansatz.onnx.inputs import Input, is_grid
from ansatz.onnx.scipy_laws import interval_recipe
from ansatz.onnx.served import ServedModel

if TYPE_CHECKING:
    import onnx

_KINDS = {
    "matrix": "numbers (N, {width}) in the order of the training array; nan where missing",
    "grid": "numbers (N, {width}), channels first; bytes of images as numbers from 0 to 255",
    "number": "numbers (N,); nan where missing",
    "category": "text (N,); empty where missing; any other text is the unknown level",
    "ordered": "text (N,), from low to high; empty where missing",
    "date": "microseconds since 1970-01-01 UTC (N,); -2**63 where missing",
    "offset": "numbers (N,), added to the linear predictor",
    "exposure": "positive numbers (N,), whose logarithm is added to the linear predictor",
}
_OUTPUTS = {
    "raw": "the raw numbers of the law, (N, P), (N, targets, P) or of each cell (N, *size, P); the "
    "first is the linear predictor",
    "prediction": "what predict gives, in the unit of the target",
    "probabilities": "P(class | x) in the order of 'classes'; of rankings, P(item is first | x)",
    "survival": "P(T > t | x) at the times in 'times'",
    "incidence": "P(T <= t, event of this cause | x), (N, causes, times)",
}


def describe(estimator: Any, served: ServedModel) -> dict[str, Any]:
    """The file's metadata as plain data.

    Args:
        estimator: the fitted one.
        served: what is exported of it.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.onnx import served_module
        >>> from ansatz.onnx.metadata import describe
        >>> x = np.linspace(0, 1, 9).reshape(-1, 1)
        >>> model = Regressor(network="linear").fit(x, x[:, 0])
        >>> describe(model, served_module(model))["link"]
        'identity'
    """
    law = getattr(served.law, "law", served.law)  # what is censored, or what members share
    law = getattr(law, "law", law)
    mixed = served.combination
    told = estimator.describe()
    return {
        "ansatz_version": ansatz.__version__,
        "estimator": type(estimator).__name__,
        "network": told["network"],
        "parameters": told["parameters"],
        "law": law.name,
        "law_options": law.options,
        "link": law.link_name,
        "target": told["target"],
        "unit": "predictions are in the unit of the target as it was given to the fit",
        "classes": label_list(estimator),
        "members": None if mixed is None else len(mixed.laws),
        "weights": None if mixed is None else mixed.weights.tolist(),
        "factor": None if mixed is None else mixed.factor,
        "inputs": [_column(given, served) for given in served.inputs],
        "outputs": {name: _OUTPUTS.get(name, "a parameter of the law") for name in served.outputs},
        "times": curve_times(served.law) or None,
        "interval": interval_recipe(law.name, served.outputs),
        "preprocessing": _preprocessing(estimator),
        "fingerprint": told.get("fingerprint"),
        "rows": told.get("rows"),
        "metrics": told.get("metrics"),
        "notes": served.notes,
    }


def attach(proto: "onnx.ModelProto", told: dict[str, Any]) -> None:
    """Writes the metadata into the file: text as it is, the rest as JSON.

    Example:
        >>> import onnx
        >>> from ansatz.onnx.metadata import attach
        >>> proto = onnx.ModelProto()
        >>> attach(proto, {"law": "normal", "target": ["y"], "times": None})
        >>> [(entry.key, entry.value) for entry in proto.metadata_props]
        [('law', 'normal'), ('target', '["y"]')]
    """
    proto.producer_name, proto.producer_version = "ansatz", str(told.get("ansatz_version", ""))
    proto.doc_string = "Columns or cells in, a predictive law out; see the metadata."
    del proto.metadata_props[:]
    for key, value in told.items():
        if value is not None:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            entry = proto.metadata_props.add()
            entry.key, entry.value = key, text


def _column(given: Input, served: ServedModel) -> dict[str, Any]:
    said: dict[str, Any] = {"name": given.name, "column": given.column}
    cells = served._member(0).columns
    width = ", ".join(map(str, cells.shape)) if given.kind == "grid" else len(cells.slots)
    said["takes"] = _KINDS[given.kind].format(width=width)
    if given.is_text:
        said["levels"] = [level for level in given.codes if level]
    return said


def _preprocessing(estimator: Any) -> str:
    if is_grid(estimator):
        return "inside the graph: every channel with mean 0 and spread 1"
    if estimator.model_.preprocessor.purpose == "linear":
        return "inside the graph: numbers in their units, missing ones as the mean"
    return (
        "inside the graph: numbers standardised and cut at 6 standard deviations, missing ones as "
        "the mean"
    )
