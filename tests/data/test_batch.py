"""A batch is cut in one place, and every field by its own rule."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from ansatz.data import Batch, TensorSource
from ansatz.data.batch import (
    Ragged,
    all_tensors,
    count_rows,
    first_tensor,
    map_tensors,
    take_rows,
    to_device,
)
from ansatz.data.source import MemberSource
from ansatz.training.gradient_step import micro_batches
from ansatz.training.processes.group import Processes


class Survival(NamedTuple):
    time: Tensor
    event: Tensor


class Graphs(NamedTuple):
    """One small graph per row; the nodes of all graphs one behind the other."""

    nodes: Tensor  # (N, D)
    graph: Tensor  # (N,), the row of each node
    count: Tensor  # 0-d, the number of graphs

    def count_rows(self) -> int:
        return int(self.count)

    def take_rows(self, rows: slice | Tensor) -> "Graphs":
        kept = torch.arange(self.count_rows())[rows]
        places = [(self.graph == row).nonzero().squeeze(1) for row in kept]
        sizes = torch.tensor([len(place) for place in places], dtype=torch.int64)
        graph = torch.arange(len(kept)).repeat_interleave(sizes)
        nodes = self.nodes[torch.cat([*places, self.graph[:0]])]
        return Graphs(nodes, graph, torch.tensor(len(kept)))


class Opaque:
    """A field that is no tuple."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    def count_rows(self) -> int:
        return len(self.x)

    def take_rows(self, rows: slice | Tensor) -> "Opaque":
        return Opaque(self.x[rows])

    def map_tensors(self, function) -> "Opaque":
        return Opaque(function(self.x))


def batch_of(*inputs, rows=5, **fields):
    return Batch.of(inputs or (torch.randn(rows, 2),), torch.arange(float(rows)), **fields)


every_choice = pytest.mark.parametrize(
    "rows",
    [slice(1, 4), slice(2, 2), slice(3, None), torch.tensor([4, 0, 0]), torch.arange(0)],
    ids=["run", "none", "tail", "index", "no index"],
)


@every_choice
def test_each_tensor_is_indexed_and_nested_tuples_stay_what_they_are(rows):
    target = Survival(torch.randn(5), torch.ones(5))
    inputs = (torch.randn(5, 2), (torch.arange(5), torch.randn(5, 3, 4)))
    batch = Batch.of(inputs, target, weight=torch.rand(5, 1), offset=torch.randn(5))
    taken = take_rows(batch, rows)
    assert isinstance(taken, Batch) and isinstance(taken.target, Survival)
    expected = [tensor[rows] for tensor in all_tensors(batch)]
    assert_close(all_tensors(taken), expected, rtol=0, atol=0)
    assert_close(all_tensors(take_rows(inputs, rows)), [t[rows] for t in all_tensors(inputs)])
    assert_close(take_rows(inputs[0], rows), inputs[0][rows])


@pytest.mark.parametrize("rows", [slice(None), slice(0, 9), torch.arange(5)])
def test_all_rows_in_their_order_are_the_batch_itself(rows):
    batch = batch_of()
    assert take_rows(batch, rows) is batch
    assert take_rows(batch, torch.arange(5).flip(0)) is not batch


@every_choice
def test_ragged_rows_are_cut_row_by_row(rows):
    texts = [torch.randn(n, 2) for n in (3, 0, 1, 4, 2)]

    def ragged(parts):
        lengths = torch.tensor([0, *map(len, parts)])
        return Ragged(torch.cat([torch.zeros(0, 2), *parts]), lengths.cumsum(0))

    order = torch.arange(5)[rows].tolist()
    taken = take_rows(batch_of(ragged(texts)), rows)
    assert_close(taken.inputs[0], ragged([texts[k] for k in order]))
    assert taken.index.tolist() == order


@every_choice
def test_a_graph_with_as_many_nodes_as_rows_is_cut_by_graphs(rows):
    graph = torch.tensor([0, 3, 3, 4, 0])  # five nodes in five graphs, two of them empty
    graphs = Graphs(torch.arange(5.0).unsqueeze(1), graph, torch.tensor(5))
    order = torch.arange(5)[rows].tolist()
    of_each = {0: [0.0, 4.0], 1: [], 2: [], 3: [1.0, 2.0], 4: [3.0]}
    taken = take_rows(batch_of(graphs), rows).inputs[0]
    assert taken.nodes.flatten().tolist() == [node for k in order for node in of_each[k]]
    assert taken.count_rows() == len(order)


def test_micro_batches_and_processes_cut_graphs_by_graphs():
    graphs = Graphs(torch.arange(4.0).unsqueeze(1), torch.tensor([0, 0, 0, 3]), torch.tensor(4))
    batch = batch_of(graphs, rows=4)
    shares = [Processes(rank, 2).part(batch) for rank in range(2)]
    for parts in (micro_batches(batch, 2), shares):
        nodes = [part.inputs[0].nodes.flatten().tolist() for part in parts]
        assert nodes == [[0.0, 1.0, 2.0], [3.0]]


def test_a_class_of_its_own_is_cut_moved_and_counted():
    field = Opaque(torch.randn(5, 2))
    batch = batch_of(field)
    assert_close(take_rows(batch, slice(1, 3)).inputs[0].x, field.x[1:3])
    assert to_device(batch, "meta").inputs[0].x.is_meta
    assert first_tensor(batch.inputs) is field.x and count_rows(batch.inputs) == 5
    assert_close(map_tensors(torch.neg, batch).inputs[0].x, -field.x)


def test_ragged_outcomes_count_as_rows_and_move():
    target = Ragged(torch.randn(7), torch.tensor([0, 3, 7]))
    batch = Batch.of(torch.randn(2, 1), target)
    assert len(batch.index) == len(batch.weight) == 2
    assert to_device(batch, "meta").target.offsets.is_meta


def test_what_holds_for_all_rows_is_not_cut():
    offset, temperature = torch.randn(1, 3), torch.tensor(2.0)
    taken = take_rows(batch_of(torch.randn(5, 2), temperature, offset=offset), slice(1, 3))
    assert taken.offset is offset and taken.inputs[1] is temperature
    assert take_rows(batch_of(rows=1, offset=offset), slice(0, 0)).offset.shape == (0, 3)


@pytest.mark.parametrize(
    "batch, name",
    [
        (batch_of(torch.zeros(5, 1), torch.zeros(4, 1)), r"inputs\[1\] has 4 rows"),
        (batch_of(torch.zeros(5, 1), torch.zeros(1, 1)), r"inputs\[1\] has 1 rows"),
        (batch_of(offset=torch.zeros(4)), "offset has 4 rows"),
        (batch_of(Ragged(torch.zeros(5), torch.tensor([0, 2, 5]))), r"inputs\[0\] has 2 rows"),
        (
            batch_of()._replace(target=Survival(torch.zeros(5), torch.zeros(3))),
            r"target\.event has 3 rows",
        ),
    ],
)
def test_a_field_of_another_length_is_named(batch, name):
    with pytest.raises(ValueError, match=f"{name} in a batch of 5.*take_rows"):
        take_rows(batch, slice(1, 3))


def test_a_field_that_nobody_can_cut_is_refused():
    with pytest.raises(TypeError, match=r"count_rows and take_rows.*got list"):
        take_rows(batch_of([1, 2, 3, 4, 5]), slice(1, 3))


@pytest.mark.parametrize("source", [TensorSource, MemberSource])
def test_a_source_of_tensors_names_the_field_that_is_none(source):
    batch = batch_of(torch.zeros(2, 1), Ragged(torch.zeros(5), torch.tensor([0, 2, 5])), rows=2)
    arguments = (batch, 2) if source is TensorSource else (batch, [torch.arange(2)], 2)
    with pytest.raises(TypeError, match=r"inputs\[1\] is of type Ragged.*source of its own"):
        source(*arguments)
