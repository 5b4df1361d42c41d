"""What an exported model is given: one input per column of the table."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ansatz.data import Preprocessor
from ansatz.data.categorical import Categorical
from ansatz.data.dates import as_dates
from ansatz.data.levels import MISSING, OTHER, spelled
from ansatz.data.numeric import as_numbers
from ansatz.errors import UsageError

Kind = Literal["matrix", "grid", "number", "category", "ordered", "date", "offset", "exposure"]
NO_DATE = -(2**63)  # what NumPy makes of a date that is missing
RESERVED = ("raw", "prediction", "probabilities", "survival", "incidence")


@dataclass(frozen=True)
class Input:
    """One input of the exported graph.

    Args:
        name: in the graph; the column's own, unless an output has that name.
        column: in the table; of a matrix, all columns of an array.
        kind: ``"number"`` takes floats, nan where missing; ``"category"`` and ``"ordered"`` take
            text, empty where missing; ``"date"`` takes microseconds since 1970-01-01 UTC as int64,
            -2**63 where missing; ``"matrix"`` takes all numbers at once, ``(N, D)``;
            ``"grid"`` the cells of signals, images or volumes, ``(N, C, *size)``;
            ``"offset"`` and ``"exposure"`` take floats.
        codes: text -> the whole number that stands for it inside, of categories.
        unknown: what stands for any other text.

    Example:
        >>> from ansatz.onnx.inputs import Input
        >>> Input("age", "age", "number").is_text
        False
    """

    name: str
    column: str
    kind: Kind
    codes: dict[str, int] = field(default_factory=dict)
    unknown: int = 0

    @property
    def is_text(self) -> bool:
        """Whether cells are given as text."""
        return self.kind in ("category", "ordered")


def graph_inputs(estimator: Any) -> list[Input]:
    """The inputs of a fitted estimator, in the order of its columns, offsets last.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.onnx.inputs import graph_inputs
        >>> model = Regressor(network="linear").fit(np.arange(6.0).reshape(3, 2), [1.0, 2.0, 4.0])
        >>> [(given.name, given.kind) for given in graph_inputs(model)]
        [('X', 'matrix')]
    """
    preprocessor: Preprocessor = estimator.model_.preprocessor
    if is_grid(estimator):
        return [Input("X", "X", "grid"), *_offsets(estimator)]
    names = _column_names(estimator, preprocessor)
    if names is None:
        found = [Input("X", "X", "matrix")]
    else:
        levels = {c.name: c for c in (*preprocessor.coded, *preprocessor.embedded)}
        found = [
            _input(column, name, levels.get(column.name))
            for column, name in zip(preprocessor.columns, names, strict=True)
            if column.used
        ]
    if not preprocessor.feature_names and not levels_of(preprocessor):
        raise UsageError(
            "the model has no features: its law is the same for every row, and predict_dist(None) "
            "says it. There is nothing to export."
        )
    return found + _offsets(estimator)


def is_grid(estimator: Any) -> bool:
    """Whether a model takes signals, images or volumes.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.onnx.inputs import is_grid
        >>> is_grid(Regressor(network="linear").fit(np.arange(3.0).reshape(3, 1), [1.0, 2.0, 4.0]))
        False
    """
    return bool(estimator.model_.preprocessor.spec.structure == "grid")


def levels_of(preprocessor: Preprocessor) -> list[Categorical]:
    """The categorical columns that a network embeds.

    Example:
        >>> from ansatz.data import Preprocessor
        >>> from ansatz.onnx.inputs import levels_of
        >>> levels_of(Preprocessor.fit({"a": [1.0, 2.0]}))
        []
    """
    return preprocessor.embedded


def feed(estimator: Any, rows: Any, *, double: bool = False) -> dict[str, np.ndarray]:
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
    kind = np.float64 if double else np.float32
    found: dict[str, np.ndarray] = {}
    for given in graph_inputs(estimator):
        if given.kind in ("matrix", "grid"):
            found[given.name] = np.asarray(rows).astype(kind)
        elif given.kind in ("number", "offset", "exposure"):
            with np.errstate(over="ignore"):  # beyond float32's range: cut at 6 sd all the same
                found[given.name] = as_numbers(rows[given.column]).astype(kind)
        elif given.kind == "date":
            times = as_dates(rows[given.column]).to_numpy()
            found[given.name] = times.astype("datetime64[us]").astype(np.int64)
        else:
            codes, levels = spelled(rows[given.column])
            found[given.name] = np.array([*levels, ""], dtype=object)[codes]
    return found


def _column_names(estimator: Any, preprocessor: Preprocessor) -> list[str] | None:
    """What the columns are called; None for those of an array."""
    if preprocessor.state()["named"]:
        return [column.name for column in preprocessor.columns]
    given = getattr(estimator, "feature_names_in_", None)
    return None if given is None else [str(name) for name in given]


def _input(column: Any, name: str, levels: Categorical | None) -> Input:
    free = _free(name)
    if column.role == "numeric":
        return Input(free, name, "number")
    if column.role == "date":
        return Input(free, name, "date")
    if column.role == "ordered":
        places = {level: k for k, level in enumerate(column.levels)}
        return Input(free, name, "ordered", places, -1)
    assert levels is not None
    codes = {level: k + 1 for k, level in enumerate(levels.levels)}
    # Empty text is a missing cell, unless it is a level of its own.
    codes.setdefault("", codes.get(MISSING, 0))
    return Input(free, name, "category", codes, codes.get(OTHER, 0))


def _offsets(estimator: Any) -> list[Input]:
    if not getattr(estimator, "has_offset_", False):
        return []
    uses = getattr(estimator, "uses_", None)
    if uses is None:
        return [Input("offset", "offset", "offset")]
    named: list[tuple[str | None, Kind]] = [(uses.offset, "offset"), (uses.exposure, "exposure")]
    return [Input(_free(name), name, kind) for name, kind in named if name is not None]


def _free(name: str) -> str:
    taken = name in RESERVED or name.startswith(("law_", "ansatz/")) or not name
    return f"column_{name}" if taken else name
