"""Forecasts of time series: one network for all series of a table."""

from collections.abc import Sequence
from typing import Any, Self, Unpack

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ansatz import outcomes
from ansatz.data.sequences.windows import Windows
from ansatz.errors import UsageError
from ansatz.estimators.arguments import Arguments
from ansatz.estimators.estimator import Estimator
from ansatz.fitting.job import take
from ansatz.fitting.model import Given
from ansatz.fitting.proposal import propose_numbers
from ansatz.fitting.task import Settings
from ansatz.likelihoods import Likelihood
from ansatz.outcomes.path import sample_paths

_OF_OTHERS = (
    *("calibration", "x", "widths", "activation", "dropout", "quantile", "bins", "augment"),
    *("errors", "formula", "impute", "link", "tokens", "vocabulary", "length"),
)


class Forecaster(Estimator, without=_OF_OTHERS):
    """A network that forecasts the distributions of the next H values of a series.

    One network serves all series of a table, and new ones. Each step ahead has its own
    likelihood; the steps of a path hang together by a Gaussian copula of validation rows.

    Args:
        likelihood: of each step by name (``ansatz list likelihoods``), or an instance; ``"auto"``
            takes the first that the values allow.
        horizon: steps ahead, H.
        window: steps that a forecast looks back; by the length of a step and the horizon if not
            given.
        season: steps of a cycle; a day of hours, a week of days, a year of longer steps.
        network: ``"window"``, ``"linear_window"``, ``"rnn"``, ``"lstm"``, ``"gru"``, ``"mingru"``,
            ``"minlstm"`` or ``"lru"``; ``"auto"`` takes ``"window"``.
        holdout: share of the steps, the latest, that stop the training; a tenth if not given.

    Example:
        >>> import numpy as np
        >>> from ansatz import Forecaster
        >>> series = 20 + 5 * np.sin(np.arange(200) / 4) + np.random.default_rng(0).normal(size=200)
        >>> model = Forecaster("normal", horizon=3, window=24, epochs=2).fit(series)
        >>> model.predict().shape, model.paths(count=5).shape
        ((1, 3), (1, 5, 3))

    References:
        Zeng et al. (2023), Are transformers effective for time series forecasting?
        https://arxiv.org/abs/2205.13504
    """

    outcome = "forecast"
    x = "series"

    def __init__(
        self,
        likelihood: str | Likelihood = "auto",
        *,
        horizon: int = 1,
        window: int | None = None,
        season: int | None = None,
        **options: Unpack[Arguments],
    ) -> None:
        super().__init__(likelihood, **options)
        self.horizon, self.window, self.season = horizon, window, season

    def _outcome(self) -> Any:
        model = getattr(self, "model_", None)
        return outcomes.create(self.outcome) if model is None else model.outcome

    def settings(self) -> Settings:
        """Gives the arguments as settings of a fit."""
        found = super().settings()
        own = ("horizon", "window", "season")
        options = {name: value for name, value in found.options.items() if name not in own}
        name = found.likelihood
        return found.change(options=options, likelihood="normal" if name == "auto" else name)

    def fit(  # type: ignore[override]
        self,
        data: Any,
        target: str | None = None,
        *,
        time: str | None = None,
        id: str | None = None,
        known: Sequence[str] = (),
        exposure: str | None = None,
        drop: Sequence[str] = (),
        edges: Any = None,
    ) -> Self:
        """Fits the network to every origin of the series.

        Args:
            data: a table with a row for each step of each series, a series with its times as
                index, or an array of equally spaced values.
            target: the column to forecast.
            time: the column of times.
            id: the column that names the series.
            known: columns that are known ahead, as the calendar is; others end at the origin.
            exposure: the column that counts what a count is counted of.
            drop: columns to leave out.
            edges: a table of neighbouring series, two names in a row.
        """
        reading = {
            **{"target": target, "time": time, "id": id, "exposure": exposure},
            **{"known": list(known), "drop": list(drop), "edges": edges},
            **{"horizon": self.horizon, "window": self.window, "season": self.season},
        }
        read = self._outcome().windows(data, reading)
        task = self.task(read.rows)
        if self.likelihood == "auto":
            y = read.rows.outcomes()[:, 0]
            named = pd.DataFrame(y[np.isfinite(y)])
            found = propose_numbers(named, "y", exposure=exposure is not None).candidates
            task = task.change(likelihood="poisson" if found == ["bernoulli"] else found[0])
        job = self._job(task, read, read.rows.outcomes(), reset=True)
        parts = task.outcome.split(job, task, 0.0)
        assert parts is not None
        learn = take(job, parts.learn)._replace(valid=parts.valid)
        return self._fit(task, learn)

    def _given(
        self, X: Any, offset: ArrayLike | None = None, trials: ArrayLike | None = None
    ) -> Given:
        check_is_fitted(self)
        if offset is not None or trials is not None:
            raise UsageError("forecasts take no offset and no trials.")
        return Given(
            X if isinstance(X, Windows) else self._outcome().again(self.model_, X, future=True).rows
        )

    # Predictions: X is a history, None for that of the fit; a row is a series.

    def predict(self, X: Any = None, *, offset: ArrayLike | None = None) -> NDArray[Any]:
        """Predicts the next H values of each series, ``(n, H)``.

        Args:
            X: histories, as in ``fit``; None for those of the fit.
            offset: refused.
        """
        return super().predict(X, offset=offset)

    def predict_dist(self, X: Any = None, **options: Any) -> Any:
        """Predicts the distribution of each of the next H values of each series.

        Args:
            X: histories, as in ``fit``; None for those of the fit.
            options: as of other estimators.
        """
        return super().predict_dist(X, **options)

    def interval(self, X: Any = None, level: float = 0.9, **options: Any) -> NDArray[np.float64]:
        """Predicts an equal-tailed interval of each step, ``(n, H, 2)``.

        Args:
            X: histories, as in ``fit``; None for those of the fit.
            level: the share of outcomes that it should hold.
            options: as of other estimators.
        """
        return super().interval(X, level, **options)

    def paths(
        self, X: Any = None, count: int = 100, *, random_state: int | None = 0
    ) -> NDArray[np.float64]:
        r"""Draws joint paths of the next H values, ``(n, count, H)``.

        .. math:: y_h = F_h^{-1}(\Phi(\varepsilon_h)), \qquad \varepsilon \sim N(0, R)

        with R the correlation of the steps' normal scores on validation rows.

        Args:
            X: histories, as in ``fit``; None for those of the fit.
            count: paths of each series.
            random_state: of the draws.
        """
        given = self._given(X)
        outcome: Any = self.model_.outcome
        if outcome.copula is None:
            raise UsageError(f"{self.model_.likelihood.name} is a loss: it has no paths.")
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        generator = torch.Generator().manual_seed(seed)
        served = self.model_.predictive(given.rows)
        found: NDArray[np.float64] = sample_paths(served, outcome.copula, count, generator).numpy()
        return found

    def forecast(
        self,
        X: Any = None,
        levels: Sequence[float] = (0.9,),
        *,
        paths: int = 0,
        random_state: int = 0,
    ) -> pd.DataFrame:
        """Forecasts as a table: ``series, time, step, prediction, lower, upper``.

        Args:
            X: histories, as in ``fit``; None for those of the fit.
            levels: of the intervals; of several the bounds are ``lower_50``, ``upper_50`` and so
                on.
            paths: joint paths in further columns ``path_1``, ...
            random_state: of the paths.
        """
        rows: Any = self._given(X).rows
        drawn = self.paths(rows, paths, random_state=random_state) if paths else None
        found: pd.DataFrame = self._outcome().table(self.model_, rows, levels, drawn)
        return found

    def evaluate(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None, **options: Any
    ) -> dict[str, float | None]:
        """Computes every metric over all origins of some series, rolling.

        Args:
            X: series, as in ``fit``.
            y: refused: outcomes are in the series.
            sample_weight: refused, likewise.
            options: ignored.
        """
        if y is not None or sample_weight is not None:
            raise UsageError("evaluate takes series alone: their outcomes are in them.")
        check_is_fitted(self)
        rows: Any = (
            X
            if isinstance(X, Windows)
            else self._outcome().again(self.model_, X, future=False).rows
        )
        job = self._job(self.model_.task, rows, rows.outcomes(), reset=False, fitting=False)
        found: dict[str, float | None] = self.model_.evaluate(job)
        return found

    def report(self, X: Any, y: Any = None, path: Any = None, **options: Any) -> Any:
        """Writes the evidence of the model on all origins of some series.

        Args:
            X: series, as in ``fit``.
            y: not needed: outcomes are in the series.
            path: the file to write; None writes none.
            options: of :func:`ansatz.report.report_model`.
        """
        rows: Any = (
            X
            if isinstance(X, Windows)
            else self._outcome().again(self.model_, X, future=False).rows
        )
        return super().report(rows, rows.outcomes(), path, **options)
