"""Nodes, pairs and graphs in the pipeline: reading, splits that cannot leak, saving."""

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_array_equal

import ansatz
from ansatz import Classifier, Regressor
from ansatz.data import Graph, Graphs
from ansatz.data.graphs import from_smiles
from ansatz.errors import DataError, UsageError
from ansatz.fitting.replay import replay
from ansatz.report.baselines import baselines
from ansatz.report.gathering import replayed
from ansatz.structures.graph.encoder import GraphEncoder

RNG = np.random.default_rng(0)
N = 40
ENDS = np.array([(k, (k + d) % N) for k in range(N) for d in (1, 2)])
CLASS = np.array(["low", "high"])[(np.arange(N) >= N // 2).astype(int)]
NODES = pd.DataFrame(
    {
        "id": [f"n{k}" for k in range(N)],
        "a": np.round((np.arange(N) >= N // 2) + RNG.normal(size=N), 3),
        "town": RNG.choice(["Jena", "Gera", "Weimar"], N),
        "y": CLASS,
    }
)
EDGES = pd.DataFrame({"one": NODES.id[ENDS[:, 0]].values, "two": NODES.id[ENDS[:, 1]].values})


@pytest.fixture
def files(tmp_path):
    NODES.to_csv(tmp_path / "nodes.csv", index=False)
    EDGES.to_csv(tmp_path / "edges.csv", index=False)
    return tmp_path


def fit(folder, **options):
    options = {"options": {"steps": 10}, **options}
    return ansatz.fit(folder / "nodes.csv", edges=str(folder / "edges.csv"), target="y", **options)


def weights(fit):
    return fit.fitted.posterior.tensors()


def assert_same_weights(one, other, *, same=True):
    a, b = weights(one), weights(other)
    assert all(torch.equal(a[name], b[name]) for name in a) == same


def test_tables_of_nodes_and_edges(files):
    found = fit(files)
    rows = found.fitted.encoder.kept
    assert len(rows) == N and rows.edge_index.shape[1] == 2 * len(ENDS)
    assert found.structure == "nodes" and found.likelihood == "bernoulli"
    assert {"linear_node"} == set(found.baselines) and found.linear is not None
    assert found.fitted.encoder.nodes.names[0] == "a"  # neither id nor y is a feature


def test_columns_are_standardised_by_training_nodes_alone():
    x = np.column_stack([np.arange(6.0), np.arange(6.0) % 2])
    graph = Graph.of([[0, 1, 2], [1, 2, 3]], x=x)
    encoder = GraphEncoder.fit(graph.nodes([0, 1, 2]), np.ones(3))
    (batch,) = encoder.inputs(graph.nodes())
    torch.testing.assert_close(batch.x[:3, 0].mean(), torch.tensor(0.0, dtype=torch.float64))
    assert batch.x[3:, 0].min() > 1


@pytest.mark.parametrize("inductive", [False, True])
def test_test_outcomes_change_no_bit_of_the_weights(files, inductive):
    before = fit(files, inductive=inductive)
    test = before.split_problem[2].test
    changed = NODES.copy()
    changed.loc[test, "y"] = np.where(changed.y[test] == "low", "high", "low")
    if inductive:
        changed.loc[test, "a"] += 100.0
    part = np.full(N, "train")
    part[test] = "test"
    for frame, name in ((NODES, "one"), (changed, "two")):
        folder = files / name
        folder.mkdir()
        frame.assign(part=part).to_csv(folder / "nodes.csv", index=False)
        EDGES.to_csv(folder / "edges.csv", index=False)
    one, two = (fit(files / name, inductive=inductive) for name in ("one", "two"))
    assert_array_equal(one.split_problem[2].test, test)
    assert_same_weights(one, two)
    assert one.metrics != two.metrics


def test_features_of_test_nodes_count_in_a_transductive_fit_alone(files):
    part = np.array(["train", "test"])[np.arange(N) % 4 == 0].tolist() if False else None
    mask = np.where(np.arange(N) % 4 == 0, "test", "train")
    found = {}
    for inductive in (False, True):
        for shift in (0.0, 5.0):
            folder = files / f"{inductive}{shift}"
            folder.mkdir()
            moved = NODES.assign(part=mask, a=NODES.a + shift * (mask == "test"))
            moved.to_csv(folder / "nodes.csv", index=False)
            EDGES.to_csv(folder / "edges.csv", index=False)
            found[inductive, shift] = fit(folder, inductive=inductive)
    assert part is None
    assert_same_weights(found[True, 0.0], found[True, 5.0])
    assert_same_weights(found[False, 0.0], found[False, 5.0], same=False)


def test_published_parts_hold_and_other_nodes_take_no_part(files):
    part = np.array(["train", "validation", "test", ""])[np.arange(N) % 4]
    NODES.assign(part=part).to_csv(files / "nodes.csv", index=False)
    found = fit(files, out=files / "model")
    parts = found.split_problem[2]
    again = replay(files / "model")
    assert_array_equal(again.parts.learn, parts.learn)  # outcomes of other nodes stay unseen
    linear = {each.name: each for each in baselines(replayed(again)).forecasts}["linear"]
    scores = linear.evaluate(again.test.weight)
    assert scores["nll"] == pytest.approx(found.linear["nll"], rel=1e-6)
    assert_array_equal(parts.test, np.flatnonzero(part == "test"))
    assert_array_equal(parts.learn[parts.valid], np.flatnonzero(part == "validation"))
    assert found.rows == {"train": 10, "valid": 10, "test": 10}
    assert any("10 nodes with the target are in none" in note for note in found.notes)
    assert fit(files, test=0.25).rows != found.rows  # asked for, all nodes are split anew


def test_a_saved_model_keeps_its_graph(files, tmp_path):
    found = fit(files, out=tmp_path / "model")
    again = ansatz.load(tmp_path / "model")
    ids = ["n3", "n39", "n0"]
    one = found.model.predict_proba(ids)
    assert_array_equal(one, again.predict_proba(ids))
    other = found.split_problem[1].rows[[3, 39, 0]]
    assert_array_equal(one, found.model.predict_proba(other))
    with pytest.raises(DataError, match="row 2: the graph has no node n99"):
        again.predict(["n3", "n99"])


def test_new_nodes_bring_their_edges(files, tmp_path):
    found = fit(files, out=tmp_path / "model")
    new = pd.DataFrame({"id": ["z"], "a": [0.4], "town": ["Jena"]})
    new.to_csv(tmp_path / "new.csv", index=False)
    pd.DataFrame({"one": ["z", "n1"], "two": ["n4", "z"]}).to_csv(tmp_path / "e.csv", index=False)
    model = ansatz.load(tmp_path / "model")
    read = model.model_.structure.read_again(
        model.model_,
        str(tmp_path / "new.csv"),
        outcomes=False,
        options={"edges": str(tmp_path / "e.csv")},
        notify=lambda note: None,
    )
    (frame,) = read.frames(model)
    both = pd.concat([NODES.drop(columns="y"), new])
    index = np.append(ENDS.T, [[N, 1], [4, N]], axis=1)
    graph = Graph.of(index, both.drop(columns="id"), ids=both.id)
    whole = found.model.predict_proba(graph.nodes(["z"]))
    assert frame["id"].tolist() == ["z"]
    np.testing.assert_allclose(frame[["p_high", "p_low"]].to_numpy(), whole, rtol=1e-12)


def test_an_edge_to_an_absent_node_is_named_with_file_and_row(files):
    EDGES.iloc[:3].assign(two=["n1", "n2", "nowhere"]).to_csv(files / "edges.csv", index=False)
    with pytest.raises(DataError, match=r"edges\.csv, row 3: the graph has no node nowhere"):
        fit(files)
    twice = pd.concat([NODES, NODES.iloc[:1]])
    twice.to_csv(files / "nodes.csv", index=False)
    with pytest.raises(DataError, match=r"nodes\.csv, the id n0 names two nodes: row 41"):
        fit(files)


def test_an_ensemble_predicts_nodes_and_comes_back(tmp_path):
    graph = Graph.of(ENDS.T, x=NODES[["a", "town"]])
    model = Classifier(inference="ensemble", members=2, steps=5).fit(graph.nodes(), CLASS)
    model.save(tmp_path / "model")
    again = ansatz.load(tmp_path / "model")
    assert_array_equal(again.predict_proba(np.arange(5)), model.predict_proba(graph.nodes()[:5]))


def test_pairs_of_nodes_are_rows():
    graph = Graph.of(ENDS.T, x=NODES[["a"]])
    pairs = graph.pairs()
    model = Regressor(steps=5).fit(pairs, RNG.normal(size=len(pairs)))
    assert_array_equal(model.predict([[0, 1]]), model.predict(pairs[:1]))
    keys = Graph.of(ENDS.T, num_nodes=N).pairs([[3, 4], [4, 3], [5, 3]]).content_keys()
    assert keys[0] == keys[1] != keys[2]  # both directions on one side of every split


# Graphs.


def rings(count):
    return [
        Graph.of(
            [list(range(3 + k % 5)), [*range(1, 3 + k % 5), 0]], x=RNG.normal(size=(3 + k % 5, 2))
        )
        for k in range(count)
    ]


def test_a_graph_alone_and_in_a_batch_have_one_prediction():
    graphs = rings(30)
    model = Regressor(steps=5).fit(graphs, np.array([len(g) for g in graphs], dtype=float))
    whole = model.predict(graphs)
    for k in (0, 7):
        np.testing.assert_allclose(model.predict([graphs[k]]), whole[[k]], rtol=0, atol=1e-12)
    order = RNG.permutation(6)
    moved = Graph.of(np.argsort(order)[graphs[3].edge_index], x=graphs[3].x[order])
    np.testing.assert_allclose(model.predict([moved]), whole[[3]], rtol=0, atol=1e-10)


def test_isomorphic_graphs_stay_on_one_side_whatever_their_outcomes(tmp_path):
    graphs = rings(20)
    orders = [RNG.permutation(len(g)) for g in graphs]
    copies = [
        Graph.of(np.argsort(p)[g.edge_index], x=g.x[p]) for g, p in zip(graphs, orders, strict=True)
    ]
    both = Graphs.of(graphs + copies)
    path = tmp_path / "g.npz"
    np.savez(
        path,
        x=both.union.x,
        edge_index=both.union.edge_index,
        offsets=both.offsets,
        y=RNG.normal(size=40),
    )
    found = ansatz.fit(path, options={"steps": 5}, out=tmp_path / "model")
    test = set(found.split_problem[2].test)
    assert test == set(replay(tmp_path / "model").parts.test)  # a report has the same rows
    assert test and {(k + 20) % 40 for k in test} == test
    assert any("40 of 40 graphs have a duplicate" in note for note in found.notes)


def test_molecules_of_a_table_and_their_scaffolds(tmp_path):
    smiles = ["Cc1ccccc1", "Oc1ccccc1", "C1CCCCC1C", "OC1CCCCC1", "CCO", "CCC", "C1CC1", "CC1CC1"]
    frame = pd.DataFrame({"m": smiles * 3, "y": np.arange(24.0), "name": "x"})
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = ansatz.fit(
        tmp_path / "t.csv", target="y", smiles="m", split="scaffold", options={"steps": 5}
    )
    parts = found.split_problem[2]
    rings = found.split_problem[0].frame["scaffold"].to_numpy()
    assert len(parts.test) and not set(rings[parts.test]) & set(rings[parts.learn])
    assert any("not features: name" in note for note in found.notes)
    alone = found.model.predict([from_smiles("CCO")])
    assert alone.shape == (1,)


def test_empty_and_one_node_graphs_are_valid():
    graphs = [*rings(12), Graph.of(np.zeros((2, 0), int), x=np.zeros((1, 2)))]
    graphs.append(Graph.of(np.zeros((2, 0), int), x=np.zeros((0, 2))))
    model = Regressor(steps=3).fit(graphs, np.arange(14.0))
    assert np.isfinite(model.predict(graphs)).all()


def test_nodes_are_not_graphs():
    graph = Graph.of(ENDS.T, x=NODES[["a"]])
    model = Classifier(steps=3).fit(graph.nodes(), CLASS)
    with pytest.raises((DataError, UsageError)):
        model.predict(Graphs.of([graph]))


def test_one_graph_is_not_divided_among_processes(monkeypatch):
    graph = Graph.of([[0, 1, 2, 3], [1, 2, 3, 0]], x=torch.eye(4).numpy())
    monkeypatch.setattr("ansatz.structures.graph.structure.current_processes", object)
    with pytest.raises(UsageError, match="nothing to divide among processes"):
        Classifier(steps=2).fit(graph.nodes(), [0, 1, 0, 1])
