"""Links: what is predicted is hidden, negatives know training edges only, ranks are filtered."""

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch
from numpy.testing import assert_array_equal
from sklearn.metrics import average_precision_score

import ansatz
from ansatz import LinkPredictor, networks, structures
from ansatz.data import Graph
from ansatz.data.graphs import to_networkx
from ansatz.data.graphs.links import LinkRows, LinkSource, absent_pairs, pair_codes
from ansatz.errors import UsageError
from ansatz.fitting.contracts.structure import Feed
from ansatz.layers import GraphBatch
from ansatz.metrics import average_precision
from ansatz.spec import InputSpec

N = 30
DRAW = np.random.default_rng(0)
ENDS = np.array([(a, b) for a in range(N) for b in range(a) if (a - b) % 3 == 0 and (a + b) % 5])
GRAPH = Graph.of(ENDS.T, x=DRAW.normal(size=(N, 4)))


@pytest.fixture(scope="module")
def fit(tmp_path_factory):
    path = tmp_path_factory.mktemp("links") / "g.npz"
    np.savez(path, x=GRAPH.x, edge_index=GRAPH.edge_index)
    return ansatz.fit(path, task="link", test=0.2, options={"steps": 30})


def codes(rows, mask=slice(None)):
    return set(pair_codes(GRAPH, rows.pairs[mask]))


def test_absent_pairs_are_different_and_no_edges():
    for nodes, count in ((N, 50), (2_000, 300)):
        graph = Graph.of(ENDS.T, num_nodes=nodes)
        found = absent_pairs(graph, count, np.random.default_rng(1))
        own = pair_codes(graph, found)
        assert len(set(own)) == count and not set(own) & set(pair_codes(graph, ENDS))
        assert (found[:, 0] != found[:, 1]).all()
    whole = Graph.of(np.array(list(networkx.complete_graph(5).edges)).T)
    assert len(absent_pairs(whole, 4, DRAW)) == 0


def test_test_edges_pass_no_message_and_both_directions_stay_together(fit):
    _, job, parts = fit.split_problem
    test = job.rows[parts.test]
    kept = fit.fitted.encoder.kept
    assert codes(test, test.exists) and test.exists.sum() < len(test)
    assert not codes(test, test.exists) & set(pair_codes(kept, kept.edge_index.T))
    learn = job.rows[parts.learn]
    assert codes(learn, learn.exists) == set(pair_codes(kept, kept.edge_index.T))


def test_a_batch_hides_what_it_predicts_and_negatives_know_training_edges_alone():
    rows = LinkRows.of(GRAPH)
    learn = rows[np.arange(0, len(rows), 2)]
    structure, estimator = structures.create("links"), LinkPredictor()
    job = estimator.read(learn.beside(learn.only()), learn.exists)
    recipe = estimator.task(learn).recipe(job)
    encoder = structure.encoder(job.rows, job.weight.numpy(), recipe, {})
    source = structure.source(job, encoder, Feed(recipe, 0, True), {})
    assert isinstance(source, LinkSource)
    own, seen, missed = learn.only(), set(), set(codes(rows, rows.exists)) - codes(learn)
    own_codes = set(pair_codes(own, own.edge_index.T))
    for epoch in range(40):
        (batch,) = source.batches(epoch)
        graph, pairs = batch.inputs[0], batch.inputs[0].targets.numpy()
        positive = set(pair_codes(GRAPH, pairs[batch.target.numpy() == 1]))
        negative = set(pair_codes(GRAPH, pairs[batch.target.numpy() == 0]))
        messages = set(pair_codes(GRAPH, graph.edges.edge_index.numpy().T))
        assert len(positive) == len(negative) == own.pair_index.shape[1] // 5
        assert positive | messages == own_codes and not positive & messages
        assert not negative & own_codes
        seen |= negative
    assert seen & missed  # an edge for the test may be drawn: nobody knows of it
    again = next(iter(source.batches(7)))
    other = structure.source(job, encoder, Feed(recipe, 0, True), {})
    assert torch.equal(again.inputs[0].targets, next(iter(other.batches(7))).inputs[0].targets)


def test_altering_test_edges_changes_no_bit_of_the_weights():
    rows = LinkRows.of(GRAPH)
    learn = rows[np.arange(len(rows)) % 3 > 0]
    seen = learn.only()
    fits = []
    for known in (GRAPH, Graph.of(np.array([[0], [1]]), x=GRAPH.x)):
        part = LinkRows(seen, learn.pairs, learn.exists, known)
        fits.append(LinkPredictor(steps=10).fit(part))
    one, two = (fit.model_.posterior.tensors() for fit in fits)
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_adamic_adar_is_that_of_networkx_with_one_more_neighbour():
    batch = GraphBatch.of(
        torch.ones(N, 1),
        torch.from_numpy(GRAPH.edge_index),
        targets=torch.tensor([[0, 3], [1, 10], [2, 28]]),
    )
    network = networks.create("adamic_adar", InputSpec.graph(1, rows="pairs"), 1)
    given, found = to_networkx(GRAPH), network.numbers(batch)
    for (u, v), row in zip(batch.targets.tolist(), found, strict=True):
        common = networkx.common_neighbors(given, u, v)
        total = sum(1 / np.log1p(given.degree[k]) for k in common)
        one, other = np.log1p(given.degree[u]), np.log1p(given.degree[v])
        expected = torch.tensor([np.log1p(total), one + other, one * other])
        torch.testing.assert_close(row, expected, rtol=1e-12, atol=0)


def test_ranks_are_those_of_a_loop_over_all_nodes(fit):
    _, job, parts = fit.split_problem
    test = job.rows[parts.test].beside(fit.fitted.encoder.kept)
    chance = np.full((N, N), -np.inf)
    adjacent = scipy.sparse.csr_matrix(
        (np.ones(GRAPH.edge_index.shape[1]), tuple(GRAPH.edge_index)), shape=(N, N)
    ).toarray()
    ranks = []
    for u, v in test.pairs[test.exists]:
        every = [w for w in range(N) if w == v or (w != u and not adjacent[u, w])]
        chance = fit.model.predict_proba([[u, w] for w in every])[:, 1]
        own = chance[every.index(v)]
        ranks.append(1 + (chance > own).sum() + ((chance == own).sum() - 1) / 2)
    assert fit.metrics["mrr"] == pytest.approx(np.mean(1 / np.array(ranks)), rel=1e-9)
    assert fit.metrics["hits@10"] == pytest.approx(np.mean(np.array(ranks) <= 10))


def test_average_precision_is_scikit_learns():
    y, score = torch.from_numpy(DRAW.integers(0, 2, 60)), DRAW.integers(0, 9, 60) / 10
    expected = average_precision_score(y, score)
    assert float(average_precision(y, torch.from_numpy(score))) == pytest.approx(expected)


def test_a_saved_model_answers_pairs_and_recommends_strangers(fit, tmp_path):
    fit.model.save(tmp_path / "model")
    again = ansatz.load(tmp_path / "model")
    pairs = [[0, 3], [5, 9]]
    assert_array_equal(again.predict_proba(pairs), fit.model.predict_proba(pairs))
    kept = fit.fitted.encoder.kept
    found = again.recommend(4, top=5)
    known = kept.edge_index[1][kept.edge_index[0] == 4]
    assert len(found) == 5 and not set(found["node"]) & {4, *known}
    assert (np.diff(found["probability"]) <= 0).all()


def test_links_take_a_graph_alone():
    with pytest.raises(UsageError, match="takes a graph alone"):
        LinkPredictor().fit(GRAPH, np.ones(3))
    with pytest.raises(UsageError, match="takes a Graph, got list"):
        LinkPredictor().fit([[0, 1]])
