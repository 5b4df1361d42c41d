"""Simple models beside a translator: the nearest training sentence, the frequency of tokens."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ansatz.data.sequences.pairs import Pairs
from ansatz.data.sequences.sequences import Texts
from ansatz.fitting.contracts.inference import Predictive
from ansatz.likelihoods import Likelihood
from ansatz.outcomes.translation.search import Translation


class NearestTranslation:
    """The text of the training pair whose source is nearest, by the cosine of tf-idf weights.

    It gives no probabilities.
    """

    name = "nearest"

    def __init__(self, likelihood: Likelihood, learn: Pairs) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        assert learn.targets is not None
        self.likelihood, self.targets = likelihood, learn.targets.texts
        self.weights = TfidfVectorizer(token_pattern=r"(?u)\b\w+\b", dtype=np.float32)
        self.sources = self.weights.fit_transform(learn.source.texts)

    def predictive(self, rows: Pairs, offset: Tensor | None = None, **_: Any) -> Predictive:
        """No probabilities."""
        raw = torch.full((len(rows), 3), torch.nan, dtype=torch.float64)
        return Predictive(self.likelihood, raw)

    def translate(self, rows: Pairs) -> list[Translation]:
        """The text of the nearest source for each."""
        found: list[Translation] = []
        for first in range(0, len(rows), 256):
            asked = self.weights.transform(rows.source.texts[first : first + 256])
            nearest = np.asarray((asked @ self.sources.T).argmax(1)).ravel()
            found += [Translation(str(self.targets[k]), float("nan")) for k in nearest]
        return found


def nearest(likelihood: Likelihood, learn: Pairs) -> NearestTranslation | None:
    """The nearest training sentence; None where sources are not texts."""
    if not isinstance(learn.source, Texts) or not any(t.split() for t in learn.source.texts):
        return None
    return NearestTranslation(likelihood, learn)


def unigram(encoder: Any, likelihood: Likelihood, learn: Pairs, rows: Pairs) -> Predictive:
    """Every token by its frequency in the training texts, one more added to each count."""
    log_p, boundary = encoder.frequencies(learn), encoder.tokens.size
    asked = encoder.codes(rows)
    lengths = asked.offsets.diff()
    row = torch.arange(len(rows)).repeat_interleave(lengths)
    total = torch.zeros(len(rows)).double().index_add(0, row, log_p[asked.values])
    total = total + log_p[boundary]
    tokens = lengths.double() + 1
    return Predictive(likelihood, torch.stack([total, tokens * log_p[1:].mean(), tokens], 1))
