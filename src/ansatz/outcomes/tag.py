"""A class for every step of a sequence as outcome: tags of words, states of a signal."""

import inspect
from collections.abc import Mapping
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz import likelihoods, networks
from ansatz.data.batch import UNLABELLED
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.contracts.inference import Posterior, Predictive
from ansatz.fitting.contracts.outcome import (
    NO_INTERVAL,
    PROBABILITIES,
    Metrics,
    Outcome,
    labels_of,
    plain_labels,
)
from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.job import Job
from ansatz.fitting.model import Given, Model
from ansatz.fitting.task import Settings
from ansatz.likelihoods import Distribution, Likelihood
from ansatz.outcomes.tag_baselines import StepModel, WordModel
from ansatz.spec import TargetSpec

TAG_LIKELIHOODS = ("categorical", "cross_entropy", "focal")


class Tags(Outcome):
    """One of several classes for every word of a sentence, or step of a signal."""

    name: ClassVar[str] = "tag"
    estimator: ClassVar[str] = "ansatz.estimators.tagger:Tagger"
    candidates: ClassVar[tuple[str, ...]] = ("categorical",)
    report: ClassVar[str] = "ansatz.outcomes.report.tag:TagReport"
    reader: ClassVar[str] = "ansatz.outcomes.tag_files:read_tags"
    plural: ClassVar[str] = "tags"
    labels_are: ClassVar[str] = "tags"
    axis: ClassVar[str] = "element"
    has_columns: ClassVar[bool] = False
    is_quantity: ClassVar[bool] = False
    outputs: ClassVar[Mapping[str, str]] = {**Outcome.outputs, "probabilities": PROBABILITIES}
    intervals: ClassVar[Mapping[str, str]] = {"probabilities": NO_INTERVAL}
    no_interval: ClassVar[str] = "tags have no interval; 'probability' shows how sure the model is."
    labels: NDArray[Any]

    def __init__(self) -> None:
        self.names: list[str] = ["tag"]

    # Reading.

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
        if len(column_roles.target) > 1:
            raise UsageError("one target at a time for tags; fit each column by itself.")

    def encode(self, y: Any, settings: Settings, *, reset: bool) -> tuple[NDArray[Any], TargetSpec]:
        lists = [() if each is None else tuple(each) for each in y]
        flat = [None if each is None or each != each else each for each in chain(*lists)]
        known = np.array([each for each in flat if each is not None])
        if reset:
            self.names = [str(getattr(y, "name", None) or "tag")]
            self.labels = np.unique(known)
            if len(self.labels) < 2:
                raise DataError("tags need two classes or more; all words have the same tag.")
        places = {label: code for code, label in enumerate(self.labels.tolist())}
        found = np.array([UNLABELLED if t is None else places.get(t, -2) for t in flat], np.int64)
        lengths = np.array([len(each) for each in lists], dtype=np.int64)
        if (found == -2).any():
            place = int(np.flatnonzero(found == -2)[0])
            sentence = int(np.searchsorted(lengths.cumsum(), place, side="right"))
            raise DataError(
                f"sentence {sentence + 1} has the tag {flat[place]!r}, which no sentence of the "
                "fit has."
            )
        steps = np.arange(max(1, int(lengths.max(initial=0))))
        codes = np.full((len(lists), len(steps)), UNLABELLED, dtype=np.int64)
        codes[steps < lengths[:, None]] = found
        return codes, TargetSpec(classes=len(self.labels), axis="element")

    def beside(self, y: Any, rows: Any) -> Any:
        """Tags, as many in each sentence as it has words."""
        offsets = getattr(rows, "offsets", None)
        if offsets is None:
            raise UsageError("tags are of the words of a sentence: give lists of words.")
        for place, (tags, words) in enumerate(zip(y, offsets.diff().tolist(), strict=False), 1):
            if tags is not None and len(tags) != words:
                raise DataError(f"sentence {place}: {words} tokens and {len(tags)} tags.")
        return y

    # Fitting.

    @classmethod
    def network_options(cls, network: str | nn.Module) -> dict[str, Any]:
        """An answer for each step, which sees what is before and behind it."""
        if not isinstance(network, str):
            return {}
        takes = inspect.signature(networks.registry.get(network)).parameters
        return {name: True for name in ("each", "bidirectional") if name in takes}

    def likelihood(self, settings: Settings, target: TargetSpec, *, few: bool) -> Likelihood:
        given = settings.likelihood
        if isinstance(given, str):
            given = "categorical" if given == "auto" else given
            given = likelihoods.create(given, **settings.likelihood_options)
        if given.name not in TAG_LIKELIHOODS:
            known = ", ".join(TAG_LIKELIHOODS)
            raise UsageError(f"{given.name} is not a likelihood of tags. Take one of: {known}.")
        made: Likelihood = given
        return made

    def baseline(
        self, structure: Structure, likelihood: Likelihood, job: Job, seed: int
    ) -> tuple[Posterior | None, list[str]]:
        """Of signals, the linear model in the numbers of a step and its neighbours."""
        if getattr(job.rows, "words", None) is not None:
            return None, []
        return StepModel(job), []  # type: ignore[return-value]  # it only predicts

    def baselines(
        self, structure: Structure, likelihood: Likelihood, job: Job, seed: int
    ) -> tuple[Mapping[str, Posterior], list[str]]:
        """Of words, their most frequent tag."""
        if getattr(job.rows, "words", None) is None:
            return {}, []
        found: Any = WordModel(job)
        return {"the word's tag": found}, []

    # Predictions.

    def probabilities(self, predictive: Predictive) -> Tensor:
        likelihood, raw = predictive
        found: Tensor = likelihood.probs(raw)  # type: ignore[operator]  # likelihoods of tags have it
        return found

    def disagreement(self, posterior: Posterior, rows: Any) -> Tensor:
        """The mutual information of a step's tag and the component, ``(N, T)``."""
        mean, within = torch.zeros(()), torch.zeros(())
        for weight, predictive in posterior.components(rows):
            probs = self.probabilities(predictive)
            mean = mean + weight * probs
            within = within + weight * torch.special.entr(probs).sum(-1)
        total: Tensor = torch.special.entr(mean).sum(-1) - within
        return total.clamp(min=0)

    def distribution(self, predictive: Predictive, y: Tensor) -> tuple[Distribution | None, Tensor]:
        return None, y

    def row_losses(self, predictive: Predictive, y: Tensor) -> Tensor:
        """The mean loss of the tagged words of each sentence, ``(N,)``."""
        losses, seen = self.step_losses(predictive, y)
        return losses.sum(1) / seen.sum(1).clamp(min=1)

    def step_losses(self, predictive: Predictive, y: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of each word, 0 where it has no tag, and whether it has one, ``(N, T)``."""
        likelihood, raw = predictive
        y = self.cut(y, raw)
        known = y != UNLABELLED
        losses = torch.zeros(y.shape, dtype=torch.float64)
        with torch.no_grad():
            losses[known] = likelihood.loss(raw[: len(y), : y.shape[1]][known], y[known]).double()
        return losses, known.double()

    def cut(self, y: Tensor, raw: Tensor) -> Tensor:
        """Tags up to the longest of the sentences that were predicted."""
        steps = raw.shape[1]
        if (y[:, steps:] != UNLABELLED).any():
            raise DataError(f"tags of {y.shape[1]} words for sentences of at most {steps}.")
        return y[:, :steps]

    def estimate(self, predictive: Predictive, y: Tensor) -> Tensor:
        """The most probable tag of each step, filled up to the width of ``y``."""
        codes = self.probabilities(predictive).argmax(-1)[:, : y.shape[1]]
        return nn.functional.pad(codes, (0, y.shape[1] - codes.shape[1]))

    def point(self, predictive: Predictive) -> NDArray[Any]:
        found: NDArray[Any] = self.labels[self.probabilities(predictive).argmax(-1).numpy()]
        return found

    def evaluate(self, predictive: Predictive, y: Tensor, weight: Tensor | None = None) -> Metrics:
        """Means over all tagged words, whatever sentence they are in; F1 as a mean over tags."""
        y = self.cut(y, predictive.raw)
        known = y != UNLABELLED
        each = torch.ones(len(y)).double() if weight is None else weight.double()
        mass = each.unsqueeze(1).expand(y.shape)[known]
        losses, _ = self.step_losses(predictive, y)
        truth, codes = y[known], self.estimate(predictive, y)[known]
        hits = mass[truth == codes].sum()
        found = {"accuracy": hits / mass.sum(), "macro_f1": macro_f1(truth, codes, mass)}
        if predictive.likelihood.has_distribution:
            found = {"nll": (losses[known] * mass).sum() / mass.sum(), **found}
        return {name: float(value) for name, value in found.items()}

    def frame(self, model: Model, rows: Given, **options: Any) -> dict[str, Any]:
        """A row for each word: its sentence, itself, its tag and how probable that is."""
        chance = self.probabilities(model.predictive(rows.rows, rows.offset))
        lengths = rows.rows.offsets.diff()  # type: ignore[attr-defined]  # of sequences
        best, code = chance[torch.arange(chance.shape[1]) < lengths.unsqueeze(1)].max(-1)
        sentence = np.repeat(np.arange(1, len(lengths) + 1), lengths.numpy())
        words = getattr(rows.rows, "words", None)
        steps = np.concatenate([np.arange(1, n + 1) for n in [0, *lengths.tolist()]])
        return {
            "sentence": sentence,
            **({"step": steps} if words is None else {"token": words}),
            "tag": self.labels[code.numpy()],
            "probability": best.numpy(),
        }

    def answers(self, likelihood: Likelihood, raw: Tensor) -> dict[str, Tensor]:
        chance = self.probabilities(Predictive(likelihood, raw))
        return {"prediction": chance.argmax(-1), "probabilities": chance}

    # On disk.

    def target(self, likelihood: Likelihood) -> TargetSpec:
        return TargetSpec(classes=len(self.labels), axis="element")

    def state(self) -> dict[str, Any]:
        return {"names": self.names, **plain_labels(self.labels)}

    def load(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.names, self.labels = list(state["names"]), labels_of(state)  # type: ignore[assignment]


def macro_f1(truth: Tensor, codes: Tensor, weight: Tensor) -> Tensor:
    r"""The mean over tags of :math:`2 n_{kk} / (n_{k \cdot} + n_{\cdot k})`, of tags that occur."""
    count = int(torch.cat([truth, codes]).max()) + 1
    sizes = [torch.bincount(each, weight, count) for each in (truth, codes)]
    right = torch.bincount(truth[truth == codes], weight[truth == codes], count)
    total = sizes[0] + sizes[1]
    return (2 * right[total > 0] / total[total > 0]).mean()
