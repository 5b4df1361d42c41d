"""Rows that occur more than once: a score on copies of training rows is too good."""

import numpy as np
from numpy.typing import NDArray

from ansatz.data import find_duplicates

Keys = NDArray[np.uint64]


def describe_copies(keys: Keys) -> list[str]:
    """A sentence about the rows of a table that are copies of others, if there are any."""
    count = len(keys) - len(np.unique(keys))
    if count == 0:
        return []
    what = "is a copy" if count == 1 else "are copies"
    return [
        f"{count} of {len(keys)} rows {what} of another; copies stay on one side of every split "
        "by content."
    ]


def copied(learned: Keys, judged: Keys) -> NDArray[np.bool_]:
    """Which of the rows to judge by are copies of rows that were learned from."""
    found: NDArray[np.bool_] = find_duplicates(learned, judged)
    return found


def warn_of_copies(mask: NDArray[np.bool_], honest: dict[str, float | None] | None) -> list[str]:
    """What copies among the judged rows do to the metrics.

    Args:
        mask: which rows are copies.
        honest: the metrics without them; None if no row is left.
    """
    count = int(mask.sum())
    if count == 0:
        return []
    known = [f"{name} {value:.4g}" for name, value in (honest or {}).items() if value is not None]
    without = ", ".join(known) or "no row is left"
    share = f"{count} of {len(mask)} judged rows ({count / len(mask):.0%})".replace("%", " %")
    return [f"{share} are copies of rows learned from; without them: {without}."]
