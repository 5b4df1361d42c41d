"""Signs that a score will be too good: duplicate rows, and columns that repeat the target."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ansatz.data.categorical import spelled
from ansatz.data.columns import GROUPS, Column
from ansatz.data.frames import as_frame
from ansatz.data.numeric import as_numbers

if TYPE_CHECKING:
    import pandas as pd

_R2 = 0.999  # measured outcomes have noise; a sum of their own parts has none
_MAX_TERMS = 5
_MIN_ROWS = 30
_SAMPLE = 20_000


def find_leaks(
    frame: Any,
    target: str | Sequence[str],
    columns: Sequence[Column],
    *,
    group: str | None = None,
    time: str | None = None,
) -> list[str]:
    r"""Sentences that warn of features which give the target away, and of a split that may.

    A feature is suspect if it is the target up to a monotone map, or one-to-one with its classes;
    numeric features together, if at most five of them explain it linearly with R² > 0.999.

    Args:
        frame: the table, target included.
        target: the column or columns to predict.
        columns: the roles of the features.
        group: the column that the split goes by, if any.
        time: the column in which the split goes forward, if any.

    Example:
        >>> from ansatz.data import find_leaks, infer_columns
        >>> table = {"a": [x * x % 17 for x in range(40)], "b": [x % 7 for x in range(40)]}
        >>> table["y"] = [a + b for a, b in zip(table["a"], table["b"])]
        >>> columns = infer_columns({"a": table["a"], "b": table["b"]})
        >>> find_leaks(table, "y", columns)
        ["columns 'a' and 'b' together give the target 'y' (linear R2 1.0000): drop them ..."]
    """
    frame = as_frame(frame)
    frame = frame.iloc[:: max(1, -(-len(frame) // _SAMPLE))]
    said: list[str] = []
    for name in [target] if isinstance(target, str) else target:
        used = [c for c in columns if c.used and c.name in frame.columns and c.name != name]
        known = frame[frame[name].notna()].drop_duplicates()  # duplicates prove nothing
        if len(known) >= _MIN_ROWS:
            said += _target_leaks(known, name, used)
    return said + split_warnings(columns, group=group, time=time)


def split_warnings(
    columns: Sequence[Column], *, group: str | None = None, time: str | None = None
) -> list[str]:
    """Warns where the table has dates or repeated ids and the split uses neither.

    Example:
        >>> from ansatz.data import Column, split_warnings
        >>> split_warnings([Column(name="day", role="date")])
        ["column 'day' holds dates, but the split mixes past and future: consider --time day."]
    """
    said = []
    for column in columns:
        if column.role == "date" and time is None:
            said.append(
                f"column '{column.name}' holds dates, but the split mixes past and future: "
                f"consider --time {column.name}."
            )
        elif column.role == "id" and "groups" in column.note and group is None:
            said.append(
                f"column '{column.name}' repeats ids, but rows of one id may fall on both sides "
                f"of the split: consider --group {column.name}."
            )
        elif column.note == GROUPS and group is None:
            said.append(
                f"column '{column.name}' is a feature, a number, but {GROUPS}: rows of one group "
                f"may fall on both sides of the split. Consider --group {column.name}, or --role "
                f"{column.name}=categorical."
            )
    return said


def find_duplicates(train_keys: np.ndarray, test_keys: np.ndarray) -> np.ndarray:
    """Marks the test rows that duplicate a training row, ``(N,)`` bool; the mean is their share.

    Example:
        >>> from ansatz.data import find_duplicates, row_keys
        >>> find_duplicates(row_keys([[1], [2]]), row_keys([[2], [3]])).mean().item()
        0.5
    """
    return np.isin(test_keys, train_keys)


def _target_leaks(frame: "pd.DataFrame", target: str, columns: list[Column]) -> list[str]:
    numeric = [c.name for c in columns if c.role in ("numeric", "ordered")]
    numeric = [n for n in numeric if getattr(frame[n].dtype, "kind", "O") in "fiu"]
    classes = [c.name for c in columns if c.role == "categorical"]
    y_codes, y_levels = spelled(frame[target])
    said = []
    if 2 <= len(y_levels) <= 0.5 * len(frame):
        for name in [*classes, *numeric]:
            codes, levels = spelled(frame[name])
            if len(levels) == len(y_levels) and _one_to_one(codes, y_codes):
                said.append(_alone(name, target, "stands for each of its values"))
    if said or getattr(frame[target].dtype, "kind", "O") not in "fiu" or not numeric:
        return said
    y = as_numbers(frame[target])
    X = frame[numeric].to_numpy(dtype=float)
    for name, x in zip(numeric, X.T, strict=True):
        if _monotone(x, y):
            said.append(_alone(name, target, "orders all rows as it does"))
    return said or _sum_leak(X, y, numeric, target)


def _alone(name: str, target: str, how: str) -> str:
    return (
        f"column '{name}' gives the target '{target}' away: it {how}. "
        f"Drop it if it is not known beforehand: --drop {name}"
    )


def _one_to_one(a: np.ndarray, b: np.ndarray) -> bool:
    """Each level of a goes with one level of b and the reverse; missing counts as a level."""
    pairs = len(np.unique(np.stack([a, b]), axis=1).T)
    return pairs == len(np.unique(a)) == len(np.unique(b))


def _monotone(x: np.ndarray, y: np.ndarray) -> bool:
    """Tests whether y is a strictly monotone function of x with more than ten values."""
    if not np.isfinite(x).all() or len(np.unique(x)) <= 10:
        return False
    order = np.argsort(x, kind="stable")
    dx, dy = np.diff(x[order]), np.diff(y[order])
    if ((dx == 0) != (dy == 0)).any():
        return False
    return bool((dy >= 0).all() or (dy <= 0).all())


def _sum_leak(X: np.ndarray, y: np.ndarray, names: list[str], target: str) -> list[str]:
    """Forward selection: the column that explains most of what is left, five times at most."""
    with np.errstate(over="ignore", invalid="ignore"):
        X, y = X - np.nanmean(X, axis=0), y - y.mean()
        usable = np.isfinite(X).all(0) & (np.abs(X).max(0) > 0)
        scale = np.sqrt(np.square(X).sum(0))
        total = float(y @ y)
    usable &= np.isfinite(scale) & (scale > 0)
    if total == 0 or not np.isfinite(total):
        return []
    Z, rest = X / np.where(usable, scale, 1.0), y.copy()
    Z[:, ~usable] = 0.0
    chosen: list[int] = []
    for _ in range(min(_MAX_TERMS, int(usable.sum()), len(y) // 10)):
        chosen.append(int(np.abs(Z.T @ rest).argmax()))
        fit, *_ = np.linalg.lstsq(X[:, chosen] / scale[chosen], y, rcond=None)
        rest = y - (X[:, chosen] / scale[chosen]) @ fit
        r2 = 1 - float(rest @ rest) / total
        if r2 > _R2:
            listed = _and([f"'{names[j]}'" for j in sorted(chosen)])
            plural = "columns" if len(chosen) > 1 else "column"
            verb = "together give" if len(chosen) > 1 else "gives"
            drop = ",".join(names[j] for j in sorted(chosen))
            return [
                f"{plural} {listed} {verb} the target '{target}' (linear R2 {r2:.4f}): drop them "
                f"if they are not known beforehand: --drop {drop}"
            ]
    return []


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]
