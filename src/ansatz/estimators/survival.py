"""Times until an event as outcomes, some of them known only in part."""

from typing import Any, Self, Unpack

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from ansatz import outcomes
from ansatz.errors import DataError, UsageError
from ansatz.estimators.arguments import Arguments
from ansatz.estimators.estimator import Estimator
from ansatz.estimators.predictor import FittedAttribute
from ansatz.likelihoods import Likelihood


class SurvivalRegressor(Estimator, without=("calibration",)):
    """A network, or a linear model, of the time until an event.

    Rows may be censored on the right, on the left or to an interval, and may have entered late;
    rows of one subject with changing features are given as (entry, time] rows. Censoring is
    taken to be independent of the time given x.

    Args:
        likelihood: ``"weibull"``, ``"log_normal"``, ``"gamma"``, ``"exponential"`` or any other
            likelihood of numbers; ``"cox"`` for proportional hazards with a free baseline;
            ``"discrete_hazard"`` for free hazards and for several causes; or an instance.

    Example:
        >>> import numpy as np
        >>> from ansatz import SurvivalRegressor
        >>> x, time = np.linspace(0, 1, 60).reshape(-1, 1), np.linspace(5, 1, 60)
        >>> model = SurvivalRegressor(network="linear").fit(x, time, event=np.arange(60) % 4 > 0)
        >>> model.predict_survival([[0.0], [1.0]], times=[2.0]).round().tolist()
        [[1.0], [0.0]]

    References:
        Katzman et al. (2018), DeepSurv. https://arxiv.org/abs/1606.00931
        Kalbfleisch and Prentice (2002), The Statistical Analysis of Failure Time Data.
    """

    outcome = "survival"
    followed_ = FittedAttribute(lambda model: model.of_times.followed)

    def __init__(
        self, likelihood: str | Likelihood = "weibull", **options: Unpack[Arguments]
    ) -> None:
        super().__init__(likelihood, **options)

    def fit(  # type: ignore[override]  # times have more than one number
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        event: ArrayLike | None = None,
        entry: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        strata: str | None = None,
        validation_data: tuple[Any, ...] | None = None,
    ) -> Self:
        """Fits the network, or the linear model, to the rows.

        Args:
            X: ``(N, D)`` array, or a data frame with columns of any type; nan is missing. None,
                or a frame without columns, fits the constant model.
            y: times ``(N,)``; or ``(N, 2)`` and ``(N, 3)`` of time, event and entry; or a
                structured array with a Boolean and a numeric field.
            sample_weight: ``(N,)`` frequency weights: a weight of 2 is the row twice.
            event: ``(N,)``, 1 where the time is that of an event (further whole numbers are other
                causes), 0 where the row was censored. All events if not given.
            entry: ``(N,)`` times from which rows were watched.
            upper: ``(N,)`` right ends of intervals of which y are the left ends; infinite or nan
                where open.
            offset: ``(N,)``, a known part of the linear predictor.
            groups: ``(N,)``; rows alike in it (of one patient) stay on one side of every split
                within the fit.
            strata: a column of the data frame X. ``cox`` estimates one baseline hazard for each
                value of it and compares rows within it; the column is not a feature, but
                predictions find their curve by it.
            validation_data: ``(X, y)``, rows that stop the training, y with time and event.
        """
        known = {"event": event, "entry": entry, "upper": upper}
        times, roles = self._times(y, **known, strata=_strata_of(X, strata)), None
        if strata is not None:
            roles = {strata: "stratum"}
        if validation_data is not None:
            rows, outcomes, *weight = validation_data
            more = self._times(outcomes, strata=_strata_of(rows, strata))
            others = {"offset": offset, "groups": groups}
            data = (rows, more, *weight)
            return self._fit_validated(X, times, sample_weight, data, others, roles)
        return self._fit(*self._begin(X, times, sample_weight, offset, groups=groups, roles=roles))

    def _completed(self, X: Any, y: Any) -> Any:
        """Outcomes with the strata of their rows, where the model has strata."""
        columns = self.model_.features["columns"] or []
        name = next((c["name"] for c in columns if c["role"] == "stratum"), None)
        if name is None or (isinstance(y, pd.DataFrame) and "strata" in y):
            return y
        return self._times(y, strata=_strata_of(X, name))

    def _times(self, y: Any, **known: Any) -> Any:
        """Times with what is known of them, as one array, or a frame with their strata."""
        return outcomes.create(self.outcome).gather(y, **known)

    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        event: ArrayLike | None = None,
        entry: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> Self:
        """Makes one pass over the rows, from where the last call left weights and optimiser.

        Args:
            X: rows as in ``fit``.
            y: times as in ``fit``.
            sample_weight: ``(N,)`` frequency weights.
            event: as in ``fit``.
            entry: as in ``fit``.
            upper: as in ``fit``.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        if self.settings().likelihood_name == "cox":
            raise UsageError("cox compares rows with all others: it has no partial_fit, use fit.")
        times = self._times(y, event=event, entry=entry, upper=upper)
        return self._partial_fit(*self._continue(X, times, sample_weight, offset))

    def predict_median(self, X: Any, *, offset: ArrayLike | None = None) -> NDArray[np.float64]:
        """Predicts the time at which the survival curve falls to one half.

        That of a linear model is the curve at its estimates, as in R; its other predictions are
        averaged over their estimation error.

        Args:
            X: rows as in ``fit``.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        return self.predict(X, offset=offset)

    def predict_survival(
        self, X: Any, times: ArrayLike | None = None, *, offset: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Predicts P(T > t | x), ``(N, len(times))``; with several causes, free of any event.

        Args:
            X: rows as in ``fit``.
            times: at which; 100 up to the last event by default (``time_grid()``).
            offset: ``(N,)``, known parts of the linear predictor.
        """
        return np.exp(-self.predict_cumulative_hazard(X, times, offset=offset))

    def predict_cumulative_hazard(
        self, X: Any, times: ArrayLike | None = None, *, offset: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Predicts -log P(T > t | x), ``(N, len(times))``.

        Args:
            X: rows as in ``fit``.
            times: at which; 100 up to the last event by default.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        served = self._served(X, offset)
        found: NDArray[np.float64] = -self.model_.of_times.log_survival(served, times)
        return found

    def predict_hazard(
        self, X: Any, times: ArrayLike | None = None, *, offset: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Predicts the rate of events at t among those still free of one, ``(N, len(times))``.

        For a baseline that is a step function (Cox) it is the slope of the cumulative hazard
        between neighbouring event times.

        Args:
            X: rows as in ``fit``.
            times: at which; 100 up to the last event by default.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        served = self._served(X, offset)
        found: NDArray[np.float64] = self.model_.of_times.hazard(served, times)
        return found

    def predict_restricted_mean(
        self, X: Any, horizon: float | None = None, *, offset: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Predicts E[min(T, horizon) | x], ``(N,)``: the area under the survival curve.

        Args:
            X: rows as in ``fit``.
            horizon: the last event of the fit by default; later times are not known from data.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        served = self._served(X, offset)
        found: NDArray[np.float64] = self.model_.of_times.restricted_mean(served, horizon)
        return found

    def predict_risk(self, X: Any, *, offset: ArrayLike | None = None) -> NDArray[np.float64]:
        """Predicts a number that is higher for earlier events: the log-risk of a Cox model.

        For other likelihoods it is minus the mean time restricted to the last event of the fit.

        Args:
            X: rows as in ``fit``.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        served = self._served(X, offset)
        found: NDArray[np.float64] = self.model_.of_times.risk(served)
        return found

    def predict_incidence(
        self,
        X: Any,
        times: ArrayLike | None = None,
        cause: int = 1,
        *,
        offset: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Predicts P(T <= t and the event is of this cause | x), ``(N, len(times))``.

        Args:
            X: rows as in ``fit``.
            times: at which; 100 up to the last event by default.
            cause: the event's code.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        served = self._served(X, offset)
        found: NDArray[np.float64] = self.model_.of_times.incidence(served, times, cause)
        return found

    def score(self, X: Any, y: Any, **options: Any) -> float:
        """Computes Harrell's concordance: the share of pairs that ``predict_risk`` orders right.

        With several causes it is that of cause 1; nan where outcomes are intervals.

        Args:
            X: rows as in ``fit``.
            y: outcomes as in ``fit``: ``(N, 2)``, ``(N, 3)`` or structured.
            options: ``sample_weight``, ``offset``.
        """
        metrics = self.evaluate(X, y, warn=False, **options)
        found = metrics.get("c_index", metrics.get("c_index_1"))
        return float("nan") if found is None else found

    def time_grid(self, count: int = 100) -> NDArray[np.float64]:
        """Gives ``count`` times up to the last event of the fit.

        Args:
            count: how many.
        """
        return np.linspace(0, self.followed_.horizon, count + 1)[1:]


def _strata_of(X: Any, name: Any) -> Any:
    """The column of X that holds the strata; None without a name."""
    if name is None:
        return None
    if not isinstance(name, str):
        raise UsageError(
            "strata must be the name of a column of X: predictions find their curve by it."
        )
    if not isinstance(X, pd.DataFrame) or name not in X.columns:
        raise DataError(f"strata='{name}': X must be a data frame with this column.")
    return X[name]
