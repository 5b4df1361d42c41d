"""The design matrix of a formula: learned once from training rows, and kept as JSON."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from ansatz.data import Column
from ansatz.data.categorical import MISSING, sort_levels, spelled
from ansatz.errors import DataError, ModelError, UsageError
from ansatz.linear.formula import (
    first_line,
    formula_functions,
    formula_variables,
    parse_terms,
    split_formula,
    term_text,
)

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


class _Variable(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    levels: list[str] | None = None  # None for numbers
    whole: bool = False  # whether training rows had whole numbers only
    fill: float = 0.0  # what a missing number is read as: the mean


_Number = float | int | bool | None
_Learned = dict[str, _Number | list[_Number] | list[list[_Number]] | dict[str, _Number]]


class _State(BaseModel):
    model_config = ConfigDict(extra="forbid")

    formula: str
    variables: list[_Variable]
    transforms: dict[str, _Learned]
    levels: dict[str, list[str | int | float]]
    columns: list[str]
    missing: dict[str, int] = {}


class DesignFormula:
    """The design matrix of a formula: knots and levels of the training rows, kept as JSON.

    Terms are joined by ``+``; ``a:b`` is an interaction, ``a * b`` is ``a + b + a:b``, ``.`` all
    columns. ``C(site, contr.sum)`` codes a category by contrasts (treatment, sum, helmert, poly,
    diff), ``bs(x, 4)`` is a B-spline, ``cr(x, 4)`` a natural cubic spline, ``poly(x, 2)``
    orthogonal polynomials; ``log``, ``sqrt``, ``exp``, ``center``, ``scale`` and arithmetic
    inside ``I(...)`` take columns of numbers. Beyond the training range a B-spline is
    extended, as in R.

    A missing number is read as the mean of the training rows, a missing category is a level of its
    own; a level that training rows lack is read as zeros in all its columns.

    Made by :meth:`learn`; ``names`` are the columns of the matrix, without an intercept.

    Args:
        state: as :meth:`learn` makes it, or :meth:`state` gave it.

    Example:
        >>> import pandas as pd
        >>> from ansatz.linear import DesignFormula
        >>> rows = pd.DataFrame({"age": [30.0, 40.0, 50.0, 60.0], "sex": ["f", "m", "f", "m"]})
        >>> design = DesignFormula.learn("age * sex", rows)
        >>> design.names
        ['age', 'sex[T.m]', 'age:sex[T.m]']
        >>> design.matrix(rows[:2]).tolist()
        [[30.0, 0.0, 0.0], [40.0, 1.0, 40.0]]

    References:
        Wilkinson and Rogers (1973), Symbolic description of factorial models for analysis of
        variance. Terms are parsed and coded by formulaic, https://matthewwardrop.github.io/formulaic
    """

    def __init__(self, state: _State) -> None:
        self._state = state
        self._terms = parse_terms(state.formula, [each.name for each in state.variables])

    @property
    def formula(self) -> str:
        """The terms."""
        return self._state.formula

    @property
    def names(self) -> list[str]:
        """The columns of the matrix."""
        return self._state.columns

    @property
    def variables(self) -> list[str]:
        """The columns of the table that the terms use."""
        return [each.name for each in self._state.variables]

    @property
    def notes(self) -> list[str]:
        """Notes on missing values of training rows."""
        return [
            f"column '{name}': {count} missing in training, read as the mean; multiple imputation: "
            "--impute 20."
            for name, count in self._state.missing.items()
        ]

    @classmethod
    def learn(
        cls, formula: str, frame: "pd.DataFrame", columns: Sequence[Column] | None = None
    ) -> "DesignFormula":
        """Learns knots, levels and scales from training rows.

        Args:
            formula: the terms, ``"a * b + bs(c, 4)"``; a left side is ignored.
            frame: the training rows.
            columns: their roles; by default columns of numbers are numbers.
        """
        terms = split_formula(formula).terms
        used = formula_variables(terms, [str(name) for name in frame.columns])
        roles = {column.name: column for column in columns or ()}
        variables = [_variable(frame[name], roles.get(name)) for name in used]
        gone = {
            each.name: int(frame[each.name].isna().sum())
            for each in variables
            if each.levels is None and frame[each.name].isna().any()
        }
        parsed = parse_terms(terms, used)
        text = " + ".join(term_text(term) for term in parsed)
        state = _State(
            formula=text, variables=variables, transforms={}, levels={}, columns=[], missing=gone
        )
        rows, _ = _rows(frame, variables)
        matrix = _materialise(parsed, rows, {}, {})
        spec = matrix.model_spec
        state.columns = [str(name) for name in matrix.columns if name != "Intercept"]
        state.transforms = {key: _plain(value) for key, value in spec.transform_state.items()}
        state.levels = {
            key: [_scalar(level) for level in kept["categories"]]
            for key, (_, kept) in spec.encoder_state.items()
            if "categories" in kept
        }
        _check_finite(np.asarray(matrix, dtype=np.float64), [str(name) for name in matrix.columns])
        return cls(_State.model_validate(state.model_dump()))

    def matrix(
        self, frame: "pd.DataFrame", notes: list[str] | None = None
    ) -> "NDArray[np.float64]":
        """The design matrix of rows, ``(N, D)``, without the intercept.

        Args:
            frame: with the columns of training; others are ignored.
            notes: takes sentences on levels and missing values that training rows lacked.
        """
        state = self._state
        absent = [name for name in self.variables if name not in frame.columns]
        if absent:
            raise DataError(f"the table has no column '{absent[0]}', which the formula needs.")
        rows, new = _rows(frame, state.variables, set(state.missing))
        if notes is not None:
            notes += new
        if not len(rows):
            return np.zeros((0, len(self.names)))
        kept = {key: _restored(value) for key, value in state.transforms.items()}
        matrix = _materialise(self._terms, rows, kept, state.levels)
        names = [str(name) for name in matrix.columns]
        if [name for name in names if name != "Intercept"] != self.names:
            raise ModelError("the formula and its saved columns do not fit each other.")
        found = np.asarray(matrix[self.names], dtype=np.float64).reshape(len(rows), -1)
        _check_finite(found, self.names)
        return found

    def state(self) -> dict[str, Any]:
        """Everything as JSON: the terms, numbers and levels."""
        return self._state.model_dump(mode="json")

    @classmethod
    def from_state(cls, state: Any) -> "DesignFormula":
        """The design that gave the state; anything else in it is a :class:`ModelError`."""
        try:
            return cls(_State.model_validate(state))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ModelError(f"damaged formula: {where}: {first['msg']}") from None
        except (UsageError, DataError) as error:
            raise ModelError(f"damaged formula: {error}") from None


def _variable(cells: "pd.Series", column: Column | None) -> _Variable:
    name = str(cells.name)
    role = None if column is None else column.role
    if role == "date":
        raise UsageError(f"formula: column '{name}' holds dates; make a number of it first.")
    numeric = cells.dtype.kind in "iuf" and role not in ("categorical", "ordered")
    if not numeric:
        codes, levels = spelled(cells)
        listed = [level for level in (column.levels if column else ()) if level in levels]
        order = listed if len(listed) == len(levels) else sort_levels(levels)
        return _Variable(name=name, levels=[*order, *([MISSING] if (codes < 0).any() else [])])
    values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    known = values[np.isfinite(values)]
    if not len(known):
        raise DataError(f"formula: column '{name}' has no values.")
    whole = bool((known == np.round(known)).all() and np.abs(known).max() < 2**53)
    return _Variable(name=name, whole=whole, fill=float(known.mean()))


def _rows(
    frame: "pd.DataFrame", variables: Sequence[_Variable], expected: Iterable[str] = ()
) -> tuple["pd.DataFrame", list[str]]:
    """The columns as numbers and categories of known levels; notes on what is new."""
    import pandas as pd

    found: dict[str, Any] = {}
    notes: list[str] = []
    for each in variables:
        cells = frame[each.name]
        if each.levels is None:
            try:
                values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
            except (TypeError, ValueError):
                raise DataError(f"column '{each.name}' must hold numbers.") from None
            gone = np.isnan(values)
            if gone.any():
                values = np.where(gone, each.fill, values)
                if each.name not in expected:
                    notes.append(
                        f"column '{each.name}': {int(gone.sum())} rows are missing and none was in "
                        "training, read as the mean."
                    )
            whole = each.whole and bool((values == np.round(values)).all())
            found[each.name] = values.astype(np.int64) if whole else values
            continue
        codes, names = spelled(cells)
        place = {level: k for k, level in enumerate(each.levels)}
        known = np.array([*(place.get(name, -1) for name in names), place.get(MISSING, -1)])
        codes = known[codes]
        if (codes < 0).any():
            notes.append(
                f"column '{each.name}': {int((codes < 0).sum())} rows have a level that training "
                "rows lacked; its columns are 0 there."
            )
        found[each.name] = pd.Categorical.from_codes(codes, categories=each.levels)
    return pd.DataFrame(found, index=range(len(frame))), notes


def _materialise(
    terms: Any,
    rows: "pd.DataFrame",
    transforms: Mapping[str, Any],
    levels: Mapping[str, Sequence[Any]],
) -> Any:
    from formulaic import ModelSpec
    from formulaic.errors import DataMismatchWarning
    from formulaic.materializers import PandasMaterializer
    from formulaic.parser.types import Factor

    encoders = {
        name: (Factor.Kind.CATEGORICAL, {"categories": list(known)})
        for name, known in levels.items()
    }
    spec = ModelSpec(
        formula=terms,
        na_action="ignore",
        output="pandas",
        transform_state=dict(transforms),
        encoder_state=encoders,
    )
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", DataMismatchWarning)  # noted by ourselves
            return PandasMaterializer(rows, context=formula_functions()).get_model_matrix(spec)
    except Exception as error:
        raise UsageError(f"formula '{terms}': {first_line(error)}.") from None


def _plain(state: Any) -> Any:
    """The state of a transform as JSON can hold it."""
    if isinstance(state, Mapping):
        return {str(key): _plain(value) for key, value in state.items()}
    if isinstance(state, np.ndarray | list | tuple):
        return [_plain(value) for value in np.asarray(state).tolist()]
    return _scalar(state)


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _restored(state: Any) -> Any:
    """The state of a transform: whole numbers are keys again."""
    if isinstance(state, Mapping):
        return {
            int(key) if key.isdigit() else key: _restored(value) for key, value in state.items()
        }
    if isinstance(state, list):
        return np.array(state) if any(isinstance(each, list) for each in state) else list(state)
    return state


def _check_finite(matrix: "NDArray[np.float64]", names: Sequence[str]) -> None:
    bad = ~np.isfinite(matrix)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise DataError(
            f"formula: '{names[column]}' is {matrix[row, column]} in row {row + 1} "
            f"({int(bad[:, column].sum())} such rows)."
        )
