"""Answers: the part of a text that answers a question."""

from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ansatz.data.sequences.questions import Questions
from ansatz.estimators.arguments import Arguments
from ansatz.estimators.estimator import Estimator
from ansatz.likelihoods import Likelihood

_OF_TABLES = (
    *("calibration", "x", "widths", "activation", "dropout", "quantile", "bins", "tokens"),
    *("errors", "formula", "impute", "link", "augment", "length"),
)


class SpanFinder(Estimator, without=_OF_TABLES):
    r"""A network that points to the words of a text that answer a question.

    .. math:: (\hat a, \hat b) = \arg\max_{a \le b} p_1(a \mid q, c) \, p_2(b \mid q, c)

    Args:
        likelihood: ``"span"``; ``likelihood_options={"longest": 30}``, words of an answer at most.
        network: ``"pointer"``; ``network_options={"body": "lstm"}`` names what reads the question
            and the text: ``"lstm"``, ``"gru"``, ``"transformer"``, ``"bert"``.

    Example:
        >>> from ansatz import SpanFinder
        >>> names, towns = ["Ada", "Max", "Eva", "Udo"], ["Jena", "Bonn", "Trier", "Ulm"]
        >>> rows = [(f"{a} is in {s}. {b} is in {t}.", f"Where is {a}?", s)
        ...         for a in names for b in names for s in towns for t in towns if a != b]
        >>> contexts, questions, answers = zip(*rows)
        >>> model = SpanFinder(steps=60, network_options={"width": 16})
        >>> model.fit(contexts, questions, answers).predict(contexts[:1], questions[:1]).tolist()
        ['Jena']

    References:
        Rajpurkar et al. (2016), SQuAD. https://arxiv.org/abs/1606.05250
    """

    outcome = "answer"
    x = "questions"

    def __init__(self, likelihood: str | Likelihood = "span", **options: Unpack[Arguments]) -> None:
        super().__init__(likelihood, **options)

    def fit(  # type: ignore[override]  # two texts make an example
        self, X: Any, questions: Any, spans: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fits the network to contexts, questions and answers.

        Args:
            X: contexts, ``(N,)`` texts.
            questions: one about each.
            spans: the answers: texts of the contexts, or ``(start, end)`` in characters.
            sample_weight: ``(N,)`` frequency weights.
        """
        rows = Questions.of(X, questions, spans)
        return super().fit(rows, rows.spans, sample_weight)

    def predict(self, X: Any, questions: Any = None) -> NDArray[Any]:  # type: ignore[override]
        """Answers questions, ``(N,)`` texts.

        Args:
            X: contexts.
            questions: one about each.
        """
        rows: Any = self._given(X if questions is None else (X, questions)).rows
        outcome: Any = self.model_.outcome
        found = outcome.texts(self.model_.posterior, rows)
        return np.array([*found, None], dtype=object)[:-1]

    def evaluate(  # type: ignore[override]
        self, X: Any, questions: Any = None, spans: Any = None, **options: Any
    ) -> dict[str, float | None]:
        """Computes nats per answer, exact match and F1.

        Args:
            X: contexts; of a model of ``ansatz.fit`` a file with the answers will do.
            questions: one about each.
            spans: the answers as in ``fit``.
            options: ``warn``.
        """
        if questions is None:
            X = self._from_table(X, outcomes=True).X
        else:
            X = Questions.of(X, questions, spans)
        return super().evaluate(X, X.spans, **options)

    def score(self, X: Any, questions: Any, spans: Any = None) -> float:
        """Computes the F1 of the words of the answers, 0 to 1.

        Args:
            X: contexts.
            questions: one about each.
            spans: the answers as in ``fit``.
        """
        return float(self.evaluate(X, questions, spans, warn=False)["f1"] or 0.0)
