"""What one asks of a model of survival times."""

from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.outcomes.survival_metrics import (
    Followed,
    log_survival_at,
    restricted_mean,
    risk_of,
)
from ansatz.estimators.table_estimator import TableEstimator
from ansatz.likelihoods import CurveDistribution, DiscreteHazard, Distribution


class SurvivalPredictions(TableEstimator):
    """Survival curves, hazards, medians and restricted means; a part of ``SurvivalRegressor``.

    Example:
        >>> import numpy as np
        >>> from ansatz import SurvivalRegressor
        >>> model = SurvivalRegressor("exponential").fit(None, [1.0, 3.0], event=[1, 0])
        >>> model.predict_median(None).round(4).tolist()  # 4 log 2
        [2.7726]
    """

    followed_: Followed

    def predict(self, X: Any, *, offset: ArrayLike | None = None) -> NDArray[np.float64]:
        """The median time until the event; infinite where the curve stays above one half.

        Args:
            X: rows as in ``fit``.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        return self.predict_median(X, offset=offset)

    def predict_median(self, X: Any, *, offset: ArrayLike | None = None) -> NDArray[np.float64]:
        """The time at which the survival curve falls to one half.

        Args:
            X: rows as in ``fit``.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        self._refuse_causes("predict_median", "predict_incidence")
        return self.predict_dist(X, offset=offset).median.numpy()

    def predict_survival(
        self,
        X: Any,
        times: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """P(T > t | x), ``(N, len(times))``; with several causes, free of any event.

        Args:
            X: rows as in ``fit``.
            times: at which; 100 up to the last event by default (``time_grid()``).
            offset: ``(N,)``, known parts of the linear predictor.
        """
        return np.exp(-self.predict_cumulative_hazard(X, times, offset=offset))

    def predict_cumulative_hazard(
        self,
        X: Any,
        times: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """-log P(T > t | x), ``(N, len(times))``.

        Args:
            X: rows as in ``fit``.
            times: at which; 100 up to the last event by default.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        law = self.predict_dist(X, offset=offset)
        return -log_survival_at(law, self._times(times)).numpy()

    def predict_hazard(
        self,
        X: Any,
        times: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """The rate of events at t among those still free of one, ``(N, len(times))``.

        For a baseline that is a step function (Cox) it is the slope of the cumulative hazard
        between neighbouring event times.

        Args:
            X: rows as in ``fit``.
            times: at which; 100 up to the last event by default.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        law = self.predict_dist(X, offset=offset)
        return hazard(law, torch.tensor(self._times(times), dtype=law.mean.dtype)).numpy()

    def predict_restricted_mean(
        self,
        X: Any,
        horizon: float | None = None,
        *,
        offset: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """E[min(T, horizon) | x], ``(N,)``: the area under the survival curve up to the horizon.

        Args:
            X: rows as in ``fit``.
            horizon: the last event of the fit by default; later times are not known from data.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        law = self.predict_dist(X, offset=offset)
        end = self.followed_.horizon if horizon is None else float(horizon)
        if not end > 0:
            raise UsageError(f"horizon must be positive, got {horizon}.")
        return restricted_mean(law, end).numpy()

    def predict_risk(self, X: Any, *, offset: ArrayLike | None = None) -> NDArray[np.float64]:
        """A number that orders rows, higher for earlier events: the log-risk of a Cox model.

        For other laws it is minus the mean time restricted to the last event of the fit.

        Args:
            X: rows as in ``fit``.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        raw = self._raw(X, offset)
        return risk_of(self.model_.objective.likelihood, raw, self.followed_.horizon).numpy()

    def predict_incidence(
        self,
        X: Any,
        times: ArrayLike | None = None,
        cause: int = 1,
        *,
        offset: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """P(T <= t and the event is of this cause | x), ``(N, len(times))``.

        Args:
            X: rows as in ``fit``.
            times: at which; 100 up to the last event by default.
            cause: the event's code.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        law = self.model_.objective.likelihood
        causes = getattr(law, "causes", 1)
        if not 1 <= cause <= causes:
            raise UsageError(f"cause must be one of 1 to {causes}, got {cause}.")
        if not isinstance(law, DiscreteHazard):
            return 1 - self.predict_survival(X, times, offset=offset)
        raw = self._raw(X, offset)
        at = torch.tensor(self._times(times), dtype=raw.dtype)
        with torch.no_grad():
            return law.incidence(raw, at, cause).numpy()

    def score(self, X: Any, y: Any, **options: Any) -> float:
        """Harrell's concordance: the share of comparable pairs that ``predict_risk`` orders right.

        With several causes it is that of cause 1; nan where outcomes are intervals.

        Args:
            X: rows as in ``fit``.
            y: outcomes as in ``fit``: ``(N, 2)``, ``(N, 3)`` or structured.
            options: ``sample_weight``, ``offset``.
        """
        metrics = self.evaluate(X, y, **options)
        found = metrics.get("c_index", metrics.get("c_index_1"))
        return float("nan") if found is None else found

    def time_grid(self, count: int = 100) -> NDArray[np.float64]:
        """``count`` times up to the last event of the fit.

        Args:
            count: how many.
        """
        return np.linspace(0, self.followed_.horizon, count + 1)[1:]

    def predict_frame(self, X: Any, interval: float | None = None, **options: Any) -> pd.DataFrame:
        """Predictions as a table: ``prediction`` (the median), ``lower``, ``upper``, ``risk``.

        With several causes: ``incidence_<cause>`` by the last event of the fit, and with ``times``
        also ``incidence_<cause>_<time>``.

        Args:
            X: rows as in ``fit``; the frame's index is kept.
            interval: the level of ``lower`` and ``upper``; None leaves them out.
            options: ``offset``; ``times``, for the columns ``survival_<time>``.
        """
        index = X.index if isinstance(X, pd.DataFrame) else None
        times = options.pop("times", None)
        if getattr(self, "uses_", None) is not None:
            rows = self._from_table(X, outcomes=False)
            X, options = rows.X, {**options, "offset": rows.offset}
        columns: dict[str, Any] = {}
        causes = getattr(self.model_.objective.likelihood, "causes", 1)
        if causes == 1:
            columns["prediction"] = self.predict_median(X, **options)
            if interval is not None:
                bounds = self.interval(X, interval, **options)
                columns["lower"], columns["upper"] = bounds[:, 0], bounds[:, 1]
            columns["risk"] = self.predict_risk(X, **options)
        else:
            end = [self.followed_.horizon]
            for cause in range(1, causes + 1):
                chance = self.predict_incidence(X, end, cause, **options)
                columns[f"incidence_{cause}"] = chance[:, 0]
        if times is not None:
            columns |= self._at_times(X, times, causes, options)
        return pd.DataFrame(columns, index=index)

    def _at_times(
        self, X: Any, times: ArrayLike, causes: int, options: dict[str, Any]
    ) -> dict[str, NDArray[np.float64]]:
        labels = [f"{time:.15g}" for time in self._times(times)]
        curves = {"survival": self.predict_survival(X, times, **options)}
        if causes > 1:
            for cause in range(1, causes + 1):
                found = self.predict_incidence(X, times, cause, **options)
                curves[f"incidence_{cause}"] = found
        return {
            f"{name}_{label}": curve[:, k]
            for name, curve in curves.items()
            for k, label in enumerate(labels)
        }

    def _times(self, times: ArrayLike | None) -> list[float]:
        if times is None:
            return self.time_grid().tolist()
        found = np.atleast_1d(np.asarray(times, dtype=np.float64))
        if found.ndim != 1 or not len(found) or not np.isfinite(found).all():
            raise UsageError(f"times must be a list of numbers, got {times!r}.")
        return found.tolist()

    def _refuse_causes(self, what: str, instead: str) -> None:
        causes = getattr(self.model_.objective.likelihood, "causes", 1)
        if causes > 1:
            raise UsageError(f"with {causes} causes {what} has no meaning of its own: {instead}.")


def hazard(law: Distribution, times: Tensor) -> Tensor:
    """f(t) / S(t) of each row, ``(N, len(times))``.

    For a curve of steps, the slope of the cumulative hazard around t.

    Example:
        >>> import torch
        >>> from ansatz.estimators.survival_predictions import hazard
        >>> from ansatz.likelihoods import GammaDistribution
        >>> hazard(GammaDistribution(torch.zeros(1), torch.ones(1)), torch.tensor([2.0, 9.0]))
        tensor([[1., 1.]])
    """
    if isinstance(law, CurveDistribution) and law.interpolation == "step":
        knots = torch.cat([law.times.new_zeros(1), law.times])
        place = torch.searchsorted(knots, times.to(knots)).clamp(1, len(knots) - 1)
        before, after = knots[place - 1], knots[place]
        rise = log_survival_at(law, before.tolist()) - log_survival_at(law, after.tolist())
        return rise / (after - before)
    at = times.unsqueeze(1).expand(-1, len(law.mean))
    return (law.log_prob(at) - law.log_survival(at)).exp().T
