"""Forecasts as outcomes: the next H values of a series, each with a likelihood of its own."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data.sequences.panel import Panel
from ansatz.data.sequences.windows import Windows
from ansatz.errors import DataError, UsageError
from ansatz.fitting.contracts.inference import Posterior, Predictive
from ansatz.fitting.contracts.outcome import Metrics
from ansatz.fitting.model import Given, Model
from ansatz.fitting.scores import evaluate_predictive
from ansatz.fitting.task import Settings
from ansatz.likelihoods import Likelihood
from ansatz.likelihoods.registry import registry as likelihood_registry
from ansatz.outcomes.path import copula_of
from ansatz.outcomes.quantity import Quantity
from ansatz.spec import TargetSpec

if TYPE_CHECKING:
    from ansatz.fitting.contracts.structure import Structure
    from ansatz.fitting.job import Job
    from ansatz.fitting.split import Parts
    from ansatz.fitting.task import Task

VALIDATION = 0.1  # of the steps, those before the test
LEVEL = 0.9  # of the intervals whose coverage is a metric


class Forecast(Quantity):
    """The next H values of a series: H numbers at once, with every likelihood of numbers.

    A row is an origin in a series. Outcomes of training, validation and test do not overlap: a
    window's outcomes lie on one side of each boundary.
    """

    name: ClassVar[str] = "forecast"
    estimator: ClassVar[str] = "ansatz.estimators.forecaster:Forecaster"
    report: ClassVar[str] = "ansatz.outcomes.report.forecast:ForecastReport"
    reader: ClassVar[str] = "ansatz.outcomes.forecast_reading:read_windows"
    unit: ClassVar[tuple[str, str] | None] = ("origin", "origins")
    plural: ClassVar[str] = "forecasts"
    settings: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        super().__init__()
        self.link = "identity"  # of the likelihood, which inputs are scaled for
        self.fill = 0.0  # stands for an outcome that was not observed
        self.reading: dict[str, Any] = {}  # how the table was read
        self.copula: Tensor | None = None  # (H, H) correlation of the steps' normal scores
        self.history: Panel | None = None  # the last windows, from which the future is forecast

    # Reading.

    def beside(self, y: Any, rows: Any) -> Any:
        """The H values after each origin."""
        return rows.outcomes() if isinstance(rows, Windows) else y

    def encode(self, y: Any, settings: Settings, *, reset: bool) -> tuple[NDArray[Any], TargetSpec]:
        values = np.asarray(y, dtype=np.float64)
        if values.ndim == 1 and self.shape and not reset:  # keys of columns alone
            return values, TargetSpec()
        seen = np.isfinite(values)
        self.link = likelihood_registry.get(settings.likelihood_name).link_name
        if reset:
            if likelihood_registry.get(settings.likelihood_name).event_ndim:
                raise UsageError(
                    f"{settings.likelihood_name} is a likelihood of vectors: forecasts have "
                    "one number at each step."
                )
            if not seen.any():
                raise DataError("no outcome after an origin was observed.")
            self.fill = float(values[seen][0])
        known = np.where(seen, values, self.fill)
        names = [f"+{k + 1}" for k in range(values.shape[1])]
        found, target = super().encode(known, settings, reset=reset)
        if reset:
            self.names = names
        if found.ndim == 1:
            found, target = found[:, None], TargetSpec(shape=(1,))
            self.shape, self.is_column = (1,), False
        return found, target

    def read(self, job: "Job") -> "Job":
        """Weights of steps where some were not observed; the link that inputs are scaled for."""
        rows: Any = job.rows
        if not isinstance(rows, Windows):
            raise UsageError("forecasts are of series: give a table with --time, or a Forecaster.")
        self.reading = dict(rows.reading)
        weights = rows.weights()
        weight = job.weight
        if not (weights == 1).all():
            weight = weight.reshape(-1, 1) * torch.from_numpy(weights)
        return job._replace(
            rows=rows.with_link(self.link), weight=weight, offset=None, time=rows.step
        )

    def plain(self, job: "Job") -> "Job":
        """One weight for a row where all its steps were observed."""
        weight = job.weight
        if weight.ndim > 1 and bool((weight == weight[:, :1]).all()):
            return job._replace(weight=weight[:, 0])
        return job

    def likelihood(self, settings: Settings, target: TargetSpec, *, few: bool) -> Likelihood:
        return settings.make_likelihood(few=False)

    def split(self, job: "Job", task: "Task", test: float) -> "Parts":
        """Rolling origins: the last share of the steps is the test, those before it validation."""
        from ansatz.fitting.split import Parts

        rows: Any = job.rows
        first, until = rows.step + 1, rows.step + rows.horizon  # of the outcomes
        validation, tested, end = self._boundaries(rows, test)
        inside = np.flatnonzero(until < validation)
        valid = np.flatnonzero((first >= validation) & (until < tested))
        whole = (job.weight > 0).reshape(len(first), -1).all(1).numpy()  # no gap in the outcomes
        tests = np.flatnonzero((first >= tested) & (until <= end) & whole)
        if not len(inside) or (test and not len(tests)):
            raise UsageError(
                f"horizon {rows.horizon}: the series have {end + 1} steps, too few for windows of "
                "training, validation and test. Take a shorter --horizon or another --test."
            )
        learn = np.sort(np.concatenate([inside, valid]))
        return Parts(learn, np.searchsorted(learn, valid), tests)

    def _boundaries(self, rows: Windows, test: float) -> tuple[int, int, int]:
        """The first steps of validation and test, and the last step of all."""
        panel = rows.panel
        first, end = int(panel.starts.min()), int((panel.starts + panel.last).max())
        if rows.parts:
            a, b, c = rows.parts
            return first + a, first + a + b, min(end, first + a + b + c - 1)
        steps = end - first + 1
        tested = end + 1 - round(test * steps)
        return tested - max(rows.horizon, round(VALIDATION * steps)), tested, end

    # Fitting.

    @classmethod
    def network(cls, structure: "Structure") -> str:
        """A linear map of the window beside a perceptron."""
        return "window"

    def baseline(
        self, structure: "Structure", likelihood: Likelihood, job: "Job", seed: int
    ) -> "tuple[Posterior | None, list[str]]":
        """The linear window of the same likelihood."""
        from ansatz.outcomes.forecast_baselines import fit_linear_window

        return fit_linear_window(structure, likelihood, job, seed), []

    def baselines(
        self, structure: "Structure", likelihood: Likelihood, job: "Job", seed: int
    ) -> "tuple[Mapping[str, Posterior], list[str]]":
        """Seasonal naive and last value with residual distributions; ETS and ARIMA."""
        from ansatz.outcomes.forecast_baselines import fit_baselines

        return fit_baselines(likelihood, job)

    def finish(self, model: Model, job: "Job") -> None:
        """The copula of the steps, from validation rows; the ends of the series."""
        rows: Any = job.rows
        valid = job.valid if job.valid is not None and len(job.valid) else np.arange(len(job.y))
        from ansatz.fitting.job import take, thinned

        kept = thinned(take(job, valid), 4_000)
        served = model.predictive(kept.rows, kept.offset, notes=[])
        self.copula = copula_of(served, kept.y, kept.weight)
        self.history = rows.panel.tail(rows.length)

    # Predictions.

    def evaluate(self, predictive: Predictive, y: Tensor, weight: Tensor | None = None) -> Metrics:
        """Metrics over all observed steps, and the share that 90 % intervals hold."""
        partial = weight is not None and weight.ndim > 1
        if not partial:
            found = evaluate_predictive(predictive, y, weight)
        else:
            assert weight is not None
            found = _evaluate_steps(predictive, y, weight)
        likelihood, raw = predictive
        if likelihood.has_distribution:
            with torch.no_grad():
                low, high = likelihood.distribution(raw).interval(LEVEL)
            inside = ((y >= low) & (y <= high)).double()
            mass = torch.ones_like(inside) if weight is None else weight.reshape(
                weight.shape + (1,) * (y.ndim - weight.ndim)
            ).expand_as(inside)  # fmt: skip
            found["coverage_90"] = float((inside * mass).sum() / mass.sum())
        return found

    def frame(self, model: Model, rows: Given, **options: Any) -> dict[str, Any]:
        """``prediction_+1``, ..., with bounds where asked for."""
        return super().frame(model, rows, **options)

    def windows(self, data: Any, reading: Mapping[str, Any]) -> Any:
        """The origins of a table, read by names of columns."""
        from ansatz.outcomes.forecast_reading import windows_of_table

        return windows_of_table(data, reading)

    def again(self, model: Model, data: Any, *, future: bool) -> Any:
        """The origins of a history; None for that of the fit."""
        from ansatz.outcomes.forecast_reading import again

        return again(model, data, future=future)

    def table(self, model: Model, rows: Any, levels: Any, paths: Any) -> Any:
        """Forecasts with a row for each series and step ahead."""
        from ansatz.outcomes.forecast_frame import forecast_frame

        return forecast_frame(model, rows, levels, paths)

    # On disk.

    def state(self) -> dict[str, Any]:
        found = {**super().state(), "fill": self.fill, "link": self.link, "reading": self.reading}
        if self.history is not None:
            panel = self.history
            found["history"] = {
                "clock": list(panel.clock),
                "names": [str(name) for name in panel.names],
                "offsets": panel.offsets.tolist(),
                "starts": panel.starts.tolist(),
                "past": panel.past_names,
                "known": panel.known_names,
                "exposure": panel.exposure is not None,
            }
        return found

    def tensors(self) -> dict[str, Tensor]:
        found = {} if self.copula is None else {"copula": self.copula}
        if self.history is not None:
            panel = self.history
            found["target"] = torch.from_numpy(np.array(panel.target))
            found["past"] = torch.from_numpy(np.array(panel.past))
            found["known"] = torch.from_numpy(np.array(panel.known))
            if panel.exposure is not None:
                found["exposure"] = torch.from_numpy(np.array(panel.exposure))
        return found

    def load(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        super().load(state, tensors)
        self.fill, self.copula = float(state["fill"]), tensors.get("copula")
        self.link, self.reading = str(state["link"]), dict(state["reading"])
        kept = state.get("history")
        if kept is None:
            return
        from ansatz.data.sequences.times import Clock

        target = tensors["target"].numpy()
        self.history = Panel(
            Clock(*kept["clock"]),
            list(kept["names"]),
            np.array(kept["offsets"]),
            np.array(kept["starts"]),
            target,
            tensors["past"].numpy(),
            tensors["known"].numpy(),
            tensors["exposure"].numpy() if kept["exposure"] else None,
            np.ones_like(target),
            list(kept["past"]),
            list(kept["known"]),
        )


def _evaluate_steps(predictive: Predictive, y: Tensor, weight: Tensor) -> Metrics:
    """Metrics of each step ahead over the rows where it was observed, and their weighted means."""
    likelihood, raw = predictive
    found: dict[str, float] = {}
    total = float(weight.sum())
    for name, values in _losses(likelihood, raw, y).items():
        found[name] = float(torch.where(weight > 0, values * weight, 0).sum()) / total
    error = torch.where(weight > 0, y - likelihood.point(raw), 0)
    found["rmse"] = float((weight * error.square()).sum() / total) ** 0.5
    found["mae"] = float((weight * error.abs()).sum() / total)
    mean = (weight * y).sum(0) / weight.sum(0).clamp(min=1e-12)
    centred = torch.where(weight > 0, y - mean, 0)
    variance = float((weight * centred.square()).sum() / total)
    metrics: Metrics = dict(found)
    metrics["r2"] = 1 - found["rmse"] ** 2 / variance if variance > 0 else None
    return metrics


def _losses(likelihood: Likelihood, raw: Tensor, y: Tensor) -> dict[str, Tensor]:
    """Losses of every outcome, ``(N, H)`` each."""
    with torch.no_grad():
        if not likelihood.has_distribution:
            return {"pinball": likelihood.loss(raw, y)}
        distribution = likelihood.distribution(raw)
        return {"nll": -distribution.log_prob(y), "crps": distribution.crps(y)}
