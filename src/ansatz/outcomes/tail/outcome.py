"""The entity that completes a triple, as outcome."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz import likelihoods
from ansatz.data.relations.filtered import ruled_out
from ansatz.data.relations.queries import KnownAnswers, Queries, Vocabulary, codes_of
from ansatz.errors import DataError, ModelError, UsageError
from ansatz.fitting.contracts.inference import Posterior, Predictive
from ansatz.fitting.contracts.outcome import Metrics, Outcome
from ansatz.fitting.contracts.structure import LinearBaseline, Structure
from ansatz.fitting.job import Job
from ansatz.fitting.model import Given, Model
from ansatz.fitting.scores import constant_predictive
from ansatz.fitting.task import Settings
from ansatz.likelihoods import Distribution, Likelihood
from ansatz.metrics import answer_ranks, rank_metrics
from ansatz.networks.triples import RULED_OUT
from ansatz.outcomes.tail.frequencies import frequencies
from ansatz.spec import TargetSpec

if TYPE_CHECKING:
    from ansatz.training import Penalty


class Tail(Outcome):
    """The entity that answers (head, relation, ?), or backwards (tail, relation, ?)."""

    name: ClassVar[str] = "tail"
    estimator: ClassVar[str] = "ansatz.estimators.knowledge_graph:KnowledgeGraph"
    candidates: ClassVar[tuple[str, ...]] = ("categorical",)
    report: ClassVar[str] = "ansatz.outcomes.report.tail:TailReport"
    plural: ClassVar[str] = "entities"
    labels_are: ClassVar[str] = "entities"
    has_columns: ClassVar[bool] = False
    is_quantity: ClassVar[bool] = False
    solved: ClassVar[frozenset[str]] = frozenset({"tail_frequencies", "linear"})
    test_share: ClassVar[float] = 0.1
    no_interval: ClassVar[str] = "entities have no interval; 'probability' shows how sure it is."
    labels: NDArray[Any]
    known_answers: KnownAnswers

    def __init__(self) -> None:
        self.names: list[str] = ["tail"]

    # Reading.

    def beside(self, y: Any, rows: Any) -> Any:
        """The answers of the queries, which their rows hold."""
        if not isinstance(rows, Queries) or rows.answer is None:
            raise UsageError("a knowledge graph is fitted to triples (head, relation, tail).")
        return rows.answer

    def encode(self, y: Any, settings: Settings, *, reset: bool) -> tuple[NDArray[Any], TargetSpec]:
        names = np.asarray(y).astype(str)
        if reset:
            self.labels = np.unique(names)
        if len(self.labels) < 2:
            raise DataError("a knowledge graph needs two entities or more.")
        return codes_of(self.labels, names, "entity"), TargetSpec(classes=len(self.labels))

    def read(self, job: Job) -> Job:
        """Takes note of all triples of the graph, and keeps both queries of one together."""
        rows: Any = job.rows
        if not hasattr(self, "known_answers"):
            self.known_answers = rows.known
        return job._replace(group=np.unique(rows.content_keys(), return_inverse=True)[1])

    def content(self, y: Tensor, settings: Settings) -> NDArray[Any]:
        """Nothing: both queries of a triple have one key."""
        return np.zeros(len(y))

    # Fitting.

    def likelihood(self, settings: Settings, target: TargetSpec, *, few: bool) -> Likelihood:
        likelihood = settings.likelihood
        if isinstance(likelihood, str):
            name = "categorical" if likelihood == "auto" else likelihood
            likelihood = likelihoods.create(name, **settings.likelihood_options)
        if likelihood.name != "categorical":
            raise UsageError(f"{likelihood.name} is not a likelihood of entities: categorical is.")
        made: Likelihood = likelihood
        return made

    def baseline(
        self, structure: Structure, likelihood: Likelihood, job: Job, seed: int
    ) -> tuple[Posterior | None, list[str]]:
        """The frequencies of the answers of each relation."""
        return frequencies(structure, likelihood, job), []

    def solve(
        self,
        structure: Structure,
        likelihood: Likelihood,
        job: Job,
        penalty: "Penalty | None" = None,
    ) -> LinearBaseline:
        """The frequencies of the answers of each relation, which are counted."""
        return LinearBaseline(frequencies(structure, likelihood, job), [])

    # Predictions.

    def distribution(self, predictive: Predictive, y: Tensor) -> tuple[Distribution | None, Tensor]:
        return None, y

    def evaluate(self, predictive: Predictive, y: Tensor, weight: Tensor | None = None) -> Metrics:
        """Nats per query, the mean reciprocal rank, and hits among the first 1, 3 and 10.

        Other known answers of a query are ruled out: one of them may well be more probable.
        """
        losses = self.row_losses(predictive, y)
        mass = torch.ones_like(losses) if weight is None else weight.double()
        nll = float((losses * mass).sum() / mass.sum())
        return {"nll": nll, **rank_metrics(answer_ranks(predictive.raw, y.long()), mass)}

    def constant(
        self, model: Model, likelihood: Likelihood, learn: Job, test: Job
    ) -> Predictive | None:
        """The frequencies of all answers, without the other known ones of a query."""
        likelihood, raw = constant_predictive(likelihood, learn, test)
        rows: Any = test.rows
        return Predictive(likelihood, raw.masked_fill(ruled_out(rows, rows.known), RULED_OUT))

    def estimate(self, predictive: Predictive, y: Tensor) -> Tensor:
        return predictive.raw.argmax(-1)

    def point(self, predictive: Predictive) -> NDArray[Any]:
        found: NDArray[Any] = self.labels[predictive.raw.argmax(-1).numpy()]
        return found

    def frame(self, model: Model, rows: Given, **options: Any) -> dict[str, Any]:
        """Each query, its most probable answer, and how probable that is."""
        given: Any = rows.rows
        likelihood, raw = model.predictive(given, rows.offset)
        best, code = likelihood.probs(raw).max(-1)  # type: ignore[operator]  # classes have them
        return {
            "entity": given.entity,
            "relation": given.relation,
            "prediction": self.labels[code.numpy()],
            "probability": best.numpy(),
        }

    # On disk.

    def target(self, likelihood: Likelihood) -> TargetSpec:
        return TargetSpec(classes=len(self.labels))

    def state(self) -> dict[str, Any]:
        relations = self.known_answers.vocabulary.relations
        return {"entities": self.labels.tolist(), "relations": relations.tolist()}

    def tensors(self) -> dict[str, Tensor]:
        return {"known": torch.from_numpy(self.known_answers.triples)}

    def load(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.labels = np.array(state["entities"], dtype=str)
        known = tensors.get("known")
        if known is None or known.ndim != 2 or known.shape[1] != 3:
            raise ModelError("outcome.known: expected a tensor of triples, (M, 3).")
        vocabulary = Vocabulary(self.labels, np.array(state["relations"], dtype=str))
        self.known_answers = KnownAnswers(vocabulary, known.numpy())
