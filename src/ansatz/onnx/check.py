"""The proof that a file computes what the model computes, made before it is written."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ansatz.data.grids import Grids
from ansatz.errors import MissingExtraError, NumericalError
from ansatz.onnx.inputs import Input, feed, graph_inputs, is_grid

if TYPE_CHECKING:
    import pandas as pd

_ROWS, _GRIDS = 64, 4
_NEAR_GRIDS = 1e-4  # both compute in single precision, and sums over windows are long
_NEAR = {False: 1e-5, True: 1e-9}  # of single and double precision


def verify(estimator: Any, content: bytes, outputs: list[str], *, double: bool) -> float:
    """The largest difference of raw numbers between onnxruntime and the estimator.

    Relative to the largest of each raw number.

    Rows are made up from what preprocessing knows: numbers within 3 standard deviations, each
    level, a level never seen, missing cells; grids are noise. Beyond 1e-5 (1e-9 in double
    precision, 1e-4 of grids) it is a :class:`~ansatz.errors.NumericalError`.

    Args:
        estimator: the fitted one.
        content: of the file.
        outputs: the names of its outputs.
        double: whether it was exported in double precision.

    Example:
        >>> from ansatz.onnx.check import verify
        >>> callable(verify)
        True
    """
    grid = is_grid(estimator)
    if grid:
        found, expected = _of_grids(estimator, content, outputs)
    else:
        rows = made_up_rows(estimator)
        offset = _offset(estimator, rows)
        found = run(content, feed(estimator, rows, double=double))[outputs.index("raw")]
        taken = np.asarray(rows) if "X" in _kinds(estimator) else rows[_columns(estimator)]
        expected = estimator.model_.raw(taken, offset, notes=[]).numpy()
    # Of each raw number; one may well be near 0 in a row, or of masks in a cell.
    unit = np.abs(expected).max(axis=tuple(range(expected.ndim - 1)) if grid else 0)
    off = float(np.max(np.abs(found - expected) / np.where(unit > 0, unit, 1.0)))
    if not off <= (_NEAR_GRIDS if grid else _NEAR[double]):
        advice = "" if double or grid else " Export in double precision: --double."
        raise NumericalError(
            f"the exported graph differs from the model by {off:.1e} of its largest number.{advice}"
        )
    return off


def _of_grids(estimator: Any, content: bytes, outputs: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Raw numbers of noise with the mean and the spread of the fit's examples, by both."""
    preprocessor, generator = estimator.model_.preprocessor, np.random.default_rng(0)
    each = (-1, *(1,) * (len(preprocessor.shape) - 1))
    mean, spread = (np.reshape(v, each) for v in (preprocessor.mean, preprocessor.spread))
    noise = generator.normal(size=(_GRIDS, *preprocessor.shape))
    cells = ((mean + spread * noise) * preprocessor.unit).astype(np.float32)
    if preprocessor.unit != 1:
        cells = cells.round().clip(0, 255).astype(np.uint8)
    inputs, offset = {"X": cells.astype(np.float32)}, None
    for given in graph_inputs(estimator)[1:]:
        inputs[given.name] = np.full(_GRIDS, 1.5, np.float32)
        part = torch.full((_GRIDS,), 1.5, dtype=torch.float64)
        part = part.log() if given.kind == "exposure" else part
        offset = part if offset is None else offset + part
    found = run(content, inputs)[outputs.index("raw")]
    expected = estimator.model_.raw(Grids(torch.from_numpy(cells)), offset, notes=[]).numpy()
    return found, expected


def run(content: bytes, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """All outputs of a graph in onnxruntime, on one thread.

    Example:
        >>> from ansatz.onnx.check import run
        >>> callable(run)
        True
    """
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtraError("ONNX files", "onnx") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    found: list[np.ndarray] = session.run(None, inputs)
    return found


def made_up_rows(estimator: Any, seed: int = 0) -> "pd.DataFrame":
    """Rows like those of the training table, without any of them: 64 rows, missing cells too.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.onnx.check import made_up_rows
        >>> x = np.linspace(0, 1, 9).reshape(-1, 1)
        >>> made_up_rows(Regressor(network="linear").fit(x, x[:, 0])).shape
        (64, 1)
    """
    import pandas as pd

    generator = np.random.default_rng(seed)
    preprocessor = estimator.model_.preprocessor
    numeric, slots = preprocessor.numeric, preprocessor.slots
    used = [column.name for column in preprocessor.columns if column.used]
    columns: dict[str, Any] = {}
    for place, given in enumerate(graph_inputs(estimator)):
        if given.kind == "matrix":
            for j in range(len(slots)):
                columns[f"x{j + 1}"] = _numbers(numeric, j, generator)
        elif given.kind == "number":
            (j,) = (j for j, slot in enumerate(slots) if slot.column == used[place])
            columns[given.column] = _numbers(numeric, j, generator)
        elif given.kind == "date":
            days = generator.uniform(-20_000, 30_000, _ROWS)
            columns[given.column] = pd.to_datetime((days * 86_400e6).astype(np.int64), unit="us")
        elif given.kind in ("offset", "exposure"):
            columns[given.column] = generator.uniform(0.5, 2.0, _ROWS).astype(np.float32)
        else:
            columns[given.column] = _levels(given, generator)
    return pd.DataFrame(columns)


def _numbers(numeric: Any, j: int, generator: np.random.Generator) -> np.ndarray:
    center, scale = numeric.center[j], numeric.scale[j]
    if j in numeric.curves:
        low, high = numeric.curves[j].values[0], numeric.curves[j].values[-1]
        values = generator.uniform(low, high, _ROWS)
    elif center == 0 and scale == 1:  # a linear model keeps units and knows the mean alone
        values = numeric.fill[j] * generator.uniform(0.5, 1.5, _ROWS)
    else:
        values = center + scale * generator.uniform(-3, 3, _ROWS)
    # Numbers that single precision can hold: what is compared is the graph, not the rounding.
    values = values.astype(np.float32).astype(np.float64)
    values[generator.random(_ROWS) < 0.1] = np.nan
    return values


def _levels(given: Input, generator: np.random.Generator) -> np.ndarray:
    known = [level for level in given.codes if level and not level.startswith("(")]
    listed = np.array([*known, "a level never seen", None], dtype=object)
    return listed[generator.integers(0, len(listed), _ROWS)]


def _offset(estimator: Any, rows: "pd.DataFrame") -> torch.Tensor | None:
    total: Any = None
    for given in graph_inputs(estimator):
        if given.kind in ("offset", "exposure"):
            part = rows[given.column].to_numpy(np.float64)
            part = np.log(part) if given.kind == "exposure" else part
            total = part if total is None else total + part
    return None if total is None else torch.from_numpy(total)


def _kinds(estimator: Any) -> list[str]:
    return [given.name for given in graph_inputs(estimator) if given.kind == "matrix"]


def _columns(estimator: Any) -> Any:
    kinds = ("offset", "exposure")
    return [given.column for given in graph_inputs(estimator) if given.kind not in kinds]
