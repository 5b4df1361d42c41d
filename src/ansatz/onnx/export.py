"""A fitted model as one ONNX file that any runtime can serve."""

from pathlib import Path
from typing import Any, NamedTuple

import torch

from ansatz.errors import MissingExtraError, UsageError
from ansatz.onnx.check import verify
from ansatz.onnx.graph import finish, label_list, trace
from ansatz.onnx.inputs import fitted_model
from ansatz.onnx.metadata import attach, describe
from ansatz.onnx.served import served_module
from ansatz.storage import write_file


class Exported(NamedTuple):
    """What was written.

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
    of the law, its parameters by name, predictions and probabilities. Preprocessing is inside;
    what the inputs and outputs mean is in the file's metadata. Before it is written the graph runs
    in onnxruntime and must agree with the model.

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
        ['raw', 'law_mean', 'law_sd', 'prediction']
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
    names = [given.name for given in served.inputs]
    return Exported(written, names, served.outputs, off, served.notes)
