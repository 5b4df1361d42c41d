"""ansatz certify: the certificate of a saved model, on the command line."""

import json

import numpy as np
import pandas as pd
import pytest

from ansatz import Classifier, Regressor
from ansatz.cli.main import run


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A model that looks at the mean of an image alone, and images."""
    folder = tmp_path_factory.mktemp("certify")
    images = np.random.default_rng(0).integers(0, 255, (30, 8, 8)).astype(np.uint8)
    images[::2] //= 2
    model = Classifier(network="linear_grid", epochs=2, holdout=0.0, augment=False)
    model.fit(images, np.arange(30) % 2)
    weight = model.model_.network.output.weight
    weight.data[:] = weight.data.mean(1, keepdim=True)  # every cell counts alike
    model.save(folder / "model")
    np.savez(folder / "images.npz", x=images)
    table = Regressor(network="linear").fit(np.arange(9.0).reshape(-1, 1), np.arange(9.0))
    table.save(folder / "table")
    return folder


def certified(places, capsys, *options):
    arguments = ["certify", str(places / "model"), str(places / "images.npz"), "--json", *options]
    assert run(arguments) == 0
    return {row["group"]: row for row in json.loads(capsys.readouterr().out)}


def test_a_mean_of_all_cells_is_invariant_to_flips_and_turns(places, capsys):
    found = certified(places, capsys, "--group", "flip", "--group", "rotation90")
    assert found["flip"]["largest"] < 1e-5 and found["rotation90"]["largest"] < 1e-5


def test_what_leaves_the_frame_changes_the_mean(places, capsys):
    assert certified(places, capsys, "--samples", "8")["shift"]["relative"] > 0.01


def test_tables_have_no_symmetry_to_certify(places, capsys):
    assert run(["certify", str(places / "table"), str(places / "images.npz")]) == 2
    assert "no symmetry" in capsys.readouterr().err


def test_an_unknown_group_is_reported_with_the_nearest(places, capsys):
    data = str(places / "images.npz")
    assert run(["certify", str(places / "model"), data, "--group", "flop"]) == 2
    assert "flip" in capsys.readouterr().err


def test_a_signal_that_is_shifted_changes_the_answer(tmp_path, capsys):
    signals = np.random.default_rng(0).normal(size=(40, 20)).astype(np.float32)
    model = Classifier(x="grid", network="linear_grid", epochs=3, augment=False)
    model.fit(signals, (signals[:, 3] > 0).astype(int)).save(tmp_path / "model")
    pd.DataFrame(signals).add_prefix("t").to_csv(tmp_path / "signals.csv", index=False)
    arguments = ["certify", str(tmp_path / "model"), str(tmp_path / "signals.csv"), "--json"]
    assert run(arguments) == 0
    found = {row["group"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(found) == {"shift", "cyclic_shift"}
    assert min(row["relative"] for row in found.values()) > 0.1
    assert run([*arguments, "--group", "rotation90"]) == 2
    assert "rotation90 does not act" in capsys.readouterr().err


@pytest.mark.parametrize("group", ["time_shift", "permutation", "point_rotation"])
def test_what_does_not_act_on_grids_is_refused(places, capsys, group):
    arguments = ["certify", str(places / "model"), str(places / "images.npz"), "--group", group]
    assert run(arguments) == 2
    assert "does not act on such grids" in capsys.readouterr().err


def test_other_numbers_than_the_fits_are_refused(places, tmp_path, capsys):
    np.savez(tmp_path / "floats.npz", x=np.random.default_rng(0).random((5, 8, 8)))
    assert run(["certify", str(places / "model"), str(tmp_path / "floats.npz")]) == 3
    assert "fitted to bytes" in capsys.readouterr().err


def test_an_ensemble_has_a_certificate(tmp_path, capsys):
    images = np.random.default_rng(0).integers(0, 255, (40, 8, 8)).astype(np.uint8)
    settings = {"network": "linear_grid", "epochs": 1, "inference": "ensemble", "members": 2}
    Classifier(**settings).fit(images, np.arange(40) % 2).save(tmp_path / "model")
    np.savez(tmp_path / "images.npz", x=images)
    arguments = ["certify", str(tmp_path / "model"), str(tmp_path / "images.npz"), "--json"]
    assert run([*arguments, "--group", "flip"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["largest"] >= 0
