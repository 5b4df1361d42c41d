"""Two targets that are one quantity in other units or on another scale."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Change(NamedTuple):
    r"""b = g(a), verified on every row, and log |g'(a)| of each.

    A density of b is one of a by :math:`p_a(a) = p_b(g(a))\, |g'(a)|`.
    """

    name: str
    log_slope: Array


class _Candidate(NamedTuple):
    name: str
    value: Callable[[Array], Array]
    log_slope: Callable[[Array], Array]


_CANDIDATES = (
    _Candidate("log", np.log, lambda a: -np.log(a)),
    _Candidate("log1p", np.log1p, lambda a: -np.log1p(a)),
    _Candidate("log10", np.log10, lambda a: -np.log(a) - np.log(np.log(10))),
    _Candidate("log2", np.log2, lambda a: -np.log(a) - np.log(np.log(2))),
    _Candidate("sqrt", np.sqrt, lambda a: -0.5 * np.log(a) - np.log(2)),
    _Candidate("cube root", np.cbrt, lambda a: -2 / 3 * np.log(np.abs(a)) - np.log(3)),
    _Candidate("inverse", lambda a: 1 / a, lambda a: -2 * np.log(np.abs(a))),
    _Candidate("exp", np.exp, lambda a: a),
    _Candidate("expm1", np.expm1, lambda a: a),
    _Candidate("power of 10", lambda a: 10**a, lambda a: a * np.log(10) + np.log(np.log(10))),
    _Candidate("power of 2", lambda a: 2**a, lambda a: a * np.log(2) + np.log(np.log(2))),
    _Candidate("cube", lambda a: a**3, lambda a: np.log(3) + 2 * np.log(np.abs(a))),
)


def find_change(a: Array, b: Array) -> Change | None:
    """The known function that maps every a to its b, if there is one.

    Tried are a change of units (b = c + s a), logarithms, roots, the inverse, and their
    inverses; the square where no a is negative.

    Args:
        a: ``(N,)`` outcomes of the one model.
        b: ``(N,)`` outcomes of the other, of the same rows.
    """
    if a.shape != b.shape or a.ndim != 1 or len(np.unique(a)) < 2:
        return None
    units = _units(a, b)
    if units is not None:
        return units
    candidates = list(_CANDIDATES)
    if (a >= 0).all():
        candidates.append(_Candidate("square", np.square, lambda x: np.log(2 * np.abs(x))))
    with np.errstate(all="ignore"):
        for candidate in candidates:
            value = candidate.value(a)
            if np.isfinite(value).all() and np.allclose(value, b, rtol=1e-6, atol=1e-9):
                slope = candidate.log_slope(a)
                return Change(candidate.name, slope) if np.isfinite(slope).all() else None
    return None


def _units(a: Array, b: Array) -> Change | None:
    low, high = int(a.argmin()), int(a.argmax())
    slope = float((b[high] - b[low]) / (a[high] - a[low]))
    # Rounding to the last digit of a file moves both ends a little.
    straight = b[low] + slope * (a - a[low])
    spread = float(np.ptp(b))
    if slope == 0 or spread == 0 or len(np.unique(a)) < 3:
        return None
    if not np.abs(straight - b).max() <= 1e-6 * spread:
        return None
    return Change("units", np.full(len(a), np.log(abs(slope))))
