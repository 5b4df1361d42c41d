"""One volume with a few annotated slices, from the command line: fitted, evaluated, found again."""

import json
import os

import numpy as np
import pytest

import ansatz
from ansatz.cli.main import run
from ansatz.data.grids import read_grids
from ansatz.errors import DataError, UsageError
from ansatz.fitting.replay import replay
from ansatz.structures.grid import encoder as grid_source
from ansatz.training import loop as training_loop

UNET = ("--network", "unet", "--set", "depth=1", "--set", "width=4", "--set", "epochs=2")
QUICK = ("--network", "linear_pixels", "--set", "epochs=1", "--quiet")


def save(folder, x, mask):
    for kind, values in {"images": x, "masks": mask}.items():
        (folder / kind).mkdir(parents=True)
        np.save(folder / kind / "a.npy", values)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """One volume, every sixth slice of it labelled; another of another size, labelled whole."""
    folder = tmp_path_factory.mktemp("volumes")
    rng = np.random.default_rng(0)
    z, i, j = np.mgrid[:41, :14, :12]
    tube = (np.hypot(i - 7 + 2 * np.sin(z / 4), j - 6) < 4).astype(np.int16)
    x = (tube + 0.4 * rng.normal(size=tube.shape)).astype(np.float32)
    sparse = np.full_like(tube, -1)
    sparse[:, ::6] = tube[:, ::6]
    save(folder / "one", x, sparse)
    save(folder / "other", x[3:40, :13] + np.float32(0.01), tube[3:40, :13])
    here = os.getcwd()
    os.chdir(folder)
    try:
        assert run(["fit", "one", "--tiles", "5", *UNET, "--quiet", "--out", "model"]) == 0
    finally:
        os.chdir(here)
    return folder


def test_a_single_volume_is_fitted_and_evaluated_by_its_tiles(inside, tmp_path):
    done = inside("fit", "one", "--tiles", "5", *QUICK, "--out", tmp_path / "m")
    assert done.status == 0 and "4 train, 1 test" in done.out, done.err
    assert "5 tiles of 9 x 14 x 12 along its longest axis, the depth of 41 pixels" in done.err


def test_a_plan_is_of_tiles(inside):
    done = inside("fit", "one", "--tiles", "5", "--dry-run")
    assert done.status == 0 and "5 examples of 1 x 9 x 14 x 12 numbers" in done.out, done.err


def test_whole_volumes_of_another_size_are_predicted_and_evaluated(inside, tmp_path):
    done = inside("predict", "model", "other/images", "--out", tmp_path / "masks")
    assert done.status == 0 and "1 masks" in done.out, done.err
    done = inside("evaluate", "model", "other", "--json")
    assert done.status == 0 and not done.err, done.err
    assert 0.5 < json.loads(done.out)["accuracy"] <= 1


def test_evaluating_the_training_scene_warns_of_duplicates(inside):
    done = inside("evaluate", "model", "one")
    assert done.status == 0 and "1 of 1 evaluated rows (100 %) are duplicates" in done.err


def test_the_report_finds_the_tiles_again(inside, work, tmp_path, monkeypatch):
    done = inside("report", "model", "--out", tmp_path / "r.html")
    assert done.status == 0 and "evaluated on 1 test volumes" in done.out, done.err
    found = replay(work / "model")
    assert (len(found.learn.y), len(found.test.y)) == (4, 1)
    mask = np.load(work / "one/masks/a.npy")
    mask[0, 0, 0] = 1 - mask[0, 0, 0]
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "changed", np.load(work / "one/images/a.npy"), mask)
    with pytest.raises(DataError, match=r"is not what .* was fitted to: cells differ"):
        replay(work / "model", "changed")


def test_one_example_that_cannot_be_split_suggests_tiles(inside):
    done = inside("fit", "one", *QUICK, "--out", "none")
    assert done.status == 3 and "--tiles 5" in done.err and len(done.err.splitlines()) == 1
    done = inside("fit", "one", "--folds", "2", *QUICK, "--out", "none")
    assert done.status == 2 and "--tiles 5" in done.err


@pytest.mark.parametrize(
    "words, said",
    [
        (("one", "--tiles", "1"), "greater than or equal to 2"),
        (("one", "--tiles", "6"), "6 tiles of 41 pixels would be shorter than 8"),
        (("one/images", "--tiles", "2"), "no masks: leave out --tiles"),
    ],
)
def test_what_cannot_be_cut_is_refused_in_one_line(inside, words, said):
    done = inside("fit", *words, *QUICK, "--out", "none")
    assert done.status == 2 and said in done.err and len(done.err.splitlines()) == 1, done.err


def test_tiles_of_a_table_of_numbers_are_refused(command, tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3,4\n")
    done = command("fit", "a.csv", "--target", "y", "--tiles", "2")
    assert done.status == 2 and "'tiles' is an option of images" in done.err


def arrays(work):
    parts = {"x": "images", "masks": "masks"}
    return {name: np.load(work / f"one/{kind}/a.npy")[None] for name, kind in parts.items()}


def test_arrays_in_memory_are_cut_again_to_be_found_again(work):
    data = arrays(work)
    options = {"epochs": 1}
    fit = ansatz.fit(data, tiles=3, channels=None, network="linear_pixels", options=options)
    with pytest.raises(DataError, match=r"table in memory"):
        replay(fit.model)
    table = read_grids(data, channels=None)
    assert replay(fit.model, table).parts.test.shape == (1,)


def weights(model):
    return [value.numpy() for value in model.model_.network.state_dict().values()]


def test_a_killed_run_goes_on_to_the_same_bits(work, tmp_path, monkeypatch):
    options = {"epochs": 3, "batch_size": 1}
    given = {"tiles": 4, "network": "linear_pixels", "options": options}
    expected = ansatz.fit(work / "one", **given)
    monkeypatch.setattr(training_loop, "_SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    real = grid_source.GridSource

    class Dies(real):
        def batches(self, epoch=0, start=0):
            for number, batch in enumerate(super().batches(epoch, start)):
                if epoch == 1 and number == 2:
                    raise MemoryError("killed")
                yield batch

    out = tmp_path / "cut"
    with monkeypatch.context() as patch:
        patch.setattr(grid_source, "GridSource", Dies)
        with pytest.raises(MemoryError):
            ansatz.fit(work / "one", **given, out=out)
    with pytest.raises(UsageError, match=r"data"):
        ansatz.fit(work / "one", **{**given, "tiles": 3}, out=out, resume=True)
    resumed = ansatz.fit(work / "one", **given, out=out, resume=True)
    for one, two in zip(weights(resumed.model), weights(expected.model), strict=True):
        assert (one == two).all()
    late = ansatz.fit(work / "one", **given, stream=True)
    for one, two in zip(weights(late.model), weights(expected.model), strict=True):
        assert (one == two).all()


def test_a_model_knows_whole_examples_whose_tiles_it_trained_on(work):
    model = ansatz.load(work / "model")
    assert model.duplicates(work / "one").all() and not model.duplicates(work / "other").any()
