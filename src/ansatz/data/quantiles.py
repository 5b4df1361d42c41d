"""Heavy tails bent to a normal shape."""

import numpy as np
from pydantic import BaseModel, ConfigDict

_KNOTS = 1000


class Curve(BaseModel):
    r"""The monotone map from values to normal scores, learned from weighted rows.

    .. math:: z(v) = \Phi^{-1}\left(\frac{W_{<v} + W_{\le v}}{2 W}\right)

    W sums the weights, so that a row of weight 3 counts like three rows; ties share a score.
    Between the learned values z is linear, beyond them constant. Of more than 1,000 values some
    1,000 are kept: half spaced evenly in probability, half in z, which keeps the tails.

    Args:
        values: increasing.
        levels: their scores z.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    values: list[float]
    levels: list[float]

    @classmethod
    def fit(cls, column: np.ndarray, weight: np.ndarray) -> "Curve":
        """Learns from a column ``(N,)``, nan left out, with weights ``(N,)``, all positive."""
        from scipy.special import ndtr, ndtri

        known = ~np.isnan(column)
        values, place = np.unique(column[known], return_inverse=True)
        mass = np.bincount(place, weights=weight[known], minlength=len(values))
        if len(values) == 0:
            return cls(values=[0.0], levels=[0.0])
        upper = np.cumsum(mass)
        middle = (upper - mass / 2) / upper[-1]
        if len(values) > _KNOTS:
            low, high = ndtri(middle[[0, -1]])
            wanted = [
                np.linspace(middle[0], middle[-1], _KNOTS // 2),
                ndtr(np.linspace(low, high, _KNOTS // 2)),
            ]
            keep = np.searchsorted(middle, np.concatenate(wanted) - 1e-12)
            keep = np.unique(np.minimum(keep, len(values) - 1))
            values, middle = values[keep], middle[keep]
        return cls(values=values.tolist(), levels=ndtri(middle).tolist())

    def scores(self, column: np.ndarray) -> np.ndarray:
        """z of each value, nan where missing."""
        bent = np.interp(column, self.values, self.levels)
        return np.where(np.isnan(column), np.nan, bent)
