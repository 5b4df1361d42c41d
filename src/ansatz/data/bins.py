"""A number by the bins of its range: what lets a network bend sharply along one column."""

import numpy as np
from pydantic import BaseModel, ConfigDict

_LEAST = 0.1  # of a bin's spread: one that few rows reach is not blown up further


class Bins(BaseModel):
    r"""The position of a number within each bin of its range.

    .. math:: e_t(x) = \mathrm{clamp}\Big(\frac{x - b_{t-1}}{b_t - b_{t-1}}, 0, 1\Big), \qquad
        z_t = \frac{e_t - c_t}{\max(s_t, 0.1)}, \qquad t = 1..T

    A linear map of these features is any function that is linear between the edges b, as a spline
    of degree 1 or a soft decision tree is. The edges are values that occur, evenly spaced among the
    different ones: where few rows have many values (incomes above zero), the edges still are.
    A missing number counts as the mean, z = 0.

    Args:
        edges: b, increasing, T + 1 of them.
        center: c, the weighted means of e.
        scale: the larger of 0.1 and s, their weighted standard deviations.

    References:
        Gorishniy, Rubachev & Babenko (2022), On embeddings for numerical features in tabular deep
        learning, eq. 1. https://arxiv.org/abs/2203.05556
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    edges: list[float]
    center: list[float]
    scale: list[float]

    @classmethod
    def fit(cls, column: np.ndarray, weight: np.ndarray, count: int) -> "Bins | None":
        """Learns at most ``count`` bins from a column ``(N,)``; None if it has but two values."""
        known = ~np.isnan(column)
        values = np.unique(column[known].astype(float))
        if len(values) < 3:
            return None
        places = np.linspace(0, len(values) - 1, min(count, len(values) - 1) + 1)
        edges = values[np.unique(places.round().astype(int))]
        if not np.isfinite(np.diff(edges)).all():  # a range beyond the largest number
            return None
        found = cls(edges=edges.tolist(), center=[0.0] * (len(edges) - 1), scale=[])
        e, share = found.positions(column[known]), weight[known] / weight[known].sum()
        center = share @ e
        scale = np.sqrt(share @ (e - center) ** 2)
        return cls(
            edges=edges.tolist(), center=center.tolist(), scale=np.maximum(scale, _LEAST).tolist()
        )

    def __len__(self) -> int:
        return len(self.edges) - 1

    def positions(self, column: np.ndarray) -> np.ndarray:
        """e of each number, ``(N, T)``; nan where it is missing."""
        edges = np.array(self.edges)
        return np.clip((column[:, None] - edges[:-1]) / np.diff(edges), 0, 1)

    def encode(self, column: np.ndarray) -> np.ndarray:
        """z of each number, ``(N, T)``."""
        z = (self.positions(column) - np.array(self.center)) / np.array(self.scale)
        return np.nan_to_num(z, copy=False, nan=0.0)
