"""The part of a text that answers a question, as outcome."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz import likelihoods
from ansatz.errors import DataError, UsageError
from ansatz.fitting.contracts.inference import Posterior, Predictive
from ansatz.fitting.contracts.outcome import Metrics, Outcome
from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.job import Job
from ansatz.fitting.model import Given, Model
from ansatz.fitting.task import Settings
from ansatz.likelihoods import Distribution, Likelihood
from ansatz.outcomes.answer.scores import answer_scores
from ansatz.outcomes.answer.window import BestWindow
from ansatz.spec import TargetSpec


class Answer(Outcome):
    """The first and the last word of an answer in its context."""

    name: ClassVar[str] = "answer"
    estimator: ClassVar[str] = "ansatz.estimators.span_finder:SpanFinder"
    candidates: ClassVar[tuple[str, ...]] = ("span",)
    report: ClassVar[str] = "ansatz.outcomes.report.texts:AnswerReport"
    plural: ClassVar[str] = "answers"
    is_quantity: ClassVar[bool] = False
    outputs: ClassVar[Mapping[str, str]] = {"prediction": "the first and the last word"}
    no_interval: ClassVar[str] = "answers have no interval; log_prob shows how sure the model is."
    labels: None = None

    def __init__(self) -> None:
        self.names: list[str] = ["answer"]

    def encode(self, y: Any, settings: Settings, *, reset: bool) -> tuple[NDArray[Any], TargetSpec]:
        y = y.iloc[:, 0] if hasattr(y, "columns") else y
        spans = np.array([list(span) for span in y], dtype=np.int64)
        if spans.ndim != 2 or spans.shape[1] != 2:
            raise DataError(f"answers need a first and a last word each, got {spans.shape}.")
        return spans, TargetSpec(event=(2,))

    def likelihood(self, settings: Settings, target: TargetSpec, *, few: bool) -> Likelihood:
        likelihood = settings.likelihood
        if isinstance(likelihood, str):
            likelihood = likelihoods.create(likelihood, **dict(settings.likelihood_options))
        if likelihood.name != "span":
            raise UsageError(f"{likelihood.name} is not a likelihood of answers: span is.")
        made: Likelihood = likelihood
        return made

    def constant(
        self, model: Model, likelihood: Likelihood, learn: Job, test: Job
    ) -> Predictive | None:
        """Every word of a context alike."""
        raw = model.posterior.predictive(test.rows, notes=[]).raw
        return Predictive(likelihood, torch.where(raw > -5e3, 0.0, raw))

    def baselines(
        self, structure: Structure, likelihood: Likelihood, job: Job, seed: int
    ) -> tuple[Mapping[str, Posterior], list[str]]:
        found: Any = BestWindow(likelihood, job.rows)  # type: ignore[arg-type]
        return {"window": found}, []

    # Predictions.

    def distribution(self, predictive: Predictive, y: Tensor) -> tuple[Distribution | None, Tensor]:
        return None, y

    def evaluate(self, predictive: Predictive, y: Tensor, weight: Tensor | None = None) -> Metrics:
        """Nats per answer."""
        if bool(predictive.raw.isnan().any()):
            return {}
        losses = predictive.likelihood.loss(predictive.raw, y)
        rows = torch.ones_like(losses) if weight is None else weight.to(losses)
        nll = float((rows * losses).sum() / rows.sum())
        return {"nll": None if math.isnan(nll) else nll}

    def row_losses(self, predictive: Predictive, y: Tensor) -> Tensor:
        """Nats of each answer; nan where a model has no probabilities."""
        if bool(predictive.raw.isnan().any()):
            return torch.full((len(y),), torch.nan, dtype=torch.float64)
        return super().row_losses(predictive, y)

    def measure(self, posterior: Posterior, rows: Any) -> Metrics:
        """Exact match and F1 of the texts."""
        if rows.answers is None or not len(rows):
            return {}
        return answer_scores(self.texts(posterior, rows), list(rows.answers))

    def texts(self, posterior: Posterior, rows: Any) -> list[str]:
        """The answers that a posterior finds."""
        return texts_of(rows, spans_of(posterior, rows))

    def point(self, predictive: Predictive) -> NDArray[Any]:
        found: NDArray[Any] = predictive.likelihood.point(predictive.raw).numpy()
        return found

    def frame(self, model: Model, rows: Given, **options: Any) -> dict[str, Any]:
        served = model.predictive(rows.rows, notes=[])
        spans = served.likelihood.point(served.raw)
        log_prob = -served.likelihood.loss(served.raw, spans)
        found = texts_of(rows.rows, spans.numpy())
        first, last = spans.unbind(1)
        return {
            "prediction": found,
            "first_word": first.numpy(),
            "last_word": last.numpy(),
            "log_prob": log_prob.numpy(),
        }

    # On disk.

    def target(self, likelihood: Likelihood) -> TargetSpec:
        return TargetSpec(event=(2,))

    def state(self) -> dict[str, Any]:
        return {"names": self.names}

    def load(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.names = list(state["names"])


def spans_of(posterior: Any, rows: Any) -> NDArray[Any]:
    """The first and the last word of each answer, ``(N, 2)``."""
    own = getattr(posterior, "spans", None)
    if own is not None:
        found: NDArray[Any] = own(rows)
        return found
    likelihood, raw = posterior.predictive(rows, notes=[])
    places: NDArray[Any] = likelihood.point(raw).numpy()
    return places


def texts_of(rows: Any, spans: NDArray[Any]) -> list[str]:
    """The texts of spans."""
    return [rows.text(row, int(a), int(b)) for row, (a, b) in enumerate(spans)]
