"""What a file says about itself: the law, its columns, its outputs and where it came from."""

import json
from typing import TYPE_CHECKING, Any

import ansatz
from ansatz.fitting.contracts.exporter import Input
from ansatz.fitting.description import describe_model
from ansatz.fitting.model import Model
from ansatz.onnx.answers import curve_times
from ansatz.onnx.graph import label_list
from ansatz.onnx.inputs import exporter_of
from ansatz.onnx.scipy_laws import interval_recipe
from ansatz.onnx.served import ServedModel

if TYPE_CHECKING:
    import onnx

_RAW = (
    "the raw numbers of the law, (N, P), (N, targets, P) or of each cell (N, *size, P); the first "
    "is the linear predictor"
)


def describe(model: Model, served: ServedModel) -> dict[str, Any]:
    """The file's metadata as plain data.

    Args:
        model: fitted.
        served: what is exported of it.
    """
    law = getattr(served.law, "law", served.law)  # what is censored, or what members share
    law = getattr(law, "law", law)
    told, outcome = describe_model(model), model.outcome
    words = {"raw": _RAW, **outcome.outputs}
    return {
        "ansatz_version": ansatz.__version__,
        "estimator": outcome.face.partition(":")[2],
        "network": told["network"],
        "parameters": told["parameters"],
        "law": law.name,
        "law_options": law.options,
        "link": law.link_name,
        "target": told["target"],
        "unit": "predictions are in the unit of the target as it was given to the fit",
        "classes": label_list(model),
        **served.words,
        "inputs": [_column(given) for given in served.inputs],
        "outputs": {name: words.get(name, "a parameter of the law") for name in served.outputs},
        "times": curve_times(served.law) or None,
        "interval": interval_recipe(law.name, served.outputs, outcome.intervals),
        "preprocessing": exporter_of(model).preprocessing,
        "fingerprint": told.get("fingerprint"),
        "rows": told.get("rows"),
        "metrics": told.get("metrics"),
        "notes": served.notes,
    }


def attach(proto: "onnx.ModelProto", told: dict[str, Any]) -> None:
    """Writes the metadata into the file: text as it is, the rest as JSON."""
    proto.producer_name, proto.producer_version = "ansatz", str(told.get("ansatz_version", ""))
    proto.doc_string = "Columns or cells in, a predictive law out; see the metadata."
    del proto.metadata_props[:]
    for key, value in told.items():
        if value is not None:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            entry = proto.metadata_props.add()
            entry.key, entry.value = key, text


def _column(given: Input) -> dict[str, Any]:
    said: dict[str, Any] = {"name": given.name, "column": given.column, "takes": given.takes}
    if given.is_text:
        said["levels"] = [level for level in given.codes if level]
    return said
