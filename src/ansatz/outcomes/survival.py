"""Times until an event as outcomes, some of them known only in part."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ansatz.data import Column
from ansatz.data.categorical import sort_levels, spelled
from ansatz.data.columns import stratum_codes
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.contracts.inference import Predictive
from ansatz.fitting.contracts.outcome import Metrics, Outcome
from ansatz.fitting.intervals import interval_of, refuse_others
from ansatz.fitting.job import Job
from ansatz.fitting.model import Given, Model
from ansatz.fitting.refits import out_of_fold
from ansatz.fitting.task import Settings
from ansatz.likelihoods import Cox, CurveDistribution, DiscreteHazard, Likelihood
from ansatz.likelihoods.cox import out_of_fold_log_risks
from ansatz.likelihoods.marginal import at_estimate
from ansatz.outcomes.cox_comparison import compare_with_cox
from ansatz.outcomes.survival_metrics import (
    Followed,
    evaluate_survival,
    hazard,
    log_survival_at,
    restricted_mean,
    risk_of,
)
from ansatz.outcomes.survival_times import (
    COLUMNS,
    survival_likelihood,
    survival_outcomes,
    survival_target,
)
from ansatz.spec import TargetSpec

CURVES = {  # outputs of an exported graph
    "survival": "P(T > t | x) at the times in 'times'",
    "incidence": "P(T <= t, event of this cause | x), (N, causes, times)",
}


CURVE_INTERVAL = (
    "the times at which the output 'survival' falls below (1 + level) / 2 and (1 - level) / 2; its "
    "times are in 'times'."
)


class SurvivalTime(Outcome):
    """The time until an event, perhaps censored or entered late, of one or several causes."""

    name: ClassVar[str] = "survival"
    estimator: ClassVar[str] = "ansatz.estimators.survival:SurvivalRegressor"
    plural: ClassVar[str] = "censored times"
    report: ClassVar[str] = "ansatz.outcomes.report.survival:SurvivalReport"
    is_censored: ClassVar[bool] = True
    frame_options: ClassVar[frozenset[str]] = frozenset({"times"})
    no_interval: ClassVar[str] = (
        "several causes have no interval; --times adds chances by each time."
    )
    labels = None
    outputs: ClassVar[Mapping[str, str]] = {**Outcome.outputs, **CURVES}
    intervals: ClassVar[Mapping[str, str]] = {"survival": CURVE_INTERVAL}
    followed: Followed

    def __init__(self) -> None:
        self.names: list[str] = []
        self.causes = 1
        self.strata: list[str] = []

    @classmethod
    def check_columns(
        cls,
        frame: pd.DataFrame,
        column_roles: ColumnRoles,
        likelihood: str,
        options: dict[str, Any],
        *,
        named: bool,
    ) -> None:
        found = column_roles.outcomes(frame)
        times = found if isinstance(found, pd.DataFrame) else found.to_frame("time")
        outcomes = survival_outcomes(times)
        made = survival_likelihood(likelihood, options, causes=int(outcomes[:, 2].max()))
        made.check(torch.from_numpy(survival_target(made, outcomes)))

    def encode(self, y: Any, settings: Settings, *, reset: bool) -> tuple[NDArray[Any], TargetSpec]:
        if isinstance(y, pd.DataFrame) and set(COLUMNS) <= set(y):
            outcomes = y[list(COLUMNS)].to_numpy(dtype=np.float64)
        else:
            made = isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 4
            outcomes = y if made else survival_outcomes(y)
        if reset:
            self.causes = max(1, int(outcomes[:, 2].max())) if len(outcomes) else 1
            self.names = [str(getattr(y, "attrs", {}).get("name", "time"))]
        likelihood = self.likelihood(settings, TargetSpec(event=(3,)), few=False)
        found = survival_target(likelihood, outcomes)
        strata = y["strata"] if isinstance(y, pd.DataFrame) and "strata" in y else None
        if reset:
            self.strata = [] if strata is None else sort_levels(spelled(strata)[1])
        if self.strata:
            found = np.column_stack([found, self._stratum(settings.likelihood_name, strata)])
        return found, TargetSpec(event=(found.shape[1],))

    def _stratum(self, likelihood: str, strata: Any) -> NDArray[np.int64]:
        """The code of each row's stratum; only Cox has baselines to choose from."""
        if likelihood != Cox.name:
            raise UsageError(f"strata go with likelihood cox, not with {likelihood}.")
        if strata is None:
            raise UsageError("the model has strata: the outcomes need the column of the strata.")
        column = Column(name=str(strata.name), role="stratum", levels=tuple(self.strata))
        codes = stratum_codes(strata.to_frame(), [column])
        assert codes is not None
        return codes

    def content(self, y: Tensor, settings: Settings) -> NDArray[Any]:
        """(lower, upper, entry) under every likelihood: some take (time, cause, entry)."""
        found: NDArray[Any] = y.numpy()
        if settings.likelihood_name not in ("cox", "discrete_hazard"):
            return found
        time, cause, entry = found[:, :3].T
        return np.stack([time, np.where(cause > 0, time, np.inf), entry], axis=1)

    def likelihood(self, settings: Settings, target: TargetSpec, *, few: bool) -> Likelihood:
        return survival_likelihood(
            settings.likelihood,
            settings.likelihood_options,
            causes=self.causes,
            constant_dispersion=few,
        )

    def begin(self, likelihood: Likelihood, job: Job) -> None:
        likelihood.check(job.y)
        self.followed = Followed.of(likelihood, job.y, job.weight)

    def finish(self, model: Model, job: Job) -> None:
        """Sets Cox's baseline hazard, from risks of rows that their own model did not train on.

        A linear model that is solved has too few coefficients for that to matter.
        """
        likelihood = model.likelihood
        if not isinstance(likelihood, Cox):
            return
        own = model.posterior.predictive(job.rows, job.offset, notes=[]).raw[:, 0]
        if model.linear:
            likelihood.set_baseline(own, job.y, job.weight)
        elif model.out_of_fold is not None:
            likelihood.set_baseline(model.out_of_fold.log_risks(model, job, own), job.y, job.weight)
        else:
            folds = out_of_fold(model, job)
            fair = out_of_fold_log_risks(
                own, ((ins, out, other[:, 0]) for ins, out, other in folds)
            )
            likelihood.set_baseline(fair, job.y, job.weight)

    def second_opinion(self, model: Model, learn: Job, test: Job) -> list[str]:
        """Compares the order of the test rows with that of the linear Cox model."""
        likelihood = model.likelihood
        if isinstance(likelihood, Cox) or self.causes > 1 or not model.structure.solves:
            return []
        served = model.predictive(test.rows, test.offset, notes=[])
        risk = risk_of(*served, self.followed.horizon)
        found = compare_with_cox(
            model.structure, served.likelihood, risk, learn, test, model.task.settings.seed
        )
        return [found.note] if found is not None and found.note else []

    # Predictions.

    def evaluate(self, predictive: Predictive, y: Tensor, weight: Tensor | None = None) -> Metrics:
        return evaluate_survival(*predictive, y, weight, self.followed)

    def point(self, predictive: Predictive) -> NDArray[np.float64]:
        self.refuse_causes(predictive, "predict_median", "predict_incidence")
        with torch.no_grad():
            own = at_estimate(predictive.likelihood, predictive.raw)
            found: NDArray[np.float64] = Predictive(*own).distribution.median.numpy()
        return found

    def answers(self, likelihood: Likelihood, raw: Tensor) -> dict[str, Tensor]:
        return survival_answers(likelihood, raw)

    def gather(self, y: Any, strata: ArrayLike | None = None, **known: ArrayLike | None) -> Any:
        found = survival_outcomes(y, **known)
        if strata is None:
            return found
        if len(found) != len(strata):  # type: ignore[arg-type]
            raise DataError(f"y must have one outcome per row: got {len(found)} outcomes.")
        names = np.asarray(strata, dtype=object)
        return pd.DataFrame(found, columns=list(COLUMNS)).assign(strata=names)

    def log_survival(self, predictive: Predictive, times: ArrayLike | None) -> NDArray[np.float64]:
        with torch.no_grad():
            found: NDArray[np.float64] = log_survival_at(
                predictive.distribution, self.times(times)
            ).numpy()
        return found

    def survival(self, predictive: Predictive, times: ArrayLike | None) -> NDArray[np.float64]:
        found: NDArray[np.float64] = np.exp(self.log_survival(predictive, times))
        return found

    def hazard(self, predictive: Predictive, times: ArrayLike | None) -> NDArray[np.float64]:
        """The rate of events at t among those still free of one, ``(N, len(times))``."""
        with torch.no_grad():
            distribution = predictive.distribution
            at = torch.tensor(self.times(times), dtype=distribution.mean.dtype)
            found: NDArray[np.float64] = hazard(distribution, at).numpy()
        return found

    def restricted_mean(self, predictive: Predictive, horizon: float | None) -> NDArray[np.float64]:
        """E[min(T, horizon) | x], ``(N,)``; the horizon is the last event of the fit if None."""
        end = self.followed.horizon if horizon is None else float(horizon)
        if not end > 0:
            raise UsageError(f"horizon must be positive, got {horizon}.")
        with torch.no_grad():
            found: NDArray[np.float64] = restricted_mean(predictive.distribution, end).numpy()
        return found

    def incidence(
        self, predictive: Predictive, times: ArrayLike | None, cause: int = 1
    ) -> NDArray[np.float64]:
        """P(T <= t and the event is of this cause | x), ``(N, len(times))``."""
        likelihood, raw = predictive
        causes = getattr(likelihood, "causes", 1)
        if not 1 <= cause <= causes:
            raise UsageError(f"cause must be one of 1 to {causes}, got {cause}.")
        if not isinstance(likelihood, DiscreteHazard):
            return 1 - self.survival(predictive, times)
        at = torch.tensor(self.times(times), dtype=raw.dtype)
        with torch.no_grad():
            found: NDArray[np.float64] = likelihood.incidence(raw, at, cause).numpy()
        return found

    def risk(self, predictive: Predictive) -> NDArray[np.float64]:
        found: NDArray[np.float64] = risk_of(*predictive, self.followed.horizon).numpy()
        return found

    def times(self, times: ArrayLike | None) -> list[float]:
        """Times as a list of numbers; None is a grid up to the last event of the fit."""
        if times is None:
            times = np.linspace(0, self.followed.horizon, 101)[1:]
        found = np.atleast_1d(np.asarray(times, dtype=np.float64))
        if found.ndim != 1 or not len(found) or not np.isfinite(found).all():
            raise UsageError(f"times must be a list of numbers, got {times!r}.")
        return [float(time) for time in found]

    def refuse_causes(self, predictive: Predictive, what: str, instead: str) -> None:
        """Refuses what several causes have no meaning for."""
        causes = getattr(predictive.likelihood, "causes", 1)
        if causes > 1:
            raise UsageError(f"with {causes} causes {what} has no meaning of its own: {instead}.")

    def has_interval(self, likelihood: Likelihood) -> bool:
        return likelihood.has_distribution and int(getattr(likelihood, "causes", 1)) == 1

    def frame(self, model: Model, rows: Given, **options: Any) -> dict[str, Any]:
        """``prediction`` (the median), ``lower``, ``upper``, ``risk``; curves at ``times``.

        With several causes: ``incidence_<cause>`` by the last event of the fit, and with ``times``
        also ``incidence_<cause>_<time>``.
        """
        times, interval = options.pop("times", None), options.pop("interval", None)
        method = options.pop("method", "predictive")
        refuse_others(options)
        served = model.predictive(rows.rows, rows.offset)
        columns: dict[str, Any] = {}
        causes = getattr(served.likelihood, "causes", 1)
        if causes == 1:
            columns["prediction"] = self.point(served)
            if interval is not None:
                bounds = interval_of(model, served, interval, method=method)
                columns["lower"], columns["upper"] = bounds[:, 0], bounds[:, 1]
            columns["risk"] = self.risk(served)
        else:
            for cause in range(1, causes + 1):
                chance = self.incidence(served, [self.followed.horizon], cause)
                columns[f"incidence_{cause}"] = chance[:, 0]
        return columns if times is None else columns | self._at(served, times, causes)

    def _at(self, served: Predictive, times: ArrayLike, causes: int) -> dict[str, Any]:
        labels = [f"{time:.15g}" for time in self.times(times)]
        curves = {"survival": self.survival(served, times)}
        if causes > 1:
            for cause in range(1, causes + 1):
                curves[f"incidence_{cause}"] = self.incidence(served, times, cause)
        return {
            f"{name}_{label}": curve[:, k]
            for name, curve in curves.items()
            for k, label in enumerate(labels)
        }

    # On disk.

    def target(self, likelihood: Likelihood) -> TargetSpec:
        return TargetSpec(event=(4 if self.strata else 3,))

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = {"names": self.names, "causes": self.causes}
        return {**found, "strata": self.strata} if self.strata else found

    def tensors(self) -> dict[str, Tensor]:
        return self.followed.tensors()  # scores of censored rows need the training rows' censoring

    def load(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.names, self.causes = list(state["names"]), int(state["causes"])
        self.strata = [str(level) for level in state.get("strata", [])]
        self.followed = Followed.of_tensors(dict(tensors))


def survival_answers(likelihood: Likelihood, raw: Tensor) -> dict[str, Tensor]:
    """Medians; of likelihoods without a formula the curves at their times, too."""
    distribution = Predictive(*at_estimate(likelihood, raw)).distribution
    if not isinstance(distribution, CurveDistribution):
        return {"prediction": distribution.median}
    found = {"survival": distribution.survival}
    if isinstance(likelihood, DiscreteHazard) and likelihood.causes > 1:
        by_cause = [
            likelihood.incidence(raw, likelihood.cuts, cause)
            for cause in range(1, likelihood.causes + 1)
        ]
        return {**found, "incidence": torch.stack(by_cause, 1)}  # (N, causes, T)
    return {"prediction": curve_median(distribution), **found}


def curve_median(curve: CurveDistribution) -> Tensor:
    """The first time at which survival is one half, without a search in a sorted list."""
    hazard, knots, slope = curve.hazard, curve.knots, curve.slope  # (N, T + 1), (T + 1,)
    half = torch.tensor(math.log(2), dtype=hazard.dtype)
    place = (hazard < half).sum(-1)  # of the first knot with H >= log 2
    if curve.interpolation == "step":
        return torch.cat([knots, knots.new_full((1,), math.inf)])[place]
    before = (place - 1).clamp(min=0)
    at = before.unsqueeze(-1)
    level, rise = hazard.gather(-1, at).squeeze(-1), slope.gather(-1, at).squeeze(-1)
    return knots[before] + (half - level).clamp(min=0) / rise
