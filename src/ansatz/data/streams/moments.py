"""Means and standard deviations of columns, block by block, to the last digits."""

import numpy as np

from ansatz.data.numeric import _moments


class Moments:
    r"""Weighted mean and spread of each column of a stream, nan left out.

    Each block's own moments are taken in two passes; two blocks with weights :math:`W_a, W_b` are
    joined by

    .. math:: m = m_a + \frac{W_b}{W_a + W_b} \delta, \qquad
        S = S_a + S_b + \frac{W_a W_b}{W_a + W_b} \delta^2, \qquad \delta = m_b - m_a

    which loses no digits where the mean is large.

    Args:
        columns: P.

    Example:
        >>> import numpy as np
        >>> from ansatz.data.streams import Moments
        >>> moments = Moments(1)
        >>> for block in (np.array([[1.0], [2.0]]), np.array([[6.0]])):
        ...     moments.add(block, np.ones(len(block)))
        >>> moments.mean, moments.rows
        (array([3.]), 3)

    References:
        Chan, Golub and LeVeque (1983), Algorithms for computing the sample variance.
    """

    def __init__(self, columns: int) -> None:
        self.rows = 0
        self.weight, self.mean, self.square = (np.zeros(columns) for _ in range(3))
        self.missing = np.zeros(columns, dtype=np.int64)
        self.low, self.high = np.full(columns, np.nan), np.full(columns, np.nan)

    def add(self, values: np.ndarray, weight: np.ndarray) -> None:
        """Takes in values ``(N, P)`` with positive weights ``(N,)``."""
        if len(values) == 0:
            return
        known = ~np.isnan(values)
        mass = weight @ known
        mean, deviation, missing = _moments(values, weight)
        total = self.weight + mass
        delta = np.where(self.weight > 0, mean - self.mean, 0.0)
        share = np.divide(mass, total, out=np.zeros_like(total), where=total > 0)
        self.square += mass * np.square(deviation) + self.weight * share * np.square(delta)
        first = (self.weight == 0) & (mass > 0)
        self.mean = np.where(first, mean, np.where(mass > 0, self.mean + share * delta, self.mean))
        self.weight, self.missing = total, self.missing + missing
        self.rows += len(values)
        with np.errstate(invalid="ignore"):
            self.low = np.fmin(self.low, np.fmin.reduce(values, axis=0))
            self.high = np.fmax(self.high, np.fmax.reduce(values, axis=0))

    @property
    def deviation(self) -> np.ndarray:
        """Standard deviations, 0 where rounding of the mean alone would explain them."""
        variance = np.divide(
            self.square, self.weight, out=np.zeros_like(self.square), where=self.weight > 0
        )
        noise = (10 * np.finfo(float).eps * np.abs(self.mean)) ** 2
        found: np.ndarray = np.where(variance <= noise, 0.0, np.sqrt(variance))
        return found
