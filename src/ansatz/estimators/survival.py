"""Times until an event as outcomes, some of them known only in part."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.inference.ensemble_model import EnsembleModel
from ansatz.fitting.job import Job
from ansatz.likelihoods.log_risk import fair_log_risks, log_mean_risk
from ansatz.fitting.recipe_options import Augment
from ansatz.fitting.refits import out_of_fold
from ansatz.outcomes.survival_metrics import Followed, judge_survival
from ansatz.outcomes.survival_law import survival_law, survival_target
from ansatz.outcomes.survival_times import survival_outcomes
from ansatz.estimators.survival_predictions import SurvivalPredictions
from ansatz.likelihoods import Cox, Likelihood
from ansatz.spec import TargetSpec

if TYPE_CHECKING:
    from ansatz.inference.fit_ensemble import OutOfFold


class SurvivalRegressor(SurvivalPredictions):
    """A network, or a linear model, of the time until an event.

    Rows may be censored on the right, on the left or to an interval, and may have entered late;
    rows of one subject with changing features are given as (entry, time] pieces. Censoring is
    taken to be independent of the time given x.

    Args:
        likelihood: ``"weibull"``, ``"log_normal"``, ``"gamma"``, ``"exponential"`` or any other
            law of numbers; ``"cox"`` for proportional hazards with a free baseline;
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
        bins: pieces into which the range of each number is cut, as features beside the number, so
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

    def __init__(
        self,
        likelihood: str | Likelihood = "weibull",
        *,
        likelihood_options: Mapping[str, Any] | None = None,
        x: Literal["auto", "vector", "grid"] = "auto",
        network: str | nn.Module = "auto",
        inference: Literal["point", "ensemble"] = "point",
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
        super().__init__(
            likelihood,
            likelihood_options=likelihood_options,
            x=x,
            network=network,
            inference=inference,
            members=members,
            widths=widths,
            activation=activation,
            dropout=dropout,
            network_options=network_options,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            holdout=holdout,
            quantile=quantile,
            bins=bins,
            augment=augment,
            pretrained=pretrained,
            freeze=freeze,
            warm_start=warm_start,
            random_state=random_state,
            n_jobs=n_jobs,
            device=device,
            time_limit=time_limit,
            verbose=verbose,
        )

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
        outcomes = survival_outcomes(y, event=event, entry=entry, upper=upper)
        return self._fit_job(self._read(X, outcomes, sample_weight, offset, groups=groups))

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
        if self._law_name() == "cox":
            raise UsageError("cox compares rows with all others: it has no partial_fit, use fit.")
        first = not hasattr(self, "model_")
        outcomes = survival_outcomes(y, event=event, entry=entry, upper=upper)
        job = self._read(X, outcomes, sample_weight, offset, reset=first)
        if first:
            self.followed_ = Followed.of(self._law_of(job.target), job.y, job.weight)
        return self._partial_fit_job(job, first=first)

    # What the common estimator asks.

    def _encode(self, y: Any, *, reset: bool) -> tuple[NDArray[Any], TargetSpec]:
        made = isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 4
        outcomes = y if made else survival_outcomes(y)
        if reset:
            self._causes = max(1, int(outcomes[:, 2].max())) if len(outcomes) else 1
            attributes = getattr(y, "attrs", {})
            self.target_names_ = [str(attributes.get("name", "time"))]
            self._y_is_column, self._target_shape = False, (3,)
        target = TargetSpec(event=(3,))
        return survival_target(self._law(target), outcomes), target

    def _event_axes(self) -> int:
        return 1

    def _law(self, target: TargetSpec, rows: float = math.inf) -> Likelihood:
        if not isinstance(self.likelihood, str) and self.likelihood_options:
            raise UsageError("likelihood_options go with a likelihood by name, not a made one.")
        few = rows < self._too_few() or self.network == "linear"
        return survival_law(
            self.likelihood,
            self.likelihood_options,
            causes=self._causes,
            constant_dispersion=few,
        )

    def _judge(
        self, likelihood: Likelihood, raw: Tensor, y: Tensor, weight: Tensor | None = None
    ) -> dict[str, float | None]:
        return judge_survival(likelihood, raw, y, weight, self.followed_)

    def _fit_job(self, job: Job) -> Self:
        law = self._law_of(job.target, float(job.weight.sum()))
        law.check(job.y)
        self.followed_ = Followed.of(law, job.y, job.weight)
        super()._fit_job(job)
        if isinstance(law, Cox):
            log_risk = self._fair_log_risks(job)
            fitted = self.model_.objective.likelihood
            assert isinstance(fitted, Cox)
            fitted.set_baseline(log_risk, job.y, job.weight)
        return self

    def _fair_log_risks(self, job: Job) -> Tensor:
        """Log-risks for the baseline hazard, of rows that their own model did not learn from.

        A linear model of a table has too few coefficients for that to matter.
        """
        raw = self.model_.raw(job.rows, job.offset, notes=[])[:, 0]
        if hasattr(self, "linear_"):
            return raw
        if isinstance(self.model_, EnsembleModel):
            return _fair_members(self.model_, job, raw, self._judged)
        folds = out_of_fold(self, job)
        return fair_log_risks(raw, ((ins, out, other[:, 0]) for ins, out, other in folds))


def _fair_members(model: EnsembleModel, job: Job, served: Tensor, judged: "OutOfFold") -> Tensor:
    """Each row's log-risk by the members that left it out, on the level of the whole ensemble."""
    raws = torch.stack([raw[:, 0] for raw in model.member_raws(job.rows, job.offset, notes=[])], 1)
    levels = torch.stack([log_mean_risk(column) for column in raws.unbind(1)])
    raws = raws - levels + log_mean_risk(served)
    seen = (judged.who >= 0).all(1)
    weights = judged.weights[: judged.who.shape[1]]
    fair = served.clone()
    fair[seen] = raws.gather(1, judged.who.clamp(min=0))[seen] @ (weights / weights.sum())
    return fair
