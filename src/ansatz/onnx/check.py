"""The proof that a file computes what the model computes, made before it is written."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.errors import MissingExtraError, NumericalError
from ansatz.fitting.model import Model
from ansatz.onnx.inputs import exporter_of, graph_inputs, offset_inputs

_NEAR_SINGLE = 1e-4  # both compute in single precision, and sums over windows are long
_NEAR = {False: 1e-5, True: 1e-9}  # of single and double precision


def verify(model: Model, content: bytes, outputs: list[str], *, double: bool) -> float:
    """The largest difference of raw numbers between onnxruntime and the model.

    Relative to the largest of each raw number.

    Rows are made up from what the structure's encoder knows. Beyond 1e-5 (1e-9 in double
    precision, 1e-4 of models that predict in single precision) it is a
    :class:`~ansatz.errors.NumericalError`.

    Args:
        model: fitted.
        content: of the file.
        outputs: the names of its outputs.
        double: whether it was exported in double precision.
    """
    kind, exporter, offset = np.float64 if double else np.float32, exporter_of(model), None
    rows, cells = exporter.made_up(0, kind)
    for each in offset_inputs(model):
        part = np.linspace(0.5, 2.0, len(cells[0])).astype(np.float32)
        cells.append(part.astype(kind))
        part = np.log(part.astype(np.float64)) if each.kind == "exposure" else part
        offset = part.astype(np.float64) if offset is None else offset + part
    named = {each.name: cell for each, cell in zip(graph_inputs(model), cells, strict=True)}
    found = run(content, named)[outputs.index("raw")]
    extra = None if offset is None else torch.from_numpy(offset)
    expected = exporter.raw(model.posterior, rows, extra).numpy()
    single = model.encoder.dtype == torch.float32
    # Of each raw number; one may well be near 0 in a row, or of an element.
    unit = np.abs(expected).max(axis=tuple(range(expected.ndim - 1)) if single else 0)
    off = float(np.max(np.abs(found - expected) / np.where(unit > 0, unit, 1.0)))
    if not off <= (_NEAR_SINGLE if single else _NEAR[double]):
        advice = "" if double or single else " Export in double precision: --double."
        raise NumericalError(
            f"the exported graph differs from the model by {off:.1e} of its largest number.{advice}"
        )
    return off


def run(content: bytes, inputs: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """All outputs of a graph in onnxruntime, on one thread."""
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtraError("ONNX files", "onnx") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    found: list[NDArray[Any]] = session.run(None, inputs)
    return found
