"""Metrics of rows that are judged block by block."""

import math
from collections.abc import Iterable

from torch import Tensor

from ansatz.data.streams import Moments
from ansatz.fitting.contracts.outcome import Metrics

MEANS = ("nll", "crps", "mae", "accuracy", "brier", "pinball", "energy_score", "mean_angular_error")


class PooledMetrics:
    r"""Means over all rows from the means of blocks; other metrics come from a sample.

    A metric that is a mean over rows is the weighted mean of the blocks' values; the RMSE is the
    root of that of squares, and :math:`R^2 = 1 - \sum (y - f)^2 / \sum (y - \bar y)^2` of sums.
    What compares rows with each other (AUC, ECE, concordance) is that of ``sample``.
    """

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._undefined: set[str] = set()
        self._moments = Moments(1)
        self._weight = 0.0

    def add(self, metrics: Metrics, y: Tensor, weight: Tensor) -> None:
        """Takes in the metrics of some rows, their outcomes and weights."""
        mass = float(weight.sum())
        if mass == 0:
            return
        self._weight += mass
        for name in (*MEANS, "rmse"):
            if name in metrics:
                value = metrics[name]
                if value is None:
                    self._undefined.add(name)
                    continue
                value = value**2 if name == "rmse" else value
                self._sums[name] = self._sums.get(name, 0.0) + mass * value
        if y.ndim == 1 and y.is_floating_point():
            self._moments.add(y.double().numpy()[:, None], weight.double().numpy())
        else:
            self._undefined |= {"rmse", "r2"}  # means over targets: left to the sample

    def result(self, sample: Metrics) -> Metrics:
        """All metrics, in the order of those of the sample."""
        found = dict(sample)
        for name in self._sums:
            if name in self._undefined:
                continue
            mean = self._sums[name] / self._weight
            found[name] = math.sqrt(mean) if name == "rmse" else mean
        if "r2" in sample and "rmse" in self._sums and "rmse" not in self._undefined:
            total = float(self._moments.square[0]) / self._weight
            error = self._sums["rmse"] / self._weight
            found["r2"] = 1 - error / total if total > 0 else None
        return found

    def left(self, names: Iterable[str]) -> list[str]:
        """Those metrics that come from the sample."""
        own = {name for name in self._sums if name not in self._undefined}
        own |= {"r2"} if "rmse" in own else set()
        return [name for name in names if name not in own]
