"""Knowledge graphs: which entity completes a triple."""

from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ansatz.data.relations.queries import Queries
from ansatz.estimators.arguments import Arguments
from ansatz.estimators.estimator import Estimator
from ansatz.likelihoods import Likelihood

_OF_TABLES = (
    *("calibration", "x", "widths", "activation", "dropout", "quantile", "bins", "tokens"),
    *("errors", "formula", "impute", "link", "augment", "length", "vocabulary", "folds"),
)


class KnowledgeGraph(Estimator, without=_OF_TABLES):
    r"""Embeddings of entities and relations that complete triples.

    .. math:: P(t \mid h, r) = \frac{e^{s(h, r, t)}}{\sum_{t'} e^{s(h, r, t')}}

    Each relation is also read backwards, so that (?, r, t) is a query too.

    Args:
        likelihood: ``"categorical"`` over all entities.
        network: ``"complex"``, ``"distmult"``, ``"transe"``, ``"dot"``, or ``"linear"``: the
            frequencies of each relation's answers; ``"auto"`` takes complex.
        holdout: share of the triples that decides when to stop; 0.1 if not given.

    Example:
        >>> from ansatz import KnowledgeGraph
        >>> towns = {"Jena": "Thuringia", "Bonn": "Rhineland", "Gera": "Thuringia"}
        >>> triples = [(town, "in", land) for town, land in towns.items()]
        >>> model = KnowledgeGraph(steps=50, holdout=0).fit(triples)
        >>> model.predict([("Jena", "in")]).tolist()
        ['Thuringia']

    References:
        Trouillon et al. (2016), Complex embeddings. https://arxiv.org/abs/1606.06357
    """

    outcome = "tail"
    x = "triples"

    def __init__(
        self, likelihood: str | Likelihood = "categorical", **options: Unpack[Arguments]
    ) -> None:
        super().__init__(likelihood, **options)

    def fit(  # type: ignore[override]  # a triple holds its outcome
        self, X: Any, y: None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fits the network to triples.

        Args:
            X: ``(M, 3)`` names of head, relation and tail.
            y: refused: a triple holds its own outcome.
            sample_weight: ``(M,)`` frequency weights.
        """
        rows = _queries(X)
        if sample_weight is not None:
            sample_weight = np.tile(np.asarray(sample_weight), 2)
        return super().fit(rows, rows.answer, sample_weight)

    def predict(self, X: Any) -> NDArray[Any]:  # type: ignore[override]
        """Predicts the most probable entity of each query, ``(N,)`` names.

        Args:
            X: ``(N, 2)`` names of entity and relation.
        """
        return super().predict(X)

    def evaluate(
        self, X: Any, y: None = None, sample_weight: ArrayLike | None = None, **options: Any
    ) -> dict[str, float | None]:
        """Computes nats per query, the filtered reciprocal rank and hits.

        Args:
            X: triples; of a model of ``ansatz.fit`` a file of them will do.
            y: not needed.
            sample_weight: refused.
            options: ``warn``.
        """
        is_data = self.model_.column_roles is not None and not isinstance(X, Queries)
        rows = self._from_table(X, outcomes=True).X if is_data else _queries(X)
        return super().evaluate(rows, rows.answer, sample_weight, **options)

    def score(self, X: Any, y: None = None) -> float:
        """Computes the filtered mean reciprocal rank.

        Args:
            X: triples.
            y: not needed.
        """
        return float(self.evaluate(X, warn=False)["mrr"] or 0.0)


def _queries(X: Any) -> Queries:
    return X if isinstance(X, Queries) else Queries.of(X)
