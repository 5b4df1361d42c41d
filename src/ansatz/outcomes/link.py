"""Whether a pair of nodes has an edge, as outcome."""

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data.graphs.links import LinkRows, pair_codes
from ansatz.data.graphs.rows import PairRows
from ansatz.errors import UsageError
from ansatz.fitting.contracts.inference import Posterior, Predictive
from ansatz.fitting.contracts.outcome import Metrics
from ansatz.fitting.task import Settings
from ansatz.likelihoods import Likelihood
from ansatz.metrics import answer_ranks, average_precision, rank_metrics
from ansatz.outcomes.label import Label
from ansatz.spec import TargetSpec

RANKED = 200  # test edges whose ends are ranked among all nodes
LABELS = ("no", "yes")


class Link(Label):
    """A pair of nodes of one graph has an edge, or has none."""

    name: ClassVar[str] = "link"
    estimator: ClassVar[str] = "ansatz.estimators.link_predictor:LinkPredictor"
    candidates: ClassVar[tuple[str, ...]] = ("bernoulli",)
    settings: ClassVar[frozenset[str]] = frozenset()
    has_columns: ClassVar[bool] = False
    test_share: ClassVar[float] = 0.1

    def __init__(self) -> None:
        super().__init__()
        self.name_classes(np.array(LABELS))

    def beside(self, y: Any, rows: Any) -> Any:
        """Whether each pair is an edge, which rows of links hold."""
        if not isinstance(rows, LinkRows):
            raise UsageError("links are predicted in a graph: LinkPredictor().fit(graph).")
        return np.array(LABELS)[rows.exists.astype(int)]

    def likelihood(self, settings: Settings, target: TargetSpec, *, few: bool) -> Likelihood:
        found = super().likelihood(settings, target, few=few)
        if found.name != "bernoulli":
            raise UsageError(f"{found.name} is not a likelihood of links: bernoulli is.")
        return found

    def content(self, y: Tensor, settings: Settings) -> NDArray[Any]:
        """Nothing: a pair is what it is."""
        return np.zeros(len(y))

    def evaluate(self, predictive: Predictive, y: Tensor, weight: Tensor | None = None) -> Metrics:
        """Metrics of two classes, and the average precision."""
        found = super().evaluate(predictive, y, weight)
        chance = self.probabilities(predictive)[:, 1]
        both = 0 < float(y.double().mean()) < 1
        return {**found, "ap": float(average_precision(y, chance, weight)) if both else None}

    def measure(self, posterior: Posterior, rows: Any) -> Metrics:
        """Ranks of the ends of edges among all nodes: known neighbours ruled out, ties averaged.

        Of more than 200 edges, 200 evenly spaced ones are ranked.
        """
        if not isinstance(rows, LinkRows) or not rows.exists.any():
            return {}
        edges = rows.pairs[rows.exists]
        edges = edges[np.linspace(0, len(edges) - 1, min(RANKED, len(edges))).astype(int)]
        graph, known = rows.graph, rows.known or rows.graph
        nodes = len(graph)
        every = np.stack([np.repeat(edges[:, 0], nodes), np.tile(np.arange(nodes), len(edges))], 1)
        raw = posterior.predictive(PairRows(graph, every), notes=[]).raw
        scores = raw.double().reshape(len(edges), nodes, -1).squeeze(-1)
        out = np.isin(pair_codes(graph, every), pair_codes(known, known.edge_index.T))
        mask = torch.from_numpy(out.reshape(len(edges), nodes)).clone()
        mask[torch.arange(len(edges)), torch.from_numpy(edges[:, 0])] = True  # not itself
        mask[torch.arange(len(edges)), torch.from_numpy(edges[:, 1])] = False
        ranks = answer_ranks(scores, torch.from_numpy(edges[:, 1]), mask.nonzero())
        found = rank_metrics(ranks, at=(10,))
        return {name: float(value) for name, value in found.items()}
