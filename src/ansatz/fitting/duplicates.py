"""Rows that occur more than once: a score on copies of training rows is too good."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansatz.data import find_duplicates, row_keys

Keys = NDArray[np.uint64]


def content_keys(rows: Any, y: Any, seed: int = 0) -> Keys:
    """One number per row of features and outcome; copies share it.

    Example:
        >>> import numpy as np
        >>> from ansatz.fitting.duplicates import content_keys
        >>> a, b = content_keys(np.ones((2, 3)), np.zeros(2))
        >>> bool(a == b)
        True
    """
    return row_keys(rows, np.asarray(y, dtype=np.float64), seed=seed)


def describe_copies(keys: Keys) -> list[str]:
    """A sentence about the rows of a table that are copies of others, if there are any.

    Example:
        >>> import numpy as np
        >>> from ansatz.fitting.duplicates import describe_copies
        >>> describe_copies(np.array([1, 2, 1], dtype=np.uint64))
        ['1 of 3 rows is a copy of another; copies stay on one side of every split by content.']
    """
    count = len(keys) - len(np.unique(keys))
    if count == 0:
        return []
    what = "is a copy" if count == 1 else "are copies"
    return [
        f"{count} of {len(keys)} rows {what} of another; copies stay on one side of every split "
        "by content."
    ]


def copied(learned: Keys, judged: Keys) -> NDArray[np.bool_]:
    """Which of the rows to judge by are copies of rows that were learned from.

    Example:
        >>> import numpy as np
        >>> from ansatz.fitting.duplicates import copied
        >>> copied(np.array([5, 6], dtype=np.uint64), np.array([6, 7], dtype=np.uint64))
        array([ True, False])
    """
    found: NDArray[np.bool_] = find_duplicates(learned, judged)
    return found


def warn_of_copies(mask: NDArray[np.bool_], honest: dict[str, float | None] | None) -> list[str]:
    """What copies among the judged rows do to the metrics.

    Args:
        mask: which rows are copies.
        honest: the metrics without them; None if no row is left.

    Example:
        >>> import numpy as np
        >>> from ansatz.fitting.duplicates import warn_of_copies
        >>> warn_of_copies(np.array([True, False]), {"nll": 1.25, "r2": None})
        ['1 of 2 judged rows (50 %) are copies of rows learned from; without them: nll 1.25.']
    """
    count = int(mask.sum())
    if count == 0:
        return []
    known = [f"{name} {value:.4g}" for name, value in (honest or {}).items() if value is not None]
    without = ", ".join(known) or "no row is left"
    share = f"{count} of {len(mask)} judged rows ({count / len(mask):.0%})".replace("%", " %")
    return [f"{share} are copies of rows learned from; without them: {without}."]
