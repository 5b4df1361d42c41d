"""From rows of a table to tensors; all that is learned comes from the training rows."""

import warnings
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from torch import Tensor

from ansatz.data.batch import check_weight
from ansatz.data.categorical import CategoricalColumn
from ansatz.data.columns import Column, infer_columns
from ansatz.data.dates import PARTS
from ansatz.data.frames import as_frame, is_array
from ansatz.data.number_columns import number_columns, numbers_of
from ansatz.data.numeric import Numeric, NumericState
from ansatz.errors import DataError, ModelError, UsageError
from ansatz.spec import InputSpec

Purpose = Literal["network", "linear"]
_DTYPES = {"float32": torch.float32, "float64": torch.float64}
EMBED_ABOVE = 24  # levels; wider than this, zeros and ones cost more than they carry
MAX_LEVELS = 200  # of a linear model; the rest share one coefficient


class DataWarning(UserWarning):
    """Rows that differ from the training rows in a way that has a documented answer.

    Example:
        >>> from ansatz.data import DataWarning
        >>> issubclass(DataWarning, UserWarning)
        True
    """


class _State(BaseModel):
    model_config = ConfigDict(extra="forbid")

    format: Literal[1] = 1
    purpose: Purpose
    dtype: Literal["float32", "float64"]
    named: bool
    columns: list[Column]
    numeric: NumericState
    categorical: list[CategoricalColumn]
    dates: dict[str, list[str]]
    missing: dict[str, int]

    @model_validator(mode="after")
    def _agree(self) -> Self:
        """Compares what the parts say about the same columns."""
        roles = {column.name: column.role for column in self.columns}
        if len(roles) < len(self.columns):
            raise ValueError("two columns have the same name")
        for what, role, names in (
            ("dates", "date", list(self.dates)),
            ("categorical", "categorical", [column.name for column in self.categorical]),
        ):
            wanted = [name for name, found in roles.items() if found == role]
            if sorted(names) != sorted(wanted):
                raise ValueError(f"{what} must be of the columns {wanted}, got {names}")
        for name, parts in self.dates.items():
            if len(set(parts)) < len(parts) or not set(parts) <= set(PARTS):
                raise ValueError(f"dates: '{name}' must have parts out of {list(PARTS)}")
        if not set(self.missing) <= set(roles):
            raise ValueError("missing: it names a column that is not there")
        self.numeric.check(len(number_columns(self.columns, self.dates)))
        return self


class Preprocessor:
    """The map from a table to the inputs of a network, fitted to the training rows.

    For a network, numbers are standardised (clipped at 6 standard deviations when predicting),
    categories are indicators, or codes to embed above 24 levels; for a linear model, numbers keep
    their units and categories are coded against their first level, as in R. In both, a missing
    number counts as the mean and is marked by a feature of its own where training rows had
    missing values; a missing category is a level ``(missing)``; a date is a trend and the phases
    of year, week and day; an ordered category is its place.

    Made by :meth:`fit`; :meth:`state` is plain JSON and holds no code. What it learned can be read:
    ``slots``, the columns of numbers, and ``numeric``, their map; ``coded`` and ``embedded``, the
    categorical columns; ``order``, the places of the features where columns of both kinds
    alternate, else None.

    Example:
        >>> from ansatz.data import Preprocessor
        >>> table = {"age": [20, 40, 60], "sex": ["M", "F", "M"]}
        >>> preprocessor = Preprocessor.fit(table)
        >>> preprocessor.feature_names
        ['age', 'sex[F]', 'sex[M]']
        >>> preprocessor.transform({"sex": ["F"], "age": [40]})[0]
        tensor([[0., 1., 0.]])
    """

    def __init__(self, state: _State) -> None:
        self._state = state
        self.columns = state.columns
        self.purpose: Purpose = state.purpose
        self.dtype = _DTYPES[state.dtype]
        self.numeric = Numeric.from_state(state.numeric)
        self.slots = number_columns(state.columns, state.dates)
        self._names = {column.name for column in state.columns if column.used}
        self.coded = [c for c in state.categorical if c.coding != "embedding"]
        self.embedded = [c for c in state.categorical if c.coding == "embedding"]
        self.feature_names, self.order = self._layout()

    @classmethod
    def fit(
        cls,
        data: Any,
        columns: list[Column] | None = None,
        *,
        weight: Any = None,
        purpose: Purpose = "network",
        embed_above: int = EMBED_ABOVE,
        max_levels: int = MAX_LEVELS,
        quantile: bool | list[str] = False,
        bins: int = 0,
        dtype: torch.dtype | None = None,
    ) -> "Preprocessor":
        """Fits the map to training rows.

        Args:
            data: any table, or a numeric array ``(N, D)``.
            columns: their roles; inferred when None. An array's columns are all numeric.
            weight: frequency weights ``(N,)``: a row of weight 3 counts like three.
            purpose: ``"network"`` or ``"linear"``.
            embed_above: levels above which a network gets codes instead of indicators.
            max_levels: levels above which a linear model lets the rare ones share one.
            quantile: True, or the numeric columns to map to normal scores (heavy tails).
            bins: number of bins that each number's range is cut into, as further features
                (:class:`~ansatz.data.numeric.Bins`), beside the number itself; 0 for none.
            dtype: of the features; float32 for a network and float64 for a linear model if None.
        """
        if purpose not in ("network", "linear"):
            raise UsageError(f"purpose must be 'network' or 'linear', got {purpose!r}.")
        named = columns is not None or not is_array(data)
        rows = as_frame(data) if named else data  # a frame would copy the array
        if columns is None:
            columns = infer_columns(rows) if named else _all_numeric(data.shape[1])
        weight = check_weight(weight, len(rows))
        _check_any(columns, len(rows))
        values, dates = _learn_numbers(rows, columns, weight)
        slots = number_columns(columns, dates)
        names = [slot.feature for slot in slots]
        numeric = Numeric.fit(
            values,
            weight,
            names,
            standardize=purpose == "network",
            bend=_bend(slots, quantile),
            cut=tuple(j for j, slot in enumerate(slots) if not slot.part),
            num_bins=bins,
        )
        limit = max_levels if purpose == "linear" else embed_above
        categorical = _learn_levels(rows, columns, weight, purpose, limit)
        # A date is missing in all its parts at once: one feature says so.
        first = {slot.column: j for j, slot in reversed(list(enumerate(slots)))}
        masked = [j for j in numeric.masked if first[slots[j].column] == j]
        state = numeric.state().model_copy(update={"masked": masked})
        missing = {slots[j].column: int(np.isnan(values[weight > 0, j]).sum()) for j in masked}
        kind = dtype or (torch.float64 if purpose == "linear" else torch.float32)
        if kind not in _DTYPES.values():
            raise UsageError(f"dtype must be torch.float32 or torch.float64, got {kind}.")
        return cls(
            _State(
                purpose=purpose,
                dtype="float64" if kind == torch.float64 else "float32",
                named=named,
                columns=columns,
                numeric=state,
                categorical=categorical,
                dates=dates,
                missing=missing,
            )
        )

    def transform(
        self,
        data: Any,
        *,
        clip: bool = False,
        notes: list[str] | None = None,
        estimator: str = "Preprocessor",
    ) -> tuple[Tensor, ...]:
        """Rows as ``(x,)``, or ``(x, codes)`` where columns are embedded.

        Columns are found by name, in any order; further ones are ignored. A level never seen in
        training is the unknown level, a number missing where none was is the mean; both are noted
        in ``notes``, or as a :class:`DataWarning` without it.

        Args:
            data: any table, or an array with the columns of the training rows in their order.
            clip: whether standardised numbers are cut at 6 standard deviations.
            notes: takes the sentences that would otherwise be warnings.
            estimator: who is asked, for the error about a wrong number of columns.

        Shapes:
            - x: ``(N, D)`` with D the length of ``feature_names``.
            - codes: ``(N, C)`` int64, 0 the unknown level.
        """
        said: list[str] = []
        frame, values = self._rows(data, estimator)
        kind = np.float64 if self.dtype == torch.float64 else np.float32
        features = [slot.feature for slot in self.slots]
        clip = clip and self.purpose == "network"
        x = self.numeric.encode(values, features, clip=clip, dtype=kind)
        self._report_missing(values, said)
        if self.coded:
            blocks = [c.encode(c.codes(frame[c.name], said)) for c in self.coded]
            x = np.concatenate([x, *blocks], axis=1, dtype=kind)
        if self.order is not None:
            x = x[:, self.order]
        inputs = [torch.from_numpy(np.ascontiguousarray(x))]
        if self.embedded:
            codes = [c.codes(frame[c.name], said) for c in self.embedded]
            inputs.append(torch.from_numpy(np.stack(codes, axis=1).astype(np.int64)))
        if notes is not None:
            notes += said
        else:
            for sentence in said:
                warnings.warn(sentence, DataWarning, stacklevel=2)
        return tuple(inputs)

    @property
    def spec(self) -> InputSpec:
        """The number of features, and of levels of each embedded column, for a network."""
        levels = tuple(len(c.levels) for c in self.embedded)
        return InputSpec("vector", len(self.feature_names), levels)

    @property
    def text_columns(self) -> list[str]:
        """Columns whose cells were text in training: ``read_table(path, text=...)``."""
        return [c.name for c in self._state.categorical if c.text]

    @property
    def notes(self) -> list[str]:
        """Notes on columns that were left out, filled or coded."""
        said = [
            f"column '{c.name}' {c.note}."
            for c in self.columns
            if c.role in ("constant", "id") and c.note
        ]
        how = "the mean" if self.purpose == "linear" else "the mean, 0 after scaling,"
        for name, rows in self._state.missing.items():
            said.append(
                f"column '{name}': {rows} missing in training, read as {how} and marked by "
                f"'{name}[missing]'."
            )
        for c in self.embedded:
            said.append(f"column '{c.name}': {len(c.levels)} levels, embedded.")
        return said

    def state(self) -> dict[str, Any]:
        """Everything, as JSON: numbers, names and levels."""
        return self._state.model_dump(mode="json")

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "Preprocessor":
        """The preprocessor that gave the state; anything else in it is a :class:`ModelError`."""
        try:
            checked = _State.model_validate(state)
            made = cls(checked)
        except (ValidationError, KeyError, IndexError, ValueError) as error:
            raise ModelError(f"damaged preprocessing state: {_first_line(error)}") from None
        return made

    def _layout(self) -> tuple[list[str], np.ndarray | None]:
        """Names of the features, and the order that puts them as their columns stand."""
        place = {column.name: k for k, column in enumerate(self.columns)}
        names = [slot.feature for slot in self.slots]
        owners = [place[slot.column] for slot in self.slots]
        for j in self.numeric.masked:
            names.append(f"{self.slots[j].column}[missing]")
            owners.append(place[self.slots[j].column])
        for j, bins in self.numeric.bins.items():
            feature = self.slots[j].feature
            names += [f"{feature}[{a:g}..{b:g}]" for a, b in pairwise(bins.edges)]
            owners += [place[self.slots[j].column]] * len(bins)
        for block in self.coded:
            names += block.features
            owners += [place[block.name]] * len(block.features)
        order = np.argsort(owners, kind="stable")
        if np.array_equal(order, np.arange(len(order))):
            return names, None
        return [names[k] for k in order], order

    def _rows(self, data: Any, estimator: str) -> tuple[Any, np.ndarray]:
        """The rows as a frame with the names of training, and their numbers ``(N, P)``."""
        width = len(self.columns)
        if not self._state.named and is_array(data):  # the fast path: no frame
            _check_width(data.shape[1], width, estimator)
            return None, data  # no categorical column needs a frame
        frame = as_frame(data)
        nameless = isinstance(data, np.ndarray | Tensor | list | tuple)
        if nameless or (not self._state.named and not self._names <= set(frame.columns)):
            _check_width(frame.shape[1], width, estimator)
            frame = frame.set_axis([column.name for column in self.columns], axis=1)
        absent = [c.name for c in self.columns if c.used and c.name not in frame.columns]
        if absent:
            raise DataError(_absent(absent, list(frame.columns)))
        return frame, numbers_of(frame, self.slots)

    def _report_missing(self, values: np.ndarray, said: list[str]) -> None:
        expected = {self.slots[j].column for j in self.numeric.masked}
        if not np.isnan(values.sum()):  # cheaper than a mask; an infinity was refused before
            return
        gone = np.isnan(values).sum(0) * (self.numeric.scale > 0)  # a constant is never read
        for j in np.flatnonzero(gone):
            name = self.slots[j].column
            if name not in expected:
                expected.add(name)
                said.append(
                    f"column '{name}': {gone[j]} rows are missing and none was in training, "
                    "read as the mean."
                )


def _all_numeric(count: int) -> list[Column]:
    return [Column(name=f"x{k}", role="numeric") for k in range(1, count + 1)]


def _learn_levels(
    frame: Any, columns: list[Column], weight: np.ndarray, purpose: Purpose, limit: int
) -> list[CategoricalColumn]:
    """The levels of categorical columns; beyond ``limit`` they are embedded or pooled."""
    learned = []
    for column in columns:
        if column.role == "categorical":
            cells, order = frame[column.name], column.levels
            if purpose == "linear":
                found = CategoricalColumn.fit(
                    cells, weight, "treatment", order=order, max_levels=limit
                )
            else:
                found = CategoricalColumn.fit(cells, weight, "indicator", order=order)
                if len(found.levels) > limit:
                    found = found.model_copy(update={"coding": "embedding"})
            learned.append(found)
    return learned


def _learn_numbers(
    data: Any, columns: list[Column], weight: np.ndarray
) -> tuple[np.ndarray, dict[str, list[str]]]:
    """The numbers ``(N, P)``, and those parts of each date that vary between rows that count."""
    if isinstance(data, np.ndarray):
        return data, {}
    dates = {column.name: list(PARTS) for column in columns if column.role == "date"}
    slots = number_columns(columns, dates)
    values = numbers_of(data, slots)
    if not dates:
        return values, {}
    seen = values[weight > 0]
    with np.errstate(invalid="ignore"):
        extent = np.fmax.reduce(seen, axis=0) - np.fmin.reduce(seen, axis=0)
    keep = [
        not slot.part or slot.part == PARTS[0] or extent[j] > 1e-9 for j, slot in enumerate(slots)
    ]
    for name in dates:
        dates[name] = [s.part for s, k in zip(slots, keep, strict=True) if s.column == name and k]
    return values[:, keep], dates


def _bend(slots: list[Any], quantile: bool | list[str]) -> tuple[int, ...]:
    plain = {slot.column: j for j, slot in enumerate(slots) if not slot.part and not slot.levels}
    if isinstance(quantile, bool):
        return tuple(plain.values()) if quantile else ()
    strange = [name for name in quantile if name not in plain]
    if strange:
        raise UsageError(f"quantile: no numeric column is called '{strange[0]}'.")
    return tuple(plain[name] for name in quantile)


def _check_any(columns: list[Column], rows: int) -> None:
    if rows == 0:
        raise DataError("no rows to train on.")
    if columns and not any(column.used for column in columns):  # none at all: a constant model
        why = "; ".join(f"'{c.name}' {c.note or 'is ' + c.role}" for c in columns[:5])
        raise DataError(f"no column is left to predict from. {why}")


def _check_width(got: int, expected: int, estimator: str) -> None:
    if got != expected:
        raise DataError(
            f"X has {got} features, but {estimator} is expecting {expected} features as input."
        )


def _absent(names: list[str], present: list[str]) -> str:
    import difflib

    listed = ", ".join(f"'{name}'" for name in names[:10]) + (", ..." if len(names) > 10 else "")
    near = difflib.get_close_matches(names[0], present, n=1)
    hint = f" Was '{near[0]}' meant for '{names[0]}'?" if near else ""
    plural = "columns" if len(names) > 1 else "column"
    return f"the table lacks {plural} {listed} that the model was trained on.{hint}"


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error).splitlines()[0] if str(error) else type(error).__name__
