"""Times until an event as outcomes, some of them known only in part."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import nn

from ansatz import outcomes
from ansatz.errors import UsageError
from ansatz.estimators.estimator import Estimator, Fitted
from ansatz.fitting.recipe import Augment
from ansatz.likelihoods import Likelihood


class SurvivalRegressor(Estimator):
    """A network, or a linear model, of the time until an event.

    Rows may be censored on the right, on the left or to an interval, and may have entered late;
    rows of one subject with changing features are given as (entry, time] rows. Censoring is
    taken to be independent of the time given x.

    Args:
        likelihood: ``"weibull"``, ``"log_normal"``, ``"gamma"``, ``"exponential"`` or any other
            likelihood of numbers; ``"cox"`` for proportional hazards with a free baseline;
            ``"discrete_hazard"`` for free hazards and for several causes; or an instance.
        likelihood_options: options of a likelihood given by name.
        x: what X looks like: ``"auto"`` tells tables from signals, images and volumes by the axes
            of arrays and the names of files; ``"grid"`` takes the rows of a table as signals.
        network: by name (``"mlp"``, ``"linear"``, ``"lenet5"``, ...), or a module; ``"auto"`` takes
            the default of what X looks like.
        inference: ``"point"``: one weight vector, the penalised maximum-likelihood estimate;
            ``"ensemble"``: the mixture of several that stop on different rows.
        members: networks of an ensemble; ten if not given, five beyond 50,000 rows.
        widths: hidden units per layer.
        activation: of the hidden layers.
        dropout: share of hidden units dropped in training.
        network_options: further options of the network's factory.
        epochs: passes over the rows, in place of the recipe's budget.
        batch_size: rows per step; 0 takes all rows at once.
        learning_rate: peak rate of AdamW.
        weight_decay: decoupled, on matrices.
        holdout: share of the rows that decide when to stop; 0 for none.
        quantile: True, or the columns, whose heavy tails are mapped to normal scores.
        bins: number of bins into which the range of each number is cut, as features beside the number, so
            that a network can bend sharply; by default 32 from 10,000 rows on (fewer where columns
            are many), 0 for none.
        augment: whether grids are varied at random while they are learned from (shifted, turned,
            flipped, as their shape allows), or how: ``[Flip(), Noise(0.1)]`` or ``"flip,noise"``
            of :mod:`ansatz.data.augmentation`; None does what the recipe says.
        pretrained: a file of weights, ``.safetensors`` or ``.pth``, that the network begins with.
        freeze: ``"backbone"`` trains the last layer alone; a number freezes so many groups of
            layers from the input on; a list of epochs wakes one group at each, the last first.
        warm_start: begin the next ``fit`` at the weights of the last.
        random_state: one seed decides split, initial weights, order and dropout. None draws it
            from numpy's global generator.
        n_jobs: threads; None chooses by the network's size.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
        time_limit: seconds after which training stops with the best weights so far.
        verbose: 0 silent, 1 a progress bar, 2 one line per evaluation.

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
    followed_ = Fitted(lambda model: model.of_times.followed)

    def __init__(
        self,
        likelihood: str | Likelihood = "weibull",
        *,
        likelihood_options: Mapping[str, Any] | None = None,
        x: str = "auto",
        network: str | nn.Module = "auto",
        inference: str = "point",
        members: int | None = None,
        widths: Sequence[int] | None = None,
        activation: str | None = None,
        dropout: float | None = None,
        network_options: Mapping[str, Any] | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        holdout: float | None = None,
        quantile: bool | Sequence[str] = False,
        bins: int | None = None,
        augment: Augment | None = None,
        pretrained: str | Path | None = None,
        freeze: str | int | Sequence[int] | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
        device: str = "auto",
        time_limit: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.likelihood = likelihood
        self.likelihood_options = likelihood_options
        self.x = x
        self.network = network
        self.inference = inference
        self.members = members
        self.widths = widths
        self.activation = activation
        self.dropout = dropout
        self.network_options = network_options
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.holdout = holdout
        self.quantile = quantile
        self.bins = bins
        self.augment = augment
        self.pretrained = pretrained
        self.freeze = freeze
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.time_limit = time_limit
        self.verbose = verbose

    def fit(  # type: ignore[override]  # times have more to tell than one number
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
        """
        times = self._times(y, event=event, entry=entry, upper=upper)
        return self._fit(*self._begin(X, times, sample_weight, offset, groups=groups))

    def _times(self, y: Any, **known: ArrayLike | None) -> NDArray[np.float64]:
        """Times with what is known of them, as one array."""
        found: NDArray[np.float64] = outcomes.create(self.outcome).gather(y, **known)
        return found

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
        """One pass over the rows, from where the last call left weights and optimiser.

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
        """The time at which the survival curve falls to one half.

        Args:
            X: rows as in ``fit``.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        return self.predict(X, offset=offset)

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
        served = self._served(X, offset)
        found: NDArray[np.float64] = -self.model_.of_times.log_survival(served, times)
        return found

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
        served = self._served(X, offset)
        found: NDArray[np.float64] = self.model_.of_times.hazard(served, times)
        return found

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
        served = self._served(X, offset)
        found: NDArray[np.float64] = self.model_.of_times.restricted_mean(served, horizon)
        return found

    def predict_risk(self, X: Any, *, offset: ArrayLike | None = None) -> NDArray[np.float64]:
        """A number that orders rows, higher for earlier events: the log-risk of a Cox model.

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
        """P(T <= t and the event is of this cause | x), ``(N, len(times))``.

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
