"""Everyone trains the same network by the same number of steps; never a test of times."""

import numpy as np
import pytest
import torch

from ansatz.bench import speed
from ansatz.bench.finding import BenchOptions
from ansatz.bench.mlp_task import hand_loop, large, network, tiny
from ansatz.bench.peers import PEERS, installed
from ansatz.bench.speed import ours
from ansatz.estimators import Classifier, Regressor


@pytest.fixture(autouse=True)
def single_precision():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(before)


@pytest.fixture
def fitted(monkeypatch):
    """The estimator that was fitted."""
    kept = []
    for kind in (Classifier, Regressor):
        fit = kind.fit
        monkeypatch.setattr(
            kind, "fit", lambda self, *a, fit=fit, **k: (kept.append(self), fit(self, *a, **k))[1]
        )
    return kept


@pytest.mark.parametrize("task", [tiny(epochs=2), large(rows=300, epochs=2)], ids=["tiny", "large"])
def test_ours_is_the_same_network_trained_for_the_same_steps_on_all_rows(task, fitted):
    ours(task)
    (model,) = fitted
    shapes = [tuple(p.shape) for p in network(task).parameters()]
    assert [tuple(p.shape) for p in model.model_.network.parameters()] == shapes
    assert model.history_.steps == task.steps == task.epochs * -(-len(task.x) // task.batch)
    assert model.recipe_.holdout == 0 and type(model.model_.network.activation).__name__ == "ReLU"


@pytest.mark.parametrize("peer", [peer for peer in PEERS if peer in ("scikit-learn", "hand loop")])
def test_peers_learn_the_task(peer):
    task = tiny(epochs=8)
    assert task.score(PEERS[peer][1](task)(task.x)) > 0.9
    assert task.score(ours(task)(task.x)) > 0.9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("peer", list(PEERS))
def test_every_peer_learns_the_task(peer):
    if not installed(peer):
        pytest.skip(f"{peer} is not installed")
    task = tiny()
    assert task.score(PEERS[peer][1](task)(task.x)) > 0.9


def test_the_large_task_is_the_announced_one():
    task = large(rows=200)
    assert task.sizes == (784, 256, 128, 10) and task.batch == 128 and task.x.dtype == np.float32


def test_digits_are_generated_where_mnist_is_not(monkeypatch, tmp_path):
    monkeypatch.setenv("ANSATZ_DATA", str(tmp_path))
    task = large(rows=500, epochs=30)
    assert task.source == "generated"
    assert task.score(hand_loop(task)(task.x)) > 0.9


def test_a_missing_peer_is_reported_and_no_error(monkeypatch):
    monkeypatch.setattr("ansatz.bench.peers.installed", lambda name: name == "hand loop")
    monkeypatch.setattr("ansatz.bench.mlp_task.tiny", lambda seed: tiny(seed, epochs=1))
    (found,) = speed.speed_tiny(BenchOptions(rounds=1))
    assert set(found.missing) >= {"skorch", "keras", "scikit-learn"} and not found.limit
    assert set(found.peers) == {"hand loop", "matrix products"} and found.holds
