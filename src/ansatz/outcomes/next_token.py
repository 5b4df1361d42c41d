"""The next token of a text, or a hidden one, as outcome: language models."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz import likelihoods
from ansatz.data.batch import UNLABELLED
from ansatz.data.sequences.passages import Passages
from ansatz.data.sequences.spelling import bytes_of
from ansatz.errors import DataError, UsageError
from ansatz.fitting.contracts.inference import Posterior, Predictive
from ansatz.fitting.contracts.outcome import Metrics, Outcome, labels_of, plain_labels
from ansatz.fitting.job import Job
from ansatz.fitting.model import Given, Model, PointPosterior, Trained
from ansatz.fitting.task import Settings, Task
from ansatz.likelihoods import Distribution, Likelihood
from ansatz.networks import NGram
from ansatz.spec import TargetSpec
from ansatz.training import Supervised

if TYPE_CHECKING:
    import pandas as pd

    from ansatz.fitting.column_roles import ColumnRoles
    from ansatz.fitting.contracts.structure import LinearBaseline, Structure
    from ansatz.fitting.split import Parts
    from ansatz.training import Penalty

NUMBERS = 100_000_000  # probabilities of the test tokens that are held at once
LONG, SHORT = 7, 4  # orders of the n-gram models of small and of large vocabularies
FEW = 1_000


class NextToken(Outcome):
    """Each token of a document, given those before it."""

    name: ClassVar[str] = "language"
    estimator: ClassVar[str] = "ansatz.estimators.language_model:LanguageModel"
    report: ClassVar[str] = "ansatz.outcomes.report.language:LanguageReport"
    plural: ClassVar[str] = "tokens"
    labels_are: ClassVar[str] = "tokens"
    axis: ClassVar[str] = "element"
    is_quantity: ClassVar[bool] = False
    test_share: ClassVar[float] = 0.1
    solved: ClassVar[frozenset[str]] = frozenset({"ngram"})
    candidates: ClassVar[tuple[str, ...]] = ("categorical",)
    no_interval: ClassVar[str] = "tokens have no interval; surprise shows how sure the model is."
    labels: NDArray[Any]

    def __init__(self) -> None:
        self.names: list[str] = ["token"]
        self.bytes: Tensor | None = None  # of each token; None where spaces are lost
        self.order: int | None = None

    # Reading.

    @classmethod
    def known(cls, frame: "pd.DataFrame", column_roles: "ColumnRoles") -> NDArray[np.bool_]:
        return np.ones(len(frame), dtype=bool)

    def encode(self, y: Any, settings: Settings, *, reset: bool) -> tuple[NDArray[Any], TargetSpec]:
        if not isinstance(y, Passages):
            raise DataError("a language model is fitted to texts: LanguageModel().fit(texts).")
        if reset:
            self.labels = np.array(y.tokens.names)
            self.bytes = bytes_of(y.tokens)
            self.order = settings.network_options.get("order")
        target = TargetSpec(shape=(y.stride,), classes=len(self.labels), axis="element")
        codes: NDArray[Any] = y.targets().numpy()
        return codes, target

    def split(self, job: Job, task: Task, test: float) -> "Parts | None":
        """By the place in the stream, or whole documents; of many probabilities a sample."""
        from ansatz.fitting.split import Parts

        rows: Any = job.rows
        part = rows.part.numpy()
        learn, tested = np.flatnonzero(part < 2), np.flatnonzero(part == 2)
        valid = np.flatnonzero(part[learn] == 1)
        most = max(1, NUMBERS // (len(self.labels) * rows.stride))
        if len(tested) > most:
            tested = tested[np.linspace(0, len(tested) - 1, most).astype(int)]
        return Parts(learn, valid[:0] if task.is_solved(job) else valid, tested)

    # Fitting.

    def likelihood(self, settings: Settings, target: TargetSpec, *, few: bool) -> Likelihood:
        likelihood = settings.likelihood
        if isinstance(likelihood, str):
            likelihood = likelihoods.create(likelihood, **settings.likelihood_options)
        if likelihood.name != "categorical":
            raise UsageError(f"tokens are categorical, not {likelihood.name}.")
        made: Likelihood = likelihood
        return made

    @classmethod
    def network_options(cls, network: str | nn.Module) -> dict[str, Any]:
        """An answer at each token."""
        return {"each": True}

    def baselines(
        self, structure: "Structure", likelihood: Likelihood, job: Job, seed: int
    ) -> tuple[Mapping[str, Posterior], list[str]]:
        """Interpolated Kneser-Ney."""
        return {"ngram": self._counted(structure, likelihood, job)}, []

    def solve(
        self,
        structure: "Structure",
        likelihood: Likelihood,
        job: Job,
        penalty: "Penalty | None" = None,
    ) -> "LinearBaseline":
        """Interpolated Kneser-Ney, which counts."""
        from ansatz.fitting.contracts.structure import LinearBaseline

        return LinearBaseline(self._counted(structure, likelihood, job), [])

    def _counted(self, structure: "Structure", likelihood: Likelihood, job: Job) -> PointPosterior:
        rows: Any = job.rows
        V = rows.tokens.size
        order = self.order or (LONG if V < FEW else SHORT)
        network = NGram(rows.spec, V, order=order).double()
        runs = rows.runs()
        begin = torch.zeros(len(rows.codes), dtype=torch.long)
        for run in runs:
            begin[run.begin : run.stop] = run.begin
        network.count(rows.codes, begin, torch.cat([torch.arange(r.start, r.stop) for r in runs]))
        likelihood.outputs(job.target)
        objective = Supervised(likelihood, torch.zeros(V), torch.ones(V), axis=1)
        encoder = structure.encoder(rows, job.weight.numpy(), None, {})  # type: ignore[arg-type]
        trained = Trained(network, objective, "ngram", network.options, encoder.dtype)
        return PointPosterior(structure, encoder, trained)

    # Predictions.

    def distribution(self, predictive: Predictive, y: Tensor) -> tuple[Distribution | None, Tensor]:
        return None, y

    def surprise(self, predictive: Predictive, y: Tensor) -> Tensor:
        """-log p of each token in nats, ``(N, stride)``, 0 past the end of a passage."""
        likelihood, raw = predictive
        with torch.no_grad():
            losses = likelihood.loss(raw, y.clamp(min=0))
        return torch.where(y != UNLABELLED, losses.double(), 0)

    def row_losses(self, predictive: Predictive, y: Tensor) -> Tensor:
        """The mean negative log-likelihood of the tokens of each passage."""
        return self.surprise(predictive, y).sum(1) / (y != UNLABELLED).sum(1).clamp(min=1)

    def estimate(self, predictive: Predictive, y: Tensor) -> Tensor:
        return predictive.raw.argmax(-1)

    def point(self, predictive: Predictive) -> NDArray[Any]:
        found: NDArray[Any] = self.labels[predictive.raw.argmax(-1).numpy()]
        return found

    def evaluate(self, predictive: Predictive, y: Tensor, weight: Tensor | None = None) -> Metrics:
        """Nats per token, perplexity, bits per byte where tokens keep the text, accuracy."""
        known = (y != UNLABELLED).double()
        if weight is not None:
            known = known * weight.reshape(-1, 1)
        losses = self.surprise(predictive, y) * known
        count, total = float(known.sum()), float(losses.sum())
        if not count:
            return {}
        right = (predictive.raw.argmax(-1) == y).double() * known
        found: Metrics = {"nll": total / count, "perplexity": math.exp(min(total / count, 700))}
        if self.bytes is not None:
            size = float((self.bytes[y.clamp(min=0)] * known).sum())
            found["bits_per_byte"] = total / size / math.log(2) if size else None
        return {**found, "accuracy": float(right.sum()) / count}

    def frame(self, model: Model, rows: Given, **options: Any) -> dict[str, Any]:
        """Each token with its surprise, and the most probable one in its place."""
        given: Any = rows.rows
        y = given.targets()
        predictive = model.predictive(given)
        known = y != UNLABELLED
        guess = self.labels[predictive.raw.argmax(-1)[known].numpy()]
        return {
            "token": self.labels[y[known].numpy()],
            "surprise": self.surprise(predictive, y)[known].numpy(),
            "prediction": guess,
        }

    # On disk.

    def target(self, likelihood: Likelihood) -> TargetSpec:
        return TargetSpec(classes=len(self.labels), axis="element")

    def state(self) -> dict[str, Any]:
        return {"names": self.names, **plain_labels(self.labels)}

    def tensors(self) -> dict[str, Tensor]:
        return {} if self.bytes is None else {"bytes": self.bytes}

    def load(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.names, self.labels = list(state["names"]), labels_of(state)  # type: ignore[assignment]
        self.bytes = tensors.get("bytes")


class MaskedToken(NextToken):
    """Each hidden token of a passage, given all others."""

    name: ClassVar[str] = "masked"
    estimator: ClassVar[str] = "ansatz.estimators.language_model:LanguageModel"
    report: ClassVar[str] = "ansatz.outcomes.report.language:MaskedReport"
    solved: ClassVar[frozenset[str]] = frozenset()

    def baselines(
        self, structure: "Structure", likelihood: Likelihood, job: Job, seed: int
    ) -> tuple[Mapping[str, Posterior], list[str]]:
        """None: the constant model gives each token its frequency."""
        return {}, []
