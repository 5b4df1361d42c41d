"""The baseline of answers: the words nearest to those of the question, by tf-idf weights."""

import math
from collections import Counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data.sequences.questions import Questions, words_of
from ansatz.fitting.contracts.inference import Predictive
from ansatz.likelihoods import Likelihood

_ENDS = frozenset(".!?")


class BestWindow:
    r"""The window of n words of the context that has most of the question's weight around it.

    .. math:: \max_i \bar w_i \sum_j \frac{w_j [j \in q]}{1 + d(j, i)}, \qquad
        w_j = \log \frac{1 + N}{1 + n_j}

    over the windows without words of the question and without the end of a sentence, the words j
    of the same sentence, their distances d and the mean weight of its own words; n is the
    median length of the training answers and :math:`n_j` the number of the N training contexts that
    hold word j. It gives no probabilities.
    """

    name = "window"

    def __init__(self, likelihood: Likelihood, learn: Questions) -> None:
        assert learn.spans is not None
        self.likelihood = likelihood
        self.words = int(np.median(learn.spans[:, 1] - learn.spans[:, 0] + 1))
        contexts = dict.fromkeys(learn.contexts)
        counts = Counter(word for text in contexts for word in set(words_of(text).words))
        self.idf = {word: math.log((1 + len(contexts)) / (1 + n)) for word, n in counts.items()}
        self.unknown = math.log(1 + len(contexts))

    def predictive(self, rows: Questions, offset: Tensor | None = None, **_: Any) -> Predictive:
        """No probabilities."""
        raw = torch.full((len(rows), 1, 2), torch.nan, dtype=torch.float64)
        return Predictive(self.likelihood, raw)

    def spans(self, rows: Questions) -> NDArray[np.int64]:
        """The first and the last word of each window, ``(N, 2)``."""
        pairs = zip(rows.questions, rows.contexts, strict=True)
        return np.array([self._best(q, c) for q, c in pairs], dtype=np.int64).reshape(-1, 2)

    def _best(self, question: str, context: str) -> tuple[int, int]:
        asked = set(words_of(question).words)
        words = words_of(context).words
        ends = np.array([word in _ENDS for word in words], dtype=bool)
        sentence = np.cumsum(ends) - ends
        inside = np.array([word in asked and word.isalnum() for word in words], dtype=bool)
        weight = np.array([self.idf.get(word, self.unknown) for word in words]) * inside
        at = np.flatnonzero(inside)
        best, found = -1.0, (0, min(self.words, len(words)) - 1)
        for first in range(len(words) - self.words + 1):
            last = first + self.words - 1
            if (inside | ends)[first : last + 1].any():
                continue
            same = at[sentence[at] == sentence[first]]
            apart = np.where(same < first, first - same, same - last)
            weighted = np.mean(
                [self.idf.get(word, self.unknown) for word in words[first : last + 1]]
            )
            score = float((weight[same] / (1 + apart)).sum() * weighted)
            if score > best:
                best, found = score, (first, last)
        return found
