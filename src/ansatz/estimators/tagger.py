"""Tagging: a class for every word of a sentence, or step of a signal."""

from typing import Any, Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from ansatz.errors import UsageError
from ansatz.estimators.arguments import Arguments
from ansatz.estimators.estimator import Estimator
from ansatz.estimators.predictor import FittedAttribute
from ansatz.fitting.model import Given
from ansatz.likelihoods import Likelihood

_OF_OTHERS = (
    *("calibration", "x", "widths", "activation", "dropout", "quantile", "bins", "augment"),
    *("errors", "formula", "impute", "link", "tokens", "length"),
)


class Tagger(Estimator, without=_OF_OTHERS):
    """A network that predicts the class of every word of a sentence, or step of a signal.

    A word is seen as itself, in lower case, as its shape and as its first and last letters, so
    that words which training has not shown have tags too. The default network is a bidirectional
    LSTM.

    Args:
        likelihood: ``"categorical"``, ``"cross_entropy"`` (which smooths labels) or ``"focal"``.
        network: ``"lstm"``, ``"gru"``, ``"mingru"``, ... or a module that takes (values, mask) and
            gives ``(B, K, T)``; ``"auto"`` takes ``"lstm"``.
        inference: ``"point"`` for one network, or ``"ensemble"``.
        epochs: passes over the sentences, in place of the recipe's budget.
        holdout: share of the sentences that decide when to stop; 0 for none.

    Attributes:
        classes_: the tags, in the order of the probabilities.

    Example:
        >>> from ansatz import Tagger
        >>> words = [["a", "dog", "barks"], ["the", "cat", "sleeps"], ["a", "cat", "barks"]] * 8
        >>> model = Tagger(steps=60, holdout=0).fit(words, [["DET", "NOUN", "VERB"]] * 24)
        >>> model.predict([["the", "dog", "sleeps"]])
        [['DET', 'NOUN', 'VERB']]

    References:
        Plank, Søgaard and Goldberg (2016), Multilingual part-of-speech tagging with bidirectional
        LSTM models. https://arxiv.org/abs/1604.05529
    """

    outcome = "tag"
    x = "sequence"
    classes_ = FittedAttribute(lambda model: model.outcome.labels)

    def __init__(
        self, likelihood: str | Likelihood = "categorical", **options: Unpack[Arguments]
    ) -> None:
        super().__init__(likelihood, **options)

    def predict(self, X: Any, *, offset: ArrayLike | None = None) -> list[list[Any]]:  # type: ignore[override]  # sentences differ in length
        """Predicts the tag of every word: a list for each sentence.

        Args:
            X: lists of words, or arrays ``(T_i, D)``.
            offset: refused.
        """
        codes = [chance.argmax(1) for chance in self.predict_proba(X, offset=offset)]
        return [self.classes_[each].tolist() for each in codes]

    def predict_proba(
        self, X: Any, *, offset: ArrayLike | None = None
    ) -> list[NDArray[np.float64]]:
        """Predicts P(tag of a word): an array ``(T_i, K)`` for each sentence.

        Args:
            X: as in ``predict``.
            offset: refused.
        """
        rows: Any = self._given(X, offset).rows
        outcome = self.model_.of_classes
        found = outcome.probabilities(self.model_.predictive(rows))
        return [
            chance[:steps].numpy()
            for chance, steps in zip(found, rows.offsets.diff().tolist(), strict=True)
        ]

    def between_entropy(self, X: Any) -> list[NDArray[np.float64]]:
        """Measures how the members of an ensemble disagree about every word, in nats.

        Args:
            X: as in ``predict``.
        """
        rows: Any = self._given(X).rows
        if len(self.model_.posterior.networks) < 2:
            raise UsageError("one network has nobody to disagree with: inference='ensemble'.")
        found: torch.Tensor = self.model_.of_classes.disagreement(self.model_.posterior, rows)
        return [
            each[:steps].numpy()
            for each, steps in zip(found, rows.offsets.diff().tolist(), strict=True)
        ]

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Computes the share of words with the right tag.

        Args:
            X: as in ``fit``.
            y: their tags.
            sample_weight: ``(N,)``.
        """
        found = self.evaluate(X, y, sample_weight, warn=False)["accuracy"]
        assert found is not None
        return found

    def _given(
        self, X: Any, offset: ArrayLike | None = None, trials: ArrayLike | None = None
    ) -> Given:
        if offset is not None:
            raise UsageError("tags take no offset.")
        return super()._given(X, offset, trials)
