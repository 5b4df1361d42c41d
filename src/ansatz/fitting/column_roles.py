"""The roles of the special columns of a table: target, weights, groups and so on."""

import difflib
import fnmatch
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from ansatz.data.categorical import spelled
from ansatz.data.spelling import Spelling, find_spelling
from ansatz.errors import DataError, UsageError
from ansatz.linear.terms import grouping_columns, read_terms, slope_columns


class ColumnRoles(BaseModel):
    """The columns of a table that are not features, by what they are for.

    Args:
        target: outcomes, one or several; for survival the time.
        event: whether the time is that of an event: 1, or the number of its cause, and 0 where
            the row was censored. ``"status=dead"`` names the value that is the event.
        entry: the time from which the row was watched.
        strata: Cox's baseline hazard is one for each value of it.
        lower: with ``upper`` in place of the target: the outcome lies in (lower, upper].
        upper: missing or infinite where the outcome is only known to be above ``lower``.
        trials: how many tries the target counts the successes of.
        weights: frequency weights.
        offset: added to the linear predictor.
        exposure: its logarithm is added to the linear predictor.
        group: rows alike in it stay on one side of every split.
        time: splits are forward in it.
        identifier: names the sequence that a row is a step of.
        order: of the steps of a sequence.
        spellings: how columns of text among these spell numbers, like ``$1,234.50``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    target: list[str] = []
    event: str | None = None
    entry: str | None = None
    strata: str | None = None
    lower: str | None = None
    upper: str | None = None
    trials: str | None = None
    weights: str | None = None
    offset: str | None = None
    exposure: str | None = None
    task: str | None = None  # the outcome's name, where the columns do not show it
    group: str | None = None
    time: str | None = None
    identifier: str | None = None
    order: str | None = None
    random: list[str] = []  # terms that vary between groups, whose columns name the groups
    formula: str | None = None  # whose variables are the features
    spellings: dict[str, Spelling] = {}  # of columns whose text is numbers

    def check(self, frame: pd.DataFrame, origin: str) -> None:
        """Every column that is named exists, and none has two uses."""
        self._check_together(frame)
        used: dict[str, str] = {}
        for use, names in self._names(frame):
            for name in names:
                if name not in frame.columns:
                    raise DataError(
                        f"{origin}: no column '{name}' for {use}. {near_columns(name, frame)}"
                    )
                if name in used:
                    raise UsageError(f"column '{name}' is both {used[name]} and {use}.")
                used[name] = use
        named = [*self.grouping_columns, *slope_columns(read_terms(self.random))]
        for name in named:
            if name not in frame.columns:
                raise DataError(
                    f"{origin}: no column '{name}' for random. {near_columns(name, frame)}"
                )
            if used.get(name, "group") not in ("group", "time"):
                raise UsageError(f"column '{name}' is both {used[name]} and random.")

    def features(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The table without the columns that are used otherwise; time stays a feature.

        The strata stay among the columns, where predictions find them, but are not a feature.
        """
        stay = ("time", "strata")
        varying = self.grouping_columns
        gone = [name for use, names in self._names(frame) if use not in stay for name in names]
        gone = [name for name in gone if name in frame.columns and name not in varying]
        rest = frame.drop(columns=gone)
        if self.formula is None:
            return rest
        from ansatz.linear import formula_variables

        named = formula_variables(self.formula, [str(name) for name in rest.columns])
        more = [*([self.strata] if self.strata is not None else []), *varying]
        more += slope_columns(read_terms(self.random))
        return rest[list(dict.fromkeys([*named, *more]))]

    @property
    def grouping_columns(self) -> list[str]:
        """The columns that name the groups of terms that vary between them."""
        return grouping_columns(read_terms(self.random))

    def expand(self, frame: pd.DataFrame) -> "ColumnRoles":
        """Replaces patterns among the targets, like rank*, by the names of columns."""
        names: list[str] = []
        for name in self.target:
            found = [name]
            if name not in frame.columns and "*" in name:
                found = fnmatch.filter(map(str, frame.columns), name) or [name]
            names += [column for column in found if column not in names]
        return self.model_copy(update={"target": names})

    def find_spellings(self, frame: pd.DataFrame, *, target: bool = True) -> "ColumnRoles":
        """Finds out how columns of text spell numbers; the ``target`` may be words."""
        quantities = [self.entry, self.lower, self.upper, self.trials, self.weights]
        quantities += [self.offset, self.exposure, *(self.target if target else ())]
        found = {}
        for name in quantities:
            if name is not None and pd.api.types.is_string_dtype(frame[name].dtype):
                codes, levels = spelled(frame[name])
                rule = find_spelling(name, levels, codes)
                if rule is not None and not rule.format:
                    found[name] = rule
        return self.model_copy(update={"spellings": found}) if found else self

    def plain(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The table with numbers where the columns of these roles spell them."""
        present = {name: rule for name, rule in self.spellings.items() if name in frame.columns}
        if not present:
            return frame
        return frame.assign(**{name: rule.read(frame[name]) for name, rule in present.items()})

    def _check_together(self, frame: pd.DataFrame) -> None:
        """Options that need or exclude each other."""
        if (self.lower is None) != (self.upper is None):
            raise UsageError("--lower and --upper go together: the outcome lies between the two.")
        if self.lower is not None and (self.target or self.event is not None):
            raise UsageError("--lower and --upper take the place of --target and --event.")
        if not self.target and self.lower is None and not self._models_x():
            raise UsageError(
                f"no target: name the column to predict with --target. {listed_columns(frame)}"
            )
        if self.is_survival and len(self.target) > 1:
            raise UsageError("one --target, the time, goes with --event or --entry.")
        if self.strata is not None and self.event is None:
            raise UsageError("--strata goes with --event, which says whose times are events.")
        if self.trials is not None and (len(self.target) > 1 or self.is_survival):
            raise UsageError("--trials goes with one --target, the number of successes.")

    def _models_x(self) -> bool:
        """Tests whether x itself is modelled, so that there is no target."""
        from ansatz import outcomes

        return self.task is not None and bool(outcomes.registry.get(self.task).is_x)

    @property
    def is_survival(self) -> bool:
        """Whether outcomes may be censored or truncated."""
        return not (self.event is None and self.entry is None and self.lower is None)

    @property
    def outcome_name(self) -> str:
        """The name of the outcome: the targets, or R's Surv(...)."""
        if not self.is_survival:
            return ", ".join(self.target)
        times = [*self.target, *(n for n in (self.lower, self.upper, self.event) if n)]
        return f"Surv({', '.join(([self.entry] if self.entry else []) + times)})"

    @property
    def outcome_columns(self) -> list[str]:
        """The columns that hold the outcome."""
        found = [*self.target, self.lower, self.upper, self.trials, self.entry]
        return [name for name in found if name]

    def outcomes(self, frame: pd.DataFrame) -> Any:
        """The target column, or a frame: several targets, (successes, trials) or survival.

        A survival frame has the columns time and event, or lower and upper, and entry.
        """
        self._check_outcomes(frame)
        if self.is_survival:
            return self._survival(frame)
        if self.trials is not None:
            return frame[[self.target[0], self.trials]]
        return frame[self.target[0]] if len(self.target) == 1 else frame[self.target]

    def _check_outcomes(self, frame: pd.DataFrame) -> None:
        names = [*self.outcome_columns, *([self._event_of(frame)[0]] if self.event else [])]
        missing = [name for name in names if name not in frame.columns]
        if missing:
            raise DataError(f"the table has no target column '{missing[0]}' of the model.")

    def known(self, frame: pd.DataFrame) -> NDArray[np.bool_]:
        """Which rows have an outcome; an interval may be open on one side."""
        self._check_outcomes(frame)
        if self.lower is not None:
            found = frame[[self.lower, self.upper]].notna().any(axis=1)
        else:
            names = [*self.target, *([self.trials] if self.trials else [])]
            found = frame[names].notna().all(axis=1)
            if self.event is not None:
                found &= frame[self._event_of(frame)[0]].notna()
        known: NDArray[np.bool_] = found.to_numpy()
        return known

    def _survival(self, frame: pd.DataFrame) -> pd.DataFrame:
        columns: dict[str, Any] = {}
        if self.lower is not None and self.upper is not None:
            columns["lower"] = frame[self.lower]
            columns["upper"] = frame[self.upper]
        else:
            columns["time"] = frame[self.target[0]]
        if self.event is not None:
            name, value = self._event_of(frame)
            column = frame[name]
            columns["event"] = _yes(column) if value is None else column.astype(str) == value
        if self.entry is not None:
            columns["entry"] = frame[self.entry]
        if self.strata is not None:
            columns["strata"] = frame[self.strata]
        found = pd.DataFrame(columns, index=frame.index)
        found.attrs["name"] = self.outcome_name
        return found

    def _event_of(self, frame: pd.DataFrame) -> tuple[str, str | None]:
        """The event's column, and the value that is an event if one was named."""
        assert self.event is not None
        name, equals, value = self.event.rpartition("=")
        if self.event in frame.columns or not equals:
            return self.event, None
        if name in frame.columns and not (frame[name].astype(str) == value).any():
            raise DataError(f"column '{name}' is '{value}' in no row: --event {self.event}.")
        return name, value

    def weight(self, frame: pd.DataFrame) -> NDArray[np.float64] | None:
        """The weights, or None; negative or missing ones are refused."""
        if self.weights is None or self.weights not in frame.columns:
            return None
        found = read_numbers(frame, self.weights, least=0.0)
        if len(found) and not found.any():
            raise DataError(f"column '{self.weights}': the weights of all rows are zero.")
        return found

    def trial_counts(self, frame: pd.DataFrame) -> NDArray[np.float64] | None:
        """The numbers of trials, or None where no column holds them."""
        if self.trials is None or self.trials not in frame.columns:
            return None
        return read_numbers(frame, self.trials, least=0.0)

    def offsets(self, frame: pd.DataFrame) -> NDArray[np.float64] | None:
        """The known part of the linear predictor: offset + log exposure, or None."""
        total = None
        for use, name in (("offset", self.offset), ("exposure", self.exposure)):
            if name is None:
                continue
            if name not in frame.columns:
                raise DataError(
                    f"the table has no column '{name}', which the model needs as {use}."
                )
            part = read_numbers(frame, name, least=None)
            if use == "exposure":
                bad = np.flatnonzero(part <= 0)
                if len(bad):
                    raise DataError(
                        f"column '{name}', row {bad[0] + 1}: an exposure must be positive, "
                        f"got {part[bad[0]]}."
                    )
                part = np.log(part)
            total = part if total is None else total + part
        return total

    def _names(self, frame: pd.DataFrame) -> list[tuple[str, list[str]]]:
        column_roles: tuple[str, ...] = ("entry", "strata", "lower", "upper", "trials", "weights")
        column_roles += ("offset", "exposure")
        single = [(use, getattr(self, use)) for use in (*column_roles, "group", "time")]
        if self.event is not None:
            single.insert(0, ("event", self._event_of(frame)[0]))
        return [("target", self.target), *((use, [name]) for use, name in single if name)]


_YES = {"yes", "y", "true", "t", "1", "ja", "j", "oui", "si", "dead", "died", "event"}
_NO = {"no", "n", "false", "f", "0", "nein", "non", "alive", "censored"}


def _yes(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Reads words for yes and no as 1 and 0; a column with any other word stays as it is."""
    if is_numeric(column) or column.dtype.kind == "b":
        return column
    words = column.astype(str).str.strip().str.lower()
    known = column.notna()
    if not words[known].isin(_YES | _NO).all():
        return column
    return words.isin(_YES).astype(float).where(known)


def near_columns(name: str, frame: pd.DataFrame) -> str:
    """Suggests the nearest column to a wrong name, or lists the first twenty."""
    names = [str(column) for column in frame.columns]
    near = difflib.get_close_matches(name, names, n=1)
    return f"Did you mean '{near[0]}'?" if near else listed_columns(names)


def listed_columns(names: Iterable[Any]) -> str:
    """Lists the first twenty columns."""
    found = [str(name) for name in names]
    more = f" and {len(found) - 20} more" if len(found) > 20 else ""
    return f"Columns: {', '.join(found[:20])}{more}."


def read_numbers(frame: pd.DataFrame, name: str, *, least: float | None) -> NDArray[np.float64]:
    """Reads a column of finite numbers, none below ``least``."""
    try:
        values: NDArray[np.float64] = frame[name].to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"column '{name}' must hold numbers, got {frame[name].dtype}.") from None
    bad = ~np.isfinite(values) if least is None else ~(np.isfinite(values) & (values >= least))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        expected = "a finite number" if least is None else f"a finite number >= {least:g}"
        raise DataError(
            f"column '{name}', row {row + 1}: expected {expected}, got {values[row]} "
            f"({int(bad.sum())} such rows)."
        )
    return values


def is_numeric(column: pd.Series) -> bool:
    """Tests whether a column holds integers or floating-point numbers."""
    return getattr(column.dtype, "kind", "O") in "iuf"
