"""Graphs, the nodes of one graph, and pairs of its nodes, as examples."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz import inference
from ansatz.data import Batch
from ansatz.data.batch import map_tensors
from ansatz.data.graphs.graphs import Graphs
from ansatz.data.graphs.rows import NodeRows, PairRows
from ansatz.data.graphs.source import GraphSource
from ansatz.data.source import Source
from ansatz.errors import UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.contracts.exporter import Exporter
from ansatz.fitting.contracts.inference import Posterior
from ansatz.fitting.contracts.structure import Facts, Feed, Moving
from ansatz.fitting.job import Job
from ansatz.fitting.model import Model, Trained
from ansatz.fitting.problem import Problem
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.request import settings_of
from ansatz.fitting.split import Parts, SplitJob, holdout_share, split
from ansatz.fitting.task import Task, TrainingPlan
from ansatz.fitting.tensor_structure import Read, TensorStructure
from ansatz.fitting.training import typed
from ansatz.inference.registry import DEFAULT
from ansatz.likelihoods import Likelihood
from ansatz.networks import Summary, summary
from ansatz.seeds import derive
from ansatz.spec import InputSpec
from ansatz.structures.graph.encoder import GraphEncoder, load_encoder
from ansatz.structures.graph.from_python import as_graphs, as_nodes, as_pairs
from ansatz.structures.graph.reading import read_graphs
from ansatz.structures.graph.reading_again import read_graphs_again
from ansatz.structures.graph.recipe import graph_recipe, linear_recipe, node_recipe
from ansatz.symmetry import Group, NodePermutation
from ansatz.training import Supervised, current_processes

AT_ONCE = 1_024  # graphs that are predicted at once
MOST_CLASSES = 100  # that the data's own outcomes, whole numbers, may be the codes of
_STRUCTURES: dict[type, str] = {Graphs: "graph", NodeRows: "nodes", PairRows: "node_pairs"}


class GraphStructure(TensorStructure):
    """Graphs as rows; a network's input is a :class:`~ansatz.layers.GraphBatch`."""

    name: ClassVar[str] = "graph"
    unit: ClassVar[tuple[str, str]] = ("graph", "graphs")
    linear_networks: ClassVar[tuple[str, ...]] = ("linear_graph",)

    def leaves_to(self, network: str | nn.Module) -> frozenset[str]:
        """The shape and dropout of networks, which have defaults of their own."""
        return settings_of("network")

    def network(self, axis: str) -> str:
        """A graph isomorphism network."""
        return "gin"

    def linear_network(self, axis: str) -> str:
        """A generalised linear model of the means of features and of counts."""
        return self.linear_networks[0]

    def network_options(
        self, network: str | nn.Module, recipe: Recipe, spec: Any
    ) -> dict[str, Any]:
        """Less dropout than networks of nodes have; others have their own defaults."""
        return {"dropout": recipe.dropout} if network == self.network("row") else {}

    # Reading.

    def read(self, data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any]) -> Read:
        """Graphs with the columns beside them, or one graph with the columns of its nodes."""
        return read_graphs(data, column_roles, reader)

    def problem(self, data: Any, column_roles: ColumnRoles, **how: Any) -> Problem:
        """The rows that the target stands beside: graphs, nodes, or pairs of nodes."""
        reader = {**(how.get("reader") or {}), "drop": list(how.get("drop") or ())}
        found = data if isinstance(data, Read) else self.read(data, column_roles, reader)
        how = {**how, "drop": []}
        if how.get("likelihood") is None and not column_roles.target:
            how["likelihood"] = _of_codes(found)
        made = super().problem(found, column_roles, **how)
        if "scaffold" in made.frame and reader.get("split") == "scaffold":
            roles = made.column_roles.model_copy(update={"group": "scaffold"})
            made = made._replace(column_roles=roles)
        return made._replace(structure=_STRUCTURES.get(type(made.rows), self.name))

    def read_again(
        self, model: Model, data: str, *, outcomes: bool, options: Mapping[str, Any], notify: Any
    ) -> Any:
        """Other graphs; for a model of nodes names of its nodes, or new nodes with edges."""
        return read_graphs_again(self, model, data, outcomes=outcomes, options=options, say=notify)

    def as_rows(self, X: Any) -> Any:
        """Graphs of any library."""
        return as_graphs(X)

    def from_python(
        self, X: Any, *, estimator: Any, reset: bool, roles: Mapping[str, str] | None = None
    ) -> Any:
        """Rows; of a fitted model, names of its nodes or pairs too."""
        if not reset and not isinstance(X, Read):
            X = self.rows_of(X, estimator.model_.encoder)
        return super().from_python(X, estimator=estimator, reset=reset, roles=roles)

    def rows_of(self, X: Any, encoder: GraphEncoder) -> Any:
        """Rows that a fitted model predicts."""
        return self.as_rows(X)

    def summary(self, model: Model) -> Summary | str:
        """The size of the network."""
        return summary(model.posterior.networks[0].network, model.encoder.spec)

    # Splits.

    def split(self, problem: Problem, task: Task, job: Job, test: float) -> SplitJob | None:
        """Isomorphic graphs stay on one side, whatever their outcomes."""
        if job.group is not None or job.time is not None or not isinstance(job.rows, Graphs):
            return None
        place = job.rows.isomorphic()
        twice = len(place) - int((np.bincount(place) == 1).sum())
        job = job._replace(group=place) if twice else job
        given = self.is_given(problem, task, test)
        parts = split(job, task, test, task.settings.seed, given=given)
        note = (
            f"{twice} of {len(place)} graphs have a duplicate: equal colours of Weisfeiler and "
            "Lehman; they stay on one side of the split."
        )
        return SplitJob.of(job, parts)._replace(notes=(note,) if twice else ())

    def is_given(self, problem: Problem, task: Task, test: float) -> bool:
        """Tests whether the test is the data's own."""
        return problem.has_own_test and test == task.outcome.test_share

    # Recipe and encoder.

    def recipe(self, facts: Facts) -> Recipe:
        """By the number of graphs."""
        return graph_recipe(facts)

    def encoder(
        self, rows: Any, weight: NDArray[np.float64], recipe: Recipe, options: Mapping[str, Any]
    ) -> GraphEncoder:
        """The columns of training nodes and edges; nodes and pairs keep their graph."""
        return GraphEncoder.fit(rows, weight)

    def load_encoder(self, state: Mapping[str, Any]) -> GraphEncoder:
        """The encoder of a saved model."""
        return load_encoder(state)

    # Training.

    def batch(self, job: Job, encoder: Any, recipe: Recipe) -> Batch | None:
        """None: a graph is not a row of a tensor."""
        return None

    def adapt(self, network: nn.Module, encoder: Any, job: Job, objective: Supervised) -> nn.Module:
        """Shows the training rows to a network that standardises by them, and asks it once."""
        begin: Any = getattr(network, "begin", None)
        if begin is not None:
            begin(*self._inputs_of(network, encoder.inputs(job.rows, notes=[])))
        return super().adapt(network, encoder, job, objective)

    def _inputs_of(self, network: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        dtype = next(network.parameters()).dtype
        found: tuple[Any, ...] = map_tensors(
            lambda t: t.to(dtype) if t.is_floating_point() else t, inputs
        )
        return found

    def _two_rows(self, network: nn.Module, encoder: Any, job: Job) -> tuple[Any, ...]:
        return self._inputs_of(network, encoder.inputs(job.rows[slice(0, 2)], notes=[]))

    def source(self, job: Job, encoder: Any, feed: Feed, options: Mapping[str, Any]) -> Source:
        """Graphs in a new order each epoch; those that are evaluated in their own."""
        recipe = feed.recipe
        inputs = encoder.inputs(job.rows, notes=[])
        rows = typed(
            Batch(inputs, job.y, job.weight, job.offset, job.index), getattr(torch, recipe.dtype)
        )
        if not feed.training:
            return GraphSource(rows, AT_ONCE if feed.additive else 0, shuffle=False)
        return GraphSource(
            rows,
            recipe.batch_size,
            smallest=2 if feed.normalizes else 1,
            seed=derive(feed.seed, "rows"),
            shuffle=recipe.batch_size > 0,
        )

    # Linear models.

    def settle(
        self, recipe: Recipe, job: Job, network: str | nn.Module, options: Mapping[str, Any]
    ) -> Recipe:
        """Linear models have recipes of their own."""
        return linear_recipe(recipe) if network in self.linear_networks else recipe

    def baseline(
        self, likelihood: Likelihood, job: Job, seed: int
    ) -> tuple[Posterior | None, list[str]]:
        """The linear network, stopped by the rows that stop the network."""
        return self._trained(self.linear_networks[0], likelihood, job, seed), []

    def baselines(
        self, likelihood: Likelihood, job: Job, seed: int
    ) -> tuple[Mapping[str, Posterior], list[str]]:
        """The other linear networks by name."""
        names = self.linear_networks[1:]
        return {n: self._trained(n, likelihood, job, seed) for n in names}, []

    def _trained(self, network: str, likelihood: Likelihood, job: Job, seed: int) -> Posterior:
        facts = Facts(float(job.weight.sum()), job.rows.spec, job.target, not likelihood.additive)
        recipe = linear_recipe(self.recipe(facts))
        plan = TrainingPlan(self, network, {}, recipe, seed, {}, {"progress": 0})
        fitted = inference.create(DEFAULT).fit(plan, job._replace(trainer_options={}), likelihood)
        found: Posterior = fitted.posterior
        return found

    # Predictions.

    def raws(
        self,
        networks: Sequence[Trained],
        encoder: GraphEncoder,
        rows: Any,
        offset: Tensor | None,
        *,
        notes: list[str] | None,
        options: Mapping[str, Any],
    ) -> Iterator[Iterable[Tensor]]:
        """1,024 graphs at a time; nodes and pairs of one graph at once."""
        step = AT_ONCE if isinstance(rows, Graphs) else max(len(rows), 1)
        for first in range(0, max(len(rows), 1), step):
            part = slice(first, first + step)
            inputs = encoder.inputs(rows[part], notes=notes)
            extra = None if offset is None else offset[part]
            yield [network(inputs, extra) for network in networks]

    # Symmetries.

    def groups(self, spec: InputSpec) -> list[Group]:
        """Every way to name the nodes."""
        return [NodePermutation()]

    def moving(self, inputs: Any) -> Moving:
        """The whole batch: what is asked for moves with its nodes, and answers stay."""
        batch, *others = inputs
        return Moving((batch,), lambda moved: (moved, *others), False)

    def exporter(self, encoder: Any, names: Sequence[str] | None) -> Exporter | None:
        """None so far: the encoder is not a graph of operations."""
        return None


class NodeStructure(GraphStructure):
    """Nodes of one graph, which the model keeps."""

    name: ClassVar[str] = "nodes"
    unit: ClassVar[tuple[str, str]] = ("node", "nodes")
    linear_networks: ClassVar[tuple[str, ...]] = ("sgc", "linear_node")

    def network(self, axis: str) -> str:
        """A graph convolutional network."""
        return "gcn"

    def network_options(
        self, network: str | nn.Module, recipe: Recipe, spec: Any
    ) -> dict[str, Any]:
        """None: networks have their own defaults."""
        return {}

    def as_rows(self, X: Any) -> Any:
        """Nodes of one graph."""
        return as_nodes(X, None)

    def rows_of(self, X: Any, encoder: GraphEncoder) -> Any:
        """Nodes of any graph, or names of nodes of the model's own."""
        return as_nodes(X, encoder.kept)

    def recipe(self, facts: Facts) -> Recipe:
        """All nodes at once."""
        return node_recipe(facts)

    def settle(
        self, recipe: Recipe, job: Job, network: str | nn.Module, options: Mapping[str, Any]
    ) -> Recipe:
        """Refuses several processes."""
        if current_processes() is not None:
            raise UsageError(
                "one graph is trained as a whole: there is nothing to divide among processes. "
                "Leave --processes out."
            )
        return super().settle(recipe, job, network, options)

    def split(self, problem: Problem, task: Task, job: Job, test: float) -> SplitJob | None:
        """Published masks hold, and nodes outside them take no part; inductive fits see less."""
        own = self.is_given(problem, task, test)
        if own:
            parts = _masked(job, task)
        else:
            parts = split(job, task, test, task.settings.seed)
        found = SplitJob.of(job, parts)
        rest = len(job.y) - len(parts.learn) - len(parts.test)
        notes = []
        if own and rest:
            notes.append(
                f"{rest:,} nodes with the target are in none of the data's parts: their outcomes "
                "are not used (--test 0.2 splits all nodes anew)."
            )
        rows: Any = job.rows
        if rows.inductive:
            hidden = rows.positions[np.setdiff1d(np.arange(len(job.y)), parts.learn)]
            found = found._replace(learn=found.learn._replace(rows=_without(found.learn, hidden)))
            notes.append(
                f"inductive: {len(hidden):,} nodes and their edges are absent in training."
            )
        return found._replace(notes=tuple(notes))


def _masked(job: Job, task: Task) -> Parts:
    """The data's own parts; where none is for validation, a share of the training nodes."""
    assert job.part is not None
    learn = np.flatnonzero((job.part == "train") | (job.part == "validation"))
    valid = np.flatnonzero(job.part[learn] == "validation")
    test = np.flatnonzero(job.part == "test")
    if not len(valid):
        share = holdout_share(job, task, len(test) / len(job.y))
        from ansatz.fitting.job import take

        valid = np.sort(take(job, learn).split(seed=task.settings.seed, valid=share).valid)
    return Parts(learn, valid, test)


def _without(job: Job, hidden: NDArray[np.int64]) -> Any:
    rows: Any = job.rows
    return rows.without(hidden)


class NodePairStructure(NodeStructure):
    """Pairs of nodes of one graph, which the model keeps."""

    name: ClassVar[str] = "node_pairs"
    unit: ClassVar[tuple[str, str]] = ("pair", "pairs")

    def as_rows(self, X: Any) -> Any:
        """Pairs of nodes of one graph."""
        return as_pairs(X, None)

    def rows_of(self, X: Any, encoder: GraphEncoder) -> Any:
        """Pairs of any graph, or of names of nodes of the model's own."""
        return as_pairs(X, encoder.kept)

    def split(self, problem: Problem, task: Task, job: Job, test: float) -> SplitJob | None:
        """By the hash of both names, which the directions of a pair share."""
        return None


def _of_codes(found: Read) -> str | None:
    """The likelihood of the data's own outcomes where these are codes of classes."""
    values = None if found.target is None else found.frame[found.target]
    if values is None or values.dtype.kind not in "iu":
        return None
    if not 2 <= values.nunique() <= MOST_CLASSES:
        return None
    return "bernoulli" if values.nunique() == 2 else "categorical"
