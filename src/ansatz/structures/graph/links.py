"""Links between the nodes of one graph: which pairs have an edge?"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from ansatz.data import Batch
from ansatz.data.graphs.graph import Graph
from ansatz.data.graphs.links import LinkRows, LinkSource
from ansatz.data.graphs.rows import NodeRows, PairRows
from ansatz.data.graphs.source import GraphSource
from ansatz.data.source import Source
from ansatz.errors import UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.contracts.structure import Facts, Feed
from ansatz.fitting.job import Job
from ansatz.fitting.model import Model
from ansatz.fitting.problem import Problem
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.split import SplitJob, split
from ansatz.fitting.task import Task
from ansatz.fitting.tensor_structure import Read
from ansatz.fitting.training import typed
from ansatz.seeds import derive
from ansatz.structures.graph.encoder import GraphEncoder
from ansatz.structures.graph.reading import positions_of, read_edges, read_graphs
from ansatz.structures.graph.reading_again import ReadPairs
from ansatz.structures.graph.recipe import link_recipe
from ansatz.structures.graph.structure import NodePairStructure

EDGE = "edge"  # the column of outcomes


class LinkStructure(NodePairStructure):
    """Pairs of nodes of one graph, some of which are edges; what is predicted is hidden."""

    name: ClassVar[str] = "links"
    unit: ClassVar[tuple[str, str]] = ("pair", "pairs")
    linear_networks: ClassVar[tuple[str, ...]] = ("adamic_adar",)

    def network(self, axis: str) -> str:
        """A graph autoencoder."""
        return "gae"

    def read(self, data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any]) -> Read:
        """The edges of one graph, and as many pairs without one."""
        found = read_graphs(data, ColumnRoles(), reader)
        if not isinstance(found.rows, NodeRows):
            raise UsageError(f"{found.origin}: links are between the nodes of one graph.")
        rows = LinkRows.of(found.rows.graph)
        frame = pd.DataFrame({EDGE: np.where(rows.exists, "yes", "no")})
        return Read(found.origin, rows, frame, EDGE, found.notes)

    def problem(self, data: Any, column_roles: ColumnRoles, **how: Any) -> Problem:
        """The outcome is whether there is an edge, whatever the nodes' own outcomes are."""
        found = data if isinstance(data, Read) else self.read(data, ColumnRoles(), how["reader"])
        roles = ColumnRoles(target=[EDGE], task=column_roles.task)
        made = super().problem(found, roles, **{**how, "drop": [], "likelihood": "bernoulli"})
        return made._replace(structure=self.name)

    def read_again(
        self, model: Model, data: str, *, outcomes: bool, options: Mapping[str, Any], notify: Any
    ) -> Any:
        """All pairs of a graph to evaluate; to predict, pairs of names in two columns."""
        reader = {**self.reading_of(model), **options}
        if outcomes:
            return ReadPairs(self.read(data, ColumnRoles(), reader))
        encoder: Any = model.encoder
        table = read_edges(data, reader)
        pairs = positions_of(encoder.kept, table).T
        frame = pd.DataFrame(table.ends.T, columns=["source", "destination"])
        return ReadPairs(Read(table.origin, PairRows(encoder.kept, pairs), frame))

    def as_rows(self, X: Any) -> Any:
        """Links, or a graph whose edges they are."""
        if isinstance(X, Graph):
            return LinkRows.of(X)
        return super().as_rows(X)

    def split(self, problem: Problem, task: Task, job: Job, test: float) -> SplitJob | None:
        """Test edges are hidden from all messages; test pairs without an edge are fixed."""
        found = SplitJob.of(job, split(job, task, test, task.settings.seed))
        learn: Any = found.learn.rows
        seen = learn.only()
        found = found._replace(
            learn=found.learn._replace(rows=learn.beside(seen)),
            test=found.test._replace(rows=found.test.rows.beside(seen)),  # type: ignore[attr-defined]
        )
        count = int(found.test.y.sum())
        return found._replace(
            notes=(
                f"{count:,} edges are for the test beside {len(found.test.y) - count:,} pairs "
                "without one; messages do not pass along them.",
            )
        )

    def recipe(self, facts: Facts) -> Recipe:
        """All edges at once."""
        return link_recipe(facts)

    def encoder(
        self, rows: Any, weight: NDArray[np.float64], recipe: Recipe, options: Mapping[str, Any]
    ) -> GraphEncoder:
        """The columns of all nodes, and the graph of the training edges."""
        encoder = GraphEncoder.fit(rows, weight)
        encoder.training = rows.only() if isinstance(rows, LinkRows) else None
        return encoder

    def source(self, job: Job, encoder: Any, feed: Feed, options: Mapping[str, Any]) -> Source:
        """A fifth of the training edges in each epoch; pairs that are evaluated, all at once."""
        dtype, rows = getattr(torch, feed.recipe.dtype), job.rows
        graph = encoder.training
        assert graph is not None and isinstance(rows, LinkRows)
        whole = typed(Batch.of((encoder.whole(graph),), torch.zeros(1)), dtype).inputs[0]
        if feed.training:
            return LinkSource(whole, graph, dtype, derive(feed.seed, "links"))
        targets = torch.from_numpy(rows.pairs)
        inputs = (whole._replace(targets=targets),)
        evaluated = Batch(inputs, job.y, job.weight, job.offset, job.index)
        return GraphSource(typed(evaluated, dtype), 0, shuffle=False)

    def recommend(
        self, model: Model, source: str, *, relation: str | None, top: int
    ) -> pd.DataFrame:
        """The nodes that most probably are linked to one, without its neighbours."""
        if relation is not None:
            raise UsageError("edges of one graph have no relations: leave --relation out.")
        encoder: Any = model.encoder
        kept = encoder.kept
        named = kept.ids is not None or not source.isdigit()
        (own,) = kept.positions([source] if named else [int(source)])
        others = np.setdiff1d(
            np.arange(len(kept)), np.append(kept.edge_index[1][kept.edge_index[0] == own], own)
        )
        pairs = np.stack([np.full(len(others), own), others], 1)
        chance = model.of_classes.probabilities(model.predictive(PairRows(kept, pairs)))[:, 1]
        best, place = chance.topk(min(top, len(chance)))
        names = kept.names[others[place.numpy()]]
        return pd.DataFrame({"node": names, "probability": best.numpy()})
