"""Splits rows into training, validation and test rows."""

import heapq
from typing import Any, NamedTuple

import numpy as np

from ansatz.data.batch import check_weight
from ansatz.data.categorical import spelled
from ansatz.data.dates import as_dates
from ansatz.data.frames import as_frame, is_frame
from ansatz.data.keys import mix, row_keys
from ansatz.errors import DataError, UsageError
from ansatz.seeds import derive


class Split(NamedTuple):
    """Row numbers of the three parts, each in increasing order.

    Example:
        >>> from ansatz.data import Split, split_rows
        >>> import numpy as np
        >>> split: Split = split_rows(np.arange(10, dtype=np.uint64), seed=0)
        >>> [len(part) for part in split]
        [7, 1, 2]
    """

    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray


def split_rows(
    rows: Any,
    *,
    seed: int = 0,
    test: float = 0.2,
    valid: float = 0.1,
    group: Any = None,
    time: Any = None,
    weight: Any = None,
) -> Split:
    """Splits by a hash of (seed, content), or of (seed, group), or forward in time.

    The rule: distinct contents (or groups) are put in the order of their hash; those whose middle
    lies in the first ``test`` of the total weight are test, the next ``valid`` are validation.
    So the fractions are met as nearly as whole groups allow, duplicates fall on one side, and the
    order of the file does not matter. By time, the latest rows are test and those before them
    validation; rows of one moment stay together. A fraction above 0 never gives an empty part.

    By group and time, a group belongs to the moment of its first row: the groups that began last
    are test, those before them validation. Rows of an earlier group from the moment on at which
    the test (or the validation) begins are in no part. So no group is on two sides, and all
    training rows are earlier than all test rows.

    Args:
        rows: keys of :func:`row_keys`, or a table whose content is hashed.
        seed: another seed, another split.
        test: fraction of the weight that evaluates.
        valid: fraction of the weight that stops training.
        group: ``(N,)`` ids, or a column's name; a group falls on one side.
        time: ``(N,)`` numbers or dates, or a column's name.
        weight: frequency weights ``(N,)``, all one if None.

    Example:
        >>> from ansatz.data import split_rows
        >>> split_rows({"x": [5, 6, 5, 7, 8]}, test=0.0, valid=0.4).test
        array([], dtype=int64)
    """
    _check_fractions(test, valid)
    count = len(as_frame(rows)) if is_frame(rows) else len(rows)
    begun = moment = None
    if time is not None:
        moment = begun = _moments(_column(rows, time, count, "time"))
        if group is not None:
            groups = np.unique(_group_keys(rows, group, count, seed), return_inverse=True)[1]
            begun = _first_moments(groups, moment)
        place = np.unique(begun.max(initial=0) - begun, return_inverse=True)[1]  # the latest first
    else:
        keys = _group_keys(rows, group, count, seed) if group is not None else _keys(rows, seed)
        place = _ranks(keys, seed, "split")
    mass = np.bincount(place, weights=check_weight(weight, count)) if count else np.zeros(0)
    if moment is not None and group is not None and len(mass) < 1 + (test > 0) + (valid > 0):
        raise DataError(
            f"the groups begin at {len(mass)} moments, too few to test on groups that begin later. "
            "Take --time alone (later rows of known groups), or --group alone."
        )
    part = _cut(mass, test, valid)[place] if count else np.zeros(0, dtype=int)
    if moment is not None and group is not None:
        part = _without_late_rows(part, moment)
    return Split(*(np.flatnonzero(part == k) for k in range(3)))


def fold_numbers(
    rows: Any, folds: int, *, seed: int = 0, group: Any = None, weight: Any = None
) -> np.ndarray:
    """Assigns each row a fold 0..K-1, ``(N,)``; duplicates, and groups, stay in one fold.

    Groups are dealt out in the order of their hash, larger ones first, each to the fold that has
    the least weight so far, so that folds are as even as whole groups allow.

    Args:
        rows: keys of :func:`row_keys`, or a table whose content is hashed.
        folds: K.
        seed: another seed, other folds.
        group: ``(N,)`` ids, or a column's name.
        weight: frequency weights ``(N,)``, all one if None.

    Example:
        >>> import numpy as np
        >>> from ansatz.data import fold_numbers
        >>> np.bincount(fold_numbers(np.arange(10, dtype=np.uint64), 5, seed=1))
        array([2, 2, 2, 2, 2])
    """
    count = len(as_frame(rows)) if is_frame(rows) else len(rows)
    keys = _group_keys(rows, group, count, seed) if group is not None else _keys(rows, seed)
    place = _ranks(keys, seed, "fold")
    mass = np.bincount(place, weights=check_weight(weight, count))
    if not 2 <= folds <= len(mass):
        what = "groups" if group is not None else "distinct rows"
        raise UsageError(f"folds must be from 2 to the {len(mass)} {what}, got {folds}.")
    if (mass == mass[0]).all():
        return (np.arange(len(mass)) % folds)[place]
    heap = [(0.0, k) for k in range(folds)]  # (weight so far, fold)
    fold = np.empty(len(mass), dtype=int)
    for g in np.argsort(-mass, kind="stable"):
        weighs, k = heap[0]
        fold[g] = k
        heapq.heapreplace(heap, (weighs + mass[g], k))
    return fold[place]


def _cut(mass: np.ndarray, test: float, valid: float) -> np.ndarray:
    """The part (0 train, 1 valid, 2 test) of each of the ordered groups."""
    needed = 1 + (test > 0) + (valid > 0)
    if len(mass) < needed:
        raise DataError(
            f"{len(mass)} distinct rows or groups cannot be split into {needed} parts. "
            "Give more rows, or set the test and validation fractions to 0."
        )
    total = mass.sum()
    middle = (np.cumsum(mass) - mass / 2) / (total if total > 0 else 1.0)
    ends_test = int(np.searchsorted(middle, test)) if test > 0 else 0
    ends_test = min(max(ends_test, int(test > 0)), len(mass) - needed + int(test > 0))
    ends_valid = int(np.searchsorted(middle, test + valid)) if valid > 0 else ends_test
    ends_valid = min(max(ends_valid, ends_test + int(valid > 0)), len(mass) - 1)
    part = np.zeros(len(mass), dtype=int)
    part[ends_test:ends_valid] = 1
    part[:ends_test] = 2
    return part


def _keys(rows: Any, seed: int) -> np.ndarray:
    if isinstance(rows, np.ndarray) and rows.dtype == np.uint64 and rows.ndim == 1:
        return rows
    return row_keys(rows, seed=seed)


def _group_keys(rows: Any, group: Any, count: int, seed: int) -> np.ndarray:
    ids = _column(rows, group, count, "group")
    codes, _ = spelled(ids)
    # A row without a group is its own group.
    alone = row_keys(np.arange(count), seed=seed)
    return np.where(codes < 0, alone, row_keys({"group": ids}, seed=seed))


def _ranks(keys: np.ndarray, seed: int, use: str) -> np.ndarray:
    """The place of each row's key among the distinct keys, in the order of their hash."""
    return np.unique(mix(keys ^ np.uint64(derive(seed, use))), return_inverse=True)[1]


def _first_moments(groups: np.ndarray, moment: np.ndarray) -> np.ndarray:
    """The moment at which the group of each row began, ``(N,)``."""
    first = np.full(groups.max(initial=-1) + 1, moment.max(initial=0))
    np.minimum.at(first, groups, moment)
    return first[groups]


def _without_late_rows(part: np.ndarray, moment: np.ndarray) -> np.ndarray:
    """Puts rows of earlier groups that lie beyond the begin of a later part in none (-1)."""
    part = part.copy()
    for k, later in ((0, (1, 2)), (1, (2,))):
        beyond = moment[np.isin(part, later)]
        if len(beyond):
            part[(part == k) & (moment >= beyond.min())] = -1
    return part


def _moments(column: Any) -> np.ndarray:
    import pandas as pd

    if column.isna().any():
        row = int(column.isna().to_numpy().argmax()) + 1
        raise DataError(f"a split by time needs a time in every row; row {row} has none.")
    values = column if pd.api.types.is_numeric_dtype(column.dtype) else as_dates(column)
    return np.unique(values.to_numpy(), return_inverse=True)[1]


def _column(rows: Any, given: Any, count: int, use: str) -> Any:
    import pandas as pd

    if isinstance(given, str):
        frame = as_frame(rows) if is_frame(rows) else None
        if frame is None or given not in frame.columns:
            raise UsageError(f"no column is called '{given}' to split by {use}.")
        return frame[given]
    column = pd.Series(np.asarray(given), name=use)
    if len(column) != count:
        raise UsageError(f"{use} must have {count} entries, one per row, got {len(column)}.")
    return column


def _check_fractions(test: float, valid: float) -> None:
    if not (0 <= test < 1 and 0 <= valid < 1 and test + valid < 1):
        raise UsageError(
            f"test and validation fractions must be >= 0 and sum to less than 1, "
            f"got {test} and {valid}."
        )


TRAIN, VALID, TEST = 0, 1, 2


class HashSplit(NamedTuple):
    r"""A split by the hash h of (seed, content) or (seed, group), uniform on [0, 1).

    .. math:: \text{test: } h < t, \qquad \text{validation: } t \le h < t + v,
        \qquad \text{train: the rest}

    :func:`ansatz.data.split_rows` cuts the same order of hashes where the shares are met exactly,
    for which it must have seen all rows; here the cuts are fixed, and each share is binomial around
    its value. So the two agree on all rows but those between the cuts. Duplicates, and rows of one
    group, fall on one side in both.

    Args:
        seed: another seed, another split.
        test: t.
        valid: v.
    """

    seed: int
    test: float
    valid: float

    def parts(self, keys: np.ndarray) -> np.ndarray:
        """0 train, 1 validation, 2 test of rows with such keys, ``(N,)`` uint8."""
        place = mix(keys ^ np.uint64(derive(self.seed, "split")))
        found = np.zeros(len(keys), dtype=np.uint8)
        found[place < _threshold(self.test + self.valid)] = VALID
        found[place < _threshold(self.test)] = TEST
        return found

    def group_keys(self, groups: Any, rows: np.ndarray) -> np.ndarray:
        """Keys of groups in place of contents; a row without a group is its own."""
        codes, _ = spelled(groups)
        alone = row_keys(rows, seed=self.seed)
        return np.where(codes < 0, alone, row_keys({"group": groups}, seed=self.seed))


def _threshold(share: float) -> np.uint64:
    return np.uint64(min(int(share * 2.0**64), 2**64 - 1))
