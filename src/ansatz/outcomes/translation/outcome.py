"""A text as outcome: a translation, a caption."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz import likelihoods
from ansatz.data.keys import text_keys
from ansatz.errors import UsageError
from ansatz.fitting.contracts.inference import Posterior, Predictive
from ansatz.fitting.contracts.outcome import Metrics, Outcome
from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.job import Job
from ansatz.fitting.model import Given, Model
from ansatz.fitting.task import Settings
from ansatz.likelihoods import Distribution, Likelihood
from ansatz.outcomes.translation.baselines import nearest, unigram
from ansatz.outcomes.translation.search import translations
from ansatz.spec import TargetSpec


class Translation(Outcome):
    """A text that is written after a source was read.

    A text is known by a hash of it; its tokens stand beside the source, because the network
    predicts each from those before it.
    """

    name: ClassVar[str] = "translate"
    estimator: ClassVar[str] = "ansatz.estimators.translator:Translator"
    candidates: ClassVar[tuple[str, ...]] = ("autoregressive",)
    report: ClassVar[str] = "ansatz.outcomes.report.texts:TranslationReport"
    plural: ClassVar[str] = "texts"
    is_quantity: ClassVar[bool] = False
    outputs: ClassVar[Mapping[str, str]] = {"prediction": "the log-probability of the text"}
    no_interval: ClassVar[str] = "texts have no interval; log_prob shows how sure the model is."
    labels: None = None

    def __init__(self) -> None:
        self.names: list[str] = ["target"]

    def encode(self, y: Any, settings: Settings, *, reset: bool) -> tuple[NDArray[Any], TargetSpec]:
        if hasattr(y, "columns"):
            if reset:
                self.names = [str(name) for name in y.columns]
            y = y.iloc[:, 0]
        elif reset and getattr(y, "name", None) is not None:
            self.names = [str(y.name)]
        keys = text_keys([text if isinstance(text, str) else "" for text in y])
        return (keys >> np.uint64(12)).astype(np.int64), TargetSpec()

    def likelihood(self, settings: Settings, target: TargetSpec, *, few: bool) -> Likelihood:
        likelihood = settings.likelihood
        if isinstance(likelihood, str):
            likelihood = likelihoods.create(likelihood, **dict(settings.likelihood_options))
        if likelihood.name != "autoregressive":
            raise UsageError(f"{likelihood.name} is not a likelihood of texts: autoregressive is.")
        made: Likelihood = likelihood
        return made

    def constant(
        self, model: Model, likelihood: Likelihood, learn: Job, test: Job
    ) -> Predictive | None:
        return unigram(model.encoder, likelihood, learn.rows, test.rows)  # type: ignore[arg-type]

    def baselines(
        self, structure: Structure, likelihood: Likelihood, job: Job, seed: int
    ) -> tuple[Mapping[str, Posterior], list[str]]:
        found: Any = nearest(likelihood, job.rows)  # type: ignore[arg-type]
        return ({} if found is None else {"nearest": found}), []

    # Predictions.

    def distribution(self, predictive: Predictive, y: Tensor) -> tuple[Distribution | None, Tensor]:
        return None, y

    def evaluate(self, predictive: Predictive, y: Tensor, weight: Tensor | None = None) -> Metrics:
        """Nats per token, and per text."""
        total, _, tokens = predictive.raw.double().unbind(-1)
        rows = torch.ones_like(total) if weight is None else weight.double()
        nll = float(-(rows * total).sum() / (rows * tokens).sum())
        if math.isnan(nll):
            return {}
        text = float(-(rows * total).sum() / rows.sum())
        return {"nll": nll, "perplexity": math.exp(min(nll, 700)), "nll_text": text}

    def measure(self, posterior: Posterior, rows: Any) -> Metrics:
        """BLEU and chrF of the texts that a beam search finds, and the share that is exact."""
        from ansatz.outcomes.translation.scores import corpus_scores

        if rows.targets is None or not len(rows):
            return {}
        found = [each.text for each in translations(posterior, rows)]
        return corpus_scores(found, rows.targets.texts.tolist())

    def point(self, predictive: Predictive) -> NDArray[Any]:
        found: NDArray[Any] = predictive.raw[..., 0].numpy()
        return found

    def estimate(self, predictive: Predictive, y: Tensor) -> Tensor:
        return predictive.raw[..., 0]

    def frame(self, model: Model, rows: Given, **options: Any) -> dict[str, Any]:
        found = translations(model.posterior, rows.rows)  # type: ignore[arg-type]
        return {
            "prediction": [each.text for each in found],
            "log_prob": [each.log_prob for each in found],
        }

    # On disk.

    def target(self, likelihood: Likelihood) -> TargetSpec:
        return TargetSpec()

    def state(self) -> dict[str, Any]:
        return {"names": self.names}

    def load(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.names = list(state["names"])
