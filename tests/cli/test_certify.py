"""ansatz certify: the certificate of a saved model, on the command line."""

import json

import numpy as np
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


def test_an_unknown_group_is_told_with_the_nearest(places, capsys):
    data = str(places / "images.npz")
    assert run(["certify", str(places / "model"), data, "--group", "flop"]) == 2
    assert "flip" in capsys.readouterr().err
