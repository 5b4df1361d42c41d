"""The suites of molecules on small stand-ins."""

import numpy as np
import pytest

from ansatz import Potential
from ansatz.bench import molecules as bench
from ansatz.bench.finding import BenchOptions
from ansatz.data import Molecules
from ansatz.errors import DataError


def test_pairs_are_raced_beside_the_peers_that_are_there(monkeypatch):
    pytest.importorskip("ase")
    monkeypatch.setattr(bench, "ATOMS", 60)
    (found,) = bench.speed_molecules(BenchOptions(rounds=1))
    assert set(found.ratio) | set(found.missing) == {"ase", "matscipy"} and found.facts["pairs"] > 0


def test_the_bars_are_those_of_water():
    row = {
        "force_rmse": 0.05, "energy_rmse": 5e-4, "zero_forces": 0.8, "drift": 2.0,
        "seed": 0, "commit": "x", "steps": 10, "parameters": 7,
        "processor_seconds": 60.0, "seconds": 70.0,
    }  # fmt: skip
    forces, energy, minutes, drift = bench._findings("water", [row])
    assert (forces.ours, energy.ours, minutes.ours, drift.ours) == (0.05, 0.5, 1.0, 2.0)
    assert forces.holds and energy.holds and minutes.holds and not drift.holds


def test_the_drift_is_measured_on_a_model():
    pytest.importorskip("ase")
    x = np.random.default_rng(0).normal(size=(6, 2, 3)) * 0.02 + [[0, 0, 0], [0, 0, 1]]
    frames = Molecules(x, ["H", "H"], energy=np.zeros(6), forces=np.zeros((12, 3)))
    model = Potential(network="element_counts").fit(frames)
    assert bench.drift(model, frames, steps=40) < 1e-9


def test_missing_data_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("ANSATZ_DATA", str(tmp_path))
    with pytest.raises(DataError, match="the suite needs DeePMD's example of water"):
        bench.quality_molecules(BenchOptions())
