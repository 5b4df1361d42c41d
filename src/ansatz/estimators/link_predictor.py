"""Links: which pairs of nodes of one graph have an edge?"""

from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ansatz.data.graphs.graph import Graph
from ansatz.data.graphs.links import LinkRows
from ansatz.data.graphs.rows import PairRows
from ansatz.errors import UsageError
from ansatz.estimators.arguments import Arguments
from ansatz.estimators.classifier import Classifier
from ansatz.likelihoods import Likelihood

_OF_TABLES = (
    *("calibration", "x", "widths", "activation", "dropout", "quantile", "bins", "tokens"),
    *("errors", "formula", "impute", "link", "augment", "length", "vocabulary", "folds"),
)


class LinkPredictor(Classifier, without=_OF_TABLES):
    r"""A network that gives the probability of an edge between two nodes.

    .. math:: P(u \sim v) = \sigma(f(u, v))

    among as many pairs with an edge as without one. In each epoch a fifth of the training edges is
    predicted and hidden from the messages, beside pairs that are drawn anew.

    Args:
        likelihood: ``"bernoulli"``.
        network: ``"gae"``, ``"vgae"``, ``"gcn"`` or another that answers pairs; ``"linear"``: the
            logistic regression on Adamic and Adar's common neighbours and degrees; ``"auto"`` takes
            gae.
        holdout: share of the edges that decides when to stop; 0.1 if not given.

    Example:
        >>> import numpy as np
        >>> from ansatz import LinkPredictor
        >>> from ansatz.data import Graph
        >>> ends = [(k, j) for k in range(20) for j in range(k) if (k - j) % 2 == 0 and (k * j) % 3]
        >>> model = LinkPredictor(steps=30).fit(Graph.of(np.array(ends).T))
        >>> model.predict_proba([[0, 2], [0, 1]]).shape
        (2, 2)

    References:
        Kipf and Welling (2016), Variational graph auto-encoders. https://arxiv.org/abs/1611.07308
    """

    outcome = "link"
    x = "links"

    def __init__(
        self, likelihood: str | Likelihood = "bernoulli", **options: Unpack[Arguments]
    ) -> None:
        super().__init__(likelihood, **options)

    def fit(  # type: ignore[override]  # a graph holds its outcomes
        self, X: Any, y: None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fits the network to the edges of a graph.

        Args:
            X: a :class:`~ansatz.data.Graph`.
            y: refused: a graph holds its own edges.
            sample_weight: refused: weights of edges are those of the graph.
        """
        if y is not None or sample_weight is not None:
            raise UsageError("LinkPredictor takes a graph alone.")
        rows = _links(X)
        return super().fit(rows, rows.exists)

    def predict(self, X: Any) -> NDArray[Any]:  # type: ignore[override]
        """Predicts ``"yes"`` or ``"no"`` for each pair.

        Args:
            X: ``(N, 2)`` names of nodes.
        """
        return super().predict(X)

    def evaluate(
        self, X: Any, y: None = None, sample_weight: ArrayLike | None = None, **options: Any
    ) -> dict[str, float | None]:
        """Computes nll, auc, the average precision, the filtered reciprocal rank and hits.

        Args:
            X: links, or a graph of the same nodes, whose edges are predicted.
            y: not needed.
            sample_weight: refused.
            options: ``warn``.
        """
        is_data = self.model_.column_roles is not None and not isinstance(X, PairRows | Graph)
        rows = self._from_table(X, outcomes=True).X if is_data else _links(X)
        kept: Any = self.model_.encoder.kept  # type: ignore[attr-defined]
        if rows.graph is not kept:
            rows = rows.beside(kept)
        return super().evaluate(rows, rows.exists, sample_weight, **options)


def _links(X: Any) -> LinkRows:
    if isinstance(X, LinkRows):
        return X
    if isinstance(X, Graph):
        return LinkRows.of(X)
    raise UsageError(f"LinkPredictor takes a Graph, got {type(X).__name__} {np.shape(X)}.")
