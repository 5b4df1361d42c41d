"""The part of each row decided by the row alone."""

from typing import Any, NamedTuple

import numpy as np

from ansatz.data.keys import mix, row_keys
from ansatz.data.levels import spelled
from ansatz.seeds import derive

TRAIN, VALID, TEST = 0, 1, 2


class HashSplit(NamedTuple):
    r"""A split by the hash h of (seed, content) or (seed, group), spread over [0, 1).

    .. math:: \text{test: } h < t, \qquad \text{validation: } t \le h < t + v,
        \qquad \text{train: the rest}

    :func:`ansatz.data.split_rows` cuts the same order of hashes where the shares are met exactly,
    for which it must have seen all rows; here the cuts are fixed, and each share is binomial around
    its value. So the two agree on all rows but those between the cuts. Copies, and rows of one
    group, fall on one side in both.

    Args:
        seed: another seed, another split.
        test: t.
        valid: v.

    Example:
        >>> import numpy as np
        >>> from ansatz.data.streams import HashSplit
        >>> parts = HashSplit(0, test=0.2, valid=0.1).parts(np.arange(10_000, dtype=np.uint64))
        >>> (np.bincount(parts) / 10_000).round(2).tolist()
        [0.7, 0.1, 0.2]
    """

    seed: int
    test: float
    valid: float

    def parts(self, keys: np.ndarray) -> np.ndarray:
        """0 train, 1 validation, 2 test of rows with such keys, ``(N,)`` uint8."""
        place = mix(keys ^ np.uint64(derive(self.seed, "split")))
        found = np.zeros(len(keys), dtype=np.uint8)
        found[place < _cut(self.test + self.valid)] = VALID
        found[place < _cut(self.test)] = TEST
        return found

    def group_keys(self, groups: Any, rows: np.ndarray) -> np.ndarray:
        """Keys of groups in place of contents; a row without a group is its own."""
        codes, _ = spelled(groups)
        alone = row_keys(rows, seed=self.seed)
        return np.where(codes < 0, alone, row_keys({"group": groups}, seed=self.seed))


def _cut(share: float) -> np.uint64:
    return np.uint64(min(int(share * 2.0**64), 2**64 - 1))
