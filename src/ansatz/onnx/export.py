"""A fitted model as one ONNX file that any runtime can serve."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.errors import MissingExtraError, NumericalError, UsageError
from ansatz.fitting.model import Model
from ansatz.onnx.graph import finish, label_list, trace
from ansatz.onnx.inputs import exporter_of, fitted_model, graph_inputs, offset_inputs
from ansatz.onnx.metadata import attach, describe
from ansatz.onnx.served import served_module
from ansatz.storage import write_file


class Exported(NamedTuple):
    """The report of an export.

    Args:
        path: the file.
        inputs: the names of its inputs.
        outputs: the names of its outputs.
        difference: the largest relative difference of raw numbers to the model's own, on made-up
            rows in onnxruntime.
        notes: what the file cannot give.

    Example:
        >>> from pathlib import Path
        >>> from ansatz.onnx import Exported
        >>> Exported(Path("a.onnx"), ["x"], ["raw"], 1e-7, []).outputs
        ['raw']
    """

    path: Path
    inputs: list[str]
    outputs: list[str]
    difference: float
    notes: list[str]


def export(
    model: Any, path: str | Path, *, double: bool = False, overwrite: bool = False
) -> Exported:
    """Writes the whole function that a model serves as an ONNX file, whole or not at all.

    The file takes the columns of the table as they are, one input each, or the cells of signals,
    images and volumes ``(N, C, *size)`` as one, and gives the raw numbers
    of the likelihood, its parameters by name, predictions and probabilities. Preprocessing is
    inside; what the inputs and outputs mean is in the file's metadata. Before it is written the
    graph runs in onnxruntime and must agree with the model.

    Args:
        model: a fitted estimator, or the result of :func:`ansatz.fit` or :func:`ansatz.tune`.
        path: the file's name.
        double: computes in float64, and takes it; else in float32.
        overwrite: replaces what is there.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> import ansatz
        >>> x = np.linspace(0, 1, 20).reshape(-1, 1)
        >>> model = ansatz.Regressor(network="linear").fit(x, 2 * x[:, 0] + 1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ansatz.export(model, folder + "/line.onnx").outputs
        ['raw', 'likelihood_mean', 'likelihood_sd', 'prediction']
    """
    try:
        import onnx
        import onnxruntime  # noqa: F401  # for the proof
        import onnxscript  # noqa: F401  # which torch writes the graph with
    except ImportError:
        raise MissingExtraError("ONNX files", "onnx") from None
    fitted = fitted_model(model)
    if double and fitted.encoder.dtype != torch.float64:
        raise UsageError(
            f"networks on {fitted.structure.name}s compute in float32: export without --double."
        )
    served = served_module(fitted, double=double)
    proto = trace(served)
    finish(proto, served.inputs, served.outputs, label_list(fitted))
    attach(proto, describe(fitted, served))
    onnx.checker.check_model(proto, full_check=True)
    content = proto.SerializeToString()
    off = verify(fitted, content, served.outputs, double=double)
    written = write_file(path, content, overwrite=overwrite)
    for name, beside in exporter_of(fitted).beside().items():
        write_file(written.with_suffix(f".{name}"), beside, overwrite=overwrite)
    names = [given.name for given in served.inputs]
    return Exported(written, names, served.outputs, off, served.notes)


_NEAR_SINGLE = 1e-4  # both compute in single precision, and sums over windows are long
_NEAR = {False: 1e-5, True: 1e-9}  # of single and double precision


def verify(model: Model, content: bytes, outputs: list[str], *, double: bool) -> float:
    """The largest relative difference of raw numbers between onnxruntime and the model.

    Rows are made up from what the structure's encoder knows. Beyond 1e-5 (1e-9 in double
    precision, 1e-4 of models that predict in single precision) it raises ``NumericalError``.
    """
    kind, exporter, offset = np.float64 if double else np.float32, exporter_of(model), None
    rows, values = exporter.made_up(0, kind)
    for each in offset_inputs(model):
        part = np.linspace(0.5, 2.0, len(values[0])).astype(np.float32)
        values.append(part.astype(kind))
        part = np.log(part.astype(np.float64)) if each.kind == "exposure" else part
        offset = part.astype(np.float64) if offset is None else offset + part
    named = {each.name: value for each, value in zip(graph_inputs(model), values, strict=True)}
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
