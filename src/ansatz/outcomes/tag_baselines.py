"""Simple taggers to stand beside a network: what a word or a step says alone."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ansatz import likelihoods
from ansatz.data.batch import UNLABELLED, Ragged, pad
from ansatz.fitting.contracts.inference import Predictive
from ansatz.fitting.job import Job


class StepwisePosterior(ABC):
    """Log probabilities of the tags of each step, whatever stands around it."""

    def __init__(self, job: Job) -> None:
        self.classes = job.target.classes
        self.likelihood = likelihoods.create("categorical")
        known = job.y != UNLABELLED
        lengths = job.rows.offsets.diff()  # type: ignore[attr-defined]  # of sequences
        inside = torch.arange(job.y.shape[1]) < lengths.unsqueeze(1)
        weight = job.weight.double().unsqueeze(1) * known
        self._fit(job.rows, job.y[inside].clamp(min=0), weight[inside])

    @abstractmethod
    def _fit(self, rows: Any, y: Tensor, weight: Tensor) -> None: ...

    @abstractmethod
    def _logits(self, rows: Any) -> Tensor: ...

    def predictive(
        self, rows: Any, offset: Tensor | None = None, *, notes: list[str] | None = None
    ) -> Predictive:
        """Log probabilities, ``(N, T, K)``."""
        return Predictive(self.likelihood, pad(Ragged(self._logits(rows), rows.offsets)).values)


class WordModel(StepwisePosterior):
    r"""The tags that a word had in training.

    .. math:: P(t \mid w) = \frac{n_{wt} + p_t}{n_w + 1}

    with :math:`p_t` the shares among words that occur once: what is known of a word never seen.
    """

    def _fit(self, rows: Any, y: Tensor, weight: Tensor) -> None:
        words = np.asarray(rows.words, dtype=str)
        levels, place = np.unique(words, return_inverse=True)
        counts = torch.zeros(len(levels), self.classes).double()
        counts.index_put_((torch.from_numpy(place), y), weight, accumulate=True)
        total = counts.sum(1, keepdim=True)
        rare = counts[(total <= 1).squeeze(1)].sum(0) + 1e-3 * counts.sum(0) / total.sum() + 1e-9
        self.places = {word: code for code, word in enumerate(levels.tolist())}
        unseen = rare / rare.sum()
        self.table = (torch.cat([counts, unseen.new_zeros(1, self.classes)]) + unseen).log()
        self.table -= self.table.logsumexp(1, keepdim=True)

    def _logits(self, rows: Any) -> Tensor:
        codes = [self.places.get(word, len(self.places)) for word in rows.words]
        return self.table[torch.tensor(codes, dtype=torch.long)]


class StepModel(StepwisePosterior):
    """Multinomial logistic regression on the numbers of a step, the one before and the next."""

    def _fit(self, rows: Any, y: Tensor, weight: Tensor) -> None:
        from sklearn.linear_model import LogisticRegression

        self.mean, self.scale = rows.ragged.values.mean(0), rows.ragged.values.std(0).clamp(1e-12)
        seen = weight > 0
        x = self._neighbours(rows)[seen].numpy()
        self.model = LogisticRegression(max_iter=500)
        self.model.fit(x, y[seen].numpy(), sample_weight=weight[seen].numpy())

    def _neighbours(self, rows: Any) -> Tensor:
        """Standardised numbers of each step and its two neighbours, ``(S, 3 D)``."""
        x = pad(rows.ragged._replace(values=(rows.ragged.values - self.mean) / self.scale))
        before = torch.nn.functional.pad(x.values, (0, 0, 1, 0))[:, :-1]
        behind = torch.nn.functional.pad(x.values, (0, 0, 0, 1))[:, 1:]
        return torch.cat([before, x.values, behind], -1)[x.mask]

    def _logits(self, rows: Any) -> Tensor:
        found = torch.full((len(rows.ragged.values), self.classes), -30.0).double()
        if len(found):
            chance = self.model.predict_log_proba(self._neighbours(rows).numpy())
            found[:, torch.from_numpy(self.model.classes_)] = torch.from_numpy(chance)
        return found
