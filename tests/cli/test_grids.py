"""Images, signals and masks from the command line, and everything that may be wrong with them."""

import io
import json
import os
import pickle
import shutil
import struct
import zlib

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

import ansatz
from ansatz import networks
from ansatz.cli.main import run
from ansatz.spec import InputSpec

DOCUMENT = {
    "model", "structure", "network", "parameters", "likelihood", "inference", "rows", "metrics",
    "linear", "constant", "epochs", "seconds", "seed", "candidates", "log_likelihood",
    "baselines",
}  # fmt: skip
QUICK = ("--network", "linear", "--set", "epochs=2", "--quiet")
NAMES = ("zero", "one", "two")


def save(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


def noise(folder, classes="ab", count=4, size=(16, 16)):
    """A folder of folders of noise."""
    rng = np.random.default_rng(0)
    for name in classes:
        for k in range(count):
            save(folder / name / f"{k}.png", rng.integers(0, 256, size, np.uint8))
    return folder


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Digits as folders of PNG files, as npz and as a table of paths; signals; discs with masks."""
    folder = tmp_path_factory.mktemp("grids")
    found = load_digits(n_class=3)
    images = (np.kron(found.images[:60], np.ones((2, 2))) * 255 / 16).astype(np.uint8)
    labels = found.target[:60]
    files = [f"digits/{NAMES[c]}/{k:02d}.png" for k, c in enumerate(labels)]
    for file, image in zip(files, images, strict=True):
        save(folder / file, image)
    np.savez(folder / "images.npz", x=images, y=labels)
    rng = np.random.default_rng(0)
    table = {"file": files, "count": rng.poisson(1 + labels), "twice": 1 + np.arange(60) % 2}
    pd.DataFrame(table).to_csv(folder / "paths.csv", index=False)
    beats = np.sin(np.arange(1, 61)[:, None] % 2 * 2 + np.linspace(0, 6, 20)).round(3)
    signals = pd.DataFrame(beats, columns=[f"t{k}" for k in range(20)])
    signals["rhythm"] = np.where(np.arange(60) % 2, "slow", "fast")
    signals.to_csv(folder / "signals.csv", index=False)
    i, j = np.mgrid[:16, :16]
    for k in range(12):
        a, b, r = rng.uniform([4, 4, 2], [12, 12, 5])
        mask = (i - a) ** 2 + (j - b) ** 2 < r**2
        save(folder / f"cells/images/{k}.png", (60 + 120 * mask).astype(np.uint8))
        save(folder / f"cells/masks/{k}.png", (255 * mask).astype(np.uint8))
    return folder


@pytest.fixture(scope="module")
def fitted(work):
    """One model of the folder, one of the masks, and one of counts."""
    here = os.getcwd()
    os.chdir(work)
    try:
        assert run(["fit", "digits", *QUICK]) == 0
        assert run(["fit", "cells", *QUICK[:2], "--set", "epochs=30", "--quiet"]) == 0
        assert run(["fit", "paths.csv", "--target", "count", *QUICK]) == 0
    finally:
        os.chdir(here)
    return work


@pytest.fixture
def inside(fitted, monkeypatch):
    """Runs commands in the folder with data and models."""

    def go(command, *words):
        monkeypatch.chdir(fitted)
        return command(*words)

    return go


def table_of(text):
    return pd.read_csv(io.StringIO(text), index_col="row")


# What works.


def test_a_folder_of_images_is_fitted_and_the_next_command_named(command, work, tmp_path):
    shutil.copytree(work / "digits", tmp_path / "digits")
    done = command("fit", "digits", *QUICK)
    assert done.status == 0, done.err
    lines = [line.split() for line in done.out.splitlines()]
    assert ["metric", "model", "linear", "constant"] in lines
    assert "       ansatz predict digits-model NEW-IMAGES/" in done.out
    assert "'class' has 3 classes" in done.err
    assert (tmp_path / "digits-model" / "weights.safetensors").exists()


def test_json_is_one_document_of_the_known_keys(command, work):
    done = command("fit", work / "images.npz", *QUICK, "--json", "--out", "m")
    document = json.loads(done.out)
    assert set(document) == DOCUMENT
    assert document["structure"] == "grid" and document["network"] == "linear_grid"
    assert document["likelihood"] == "categorical"
    assert sum(document["rows"].values()) == 60
    assert set(document["metrics"]) >= {"nll", "accuracy", "brier", "ece", "auc"}
    assert document["metrics"]["nll"] < document["constant"]["nll"]


def test_rows_of_a_table_are_signals_on_request(command, work):
    words = ("--x", "grid", "--target", "rhythm", "--out", "m")
    done = command("fit", work / "signals.csv", *words, *QUICK)
    assert done.status == 0, done.err
    assert "20 columns of numbers were read as a signal" in done.err
    assert "next:  ansatz report m --open\n       ansatz predict m NEW.csv" in done.out
    found = table_of(command("predict", "m", work / "signals.csv").out)
    assert list(found) == ["prediction", "p_fast", "p_slow"]
    assert command("evaluate", "m", work / "signals.csv").status == 0


def test_images_of_a_table_go_with_any_likelihood(command, inside):
    done = inside(command, "predict", "paths-model", "paths.csv", "--interval", "0.9")
    found = table_of(done.out)
    assert list(found) == ["image", "prediction", "lower", "upper"]
    assert (found["lower"] <= found["upper"]).all() and len(found) == 60
    assert found["image"].iloc[0].startswith("digits/")
    metrics = json.loads(inside(command, "evaluate", "paths-model", "paths.csv", "--json").out)
    assert set(metrics) >= {"nll", "crps", "rmse"}


def test_classes_are_predicted_with_their_probabilities_by_file(command, inside):
    found = table_of(inside(command, "predict", "digits-model", "digits").out)
    assert list(found) == ["image", "prediction", "p_one", "p_two", "p_zero"]
    assert np.allclose(found[["p_one", "p_two", "p_zero"]].sum(axis=1), 1)
    truth = found["image"].str.split("/").str[0]
    assert (found["prediction"] == truth).mean() > 0.8
    one = table_of(inside(command, "predict", "digits-model", "digits/zero/00.png").out)
    assert np.allclose(one["p_zero"], found["p_zero"].iloc[-len(truth[truth == "zero"])])


def test_images_of_another_size_are_brought_to_that_of_the_fit_and_reported(
    command, inside, tmp_path
):
    save(tmp_path / "large" / "0.png", np.zeros((40, 40), np.uint8))
    done = inside(command, "predict", "digits-model", tmp_path / "large")
    assert done.status == 0 and "another size than 16 x 16" in done.err


def test_the_augmentation_can_be_said(command, inside, tmp_path):
    out = tmp_path / "varied"
    words = ("fit", "digits", "--set", "augment=shift,noise", *QUICK, "--out", out)
    assert inside(command, *words).status == 0
    assert "augmented examples (shift, noise)" in inside(command, "inspect", out).out
    odd = inside(command, "fit", "digits", "--set", "augment=flipp", *QUICK, "--out", out / "b")
    assert odd.status == 2 and "Did you mean 'flip'?" in odd.err


def test_evaluate_and_inspect_know_images(command, inside):
    done = inside(command, "evaluate", "digits-model", "digits", "--json")
    assert json.loads(done.out)["accuracy"] > 0.8
    assert "48 of 60 evaluated rows (80 %) are duplicates of training rows" in done.err
    inspected = inside(command, "inspect", "digits-model")
    assert "linear_grid" in inspected.out and "grid" in inspected.out


def test_masks_are_written_as_images_of_the_values_that_they_had(command, inside, tmp_path):
    out = tmp_path / "found"
    done = inside(command, "predict", "cells-model", "cells/images", "--out", out)
    assert done.status == 0 and "12 masks" in done.out and "values: 0, 255" in done.out
    right = []
    for k in range(12):
        mask = np.asarray(Image.open(out / f"{k}.png"))
        assert set(np.unique(mask)) <= {0, 255}
        right.append((mask == np.asarray(Image.open(f"cells/masks/{k}.png"))).mean())
    assert np.mean(right) > 0.95
    again = inside(command, "predict", "cells-model", "cells/images", "--out", out)
    assert again.status == 2 and "--overwrite" in again.err
    words = ("predict", "cells-model", "cells/images", "--out", out, "--overwrite")
    assert inside(command, *words).status == 0
    (out / "notes.txt").write_text("mine")
    kept = inside(command, *words)
    assert kept.status == 2 and "notes.txt" in kept.err and (out / "notes.txt").exists()


def test_coloured_masks_are_written_in_their_colours_and_evaluated_again(command, work, tmp_path):
    levels = np.array([(0, 0, 0), (70, 130, 180)], np.uint8)
    shutil.copytree(work / "cells/images", tmp_path / "roads/images")
    for path in (work / "cells/masks").iterdir():
        cells = np.asarray(Image.open(path)) // 255
        save(tmp_path / "roads/masks" / path.name, levels[cells])
    assert command("fit", "roads", *QUICK).status == 0
    done = command("predict", "roads-model", "roads/images", "--out", "roads/again")
    assert done.status == 0 and "12 masks: roads/again (colours: #000000, #4682b4)" in done.out
    done = command("evaluate", "roads-model", "roads/images", "--masks", "roads/again", "--json")
    assert json.loads(done.out)["accuracy"] == 1
    save(tmp_path / "black/images/1.png", np.full((16, 16), 60, np.uint8))
    save(tmp_path / "black/masks/1.png", np.zeros((16, 16, 3), np.uint8))  # shows no colour
    done = command("evaluate", "roads-model", "black", "--json")
    assert done.status == 0 and json.loads(done.out)["accuracy"] > 0, done.err
    done = command("fit", "roads", "--unlabelled", "#4682B4", "--overwrite", *QUICK)
    assert done.status == 3 and "every pixel is of class #000000" in done.err


def test_json_tells_predictions_and_masks(command, inside, tmp_path):
    done = inside(command, "predict", "digits-model", "digits", "--json")
    records = json.loads(done.out)
    assert len(records) == 60 and list(records[0])[:3] == ["row", "image", "prediction"]
    words = ("predict", "cells-model", "cells/images", "--out", tmp_path / "found", "--json")
    told = json.loads(inside(command, *words).out)
    assert told["masks"] == 12 and told["values"] == {"0": 0, "255": 255}
    shares = json.loads(inside(command, "predict", "cells-model", "cells", "--json").out)
    assert shares[0]["share_0"] + shares[0]["share_255"] == 1


def test_images_may_be_called_by_ids(command, work, tmp_path):
    shutil.copytree(work / "digits", tmp_path / "digits")
    rows = [f"digits/{name}/{k:02d}" for name in NAMES for k in range(60)]
    rows = [row for row in rows if (tmp_path / f"{row}.png").exists()]
    pd.DataFrame({"id": rows, "is": [row.split("/")[1] for row in rows]}).to_csv("t.csv")
    done = command("fit", "t.csv", "--image", "id", "--target", "is", "--dry-run", "--size", "8x9")
    assert done.status == 0 and "60 files were found by them" in done.err, done.err
    assert "60 examples of 1 x 8 x 9" in done.out


def test_masks_are_evaluated_and_counted(command, inside):
    done = inside(command, "evaluate", "cells-model", "cells", "--json")
    assert json.loads(done.out)["dice"] > 0.9
    found = table_of(inside(command, "predict", "cells-model", "cells").out)
    assert list(found) == ["image", "share_0", "share_255"]


def test_objects_are_counted_and_numbered(command, inside, work, tmp_path):
    words = ("predict", "cells-model", "cells", "--instances")
    found = table_of(inside(command, *words).out)
    done = inside(command, *words, "--out", tmp_path / "objects")
    assert "1, 2, ... are objects" in done.out, done.err
    files = sorted((tmp_path / "objects").iterdir())
    numbers = [np.asarray(Image.open(file)) for file in files]
    assert [mask.max() for mask in numbers] == [int(n) for n in found["objects_255"]]
    assert max(mask.max() for mask in numbers) >= 1
    assert (
        "--instances is for masks"
        in inside(command, "predict", "digits-model", "digits", "--instances").err
    )


def test_masks_may_lie_elsewhere_and_have_a_loss_of_their_own(command, work):
    words = ("--masks", work / "cells" / "masks", "--likelihood", "dice", "--json", "--out", "m")
    done = command("fit", work / "cells" / "images", *words, *QUICK)
    assert done.status == 0, done.err
    assert json.loads(done.out)["likelihood"] == "dice"


def test_an_ensemble_of_masks_is_fitted_evaluated_and_predicts(command, work, tmp_path):
    words = ("--masks", work / "cells" / "masks", "--inference", "ensemble", "--set", "members=2")
    done = command("fit", work / "cells" / "images", *words, *QUICK, "--json", "--out", "m")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert found["inference"] == "ensemble" and found["metrics"]["nll"] < 0.7
    assert "ensemble" in command("inspect", "m").out
    assert "12 masks" in command("predict", "m", work / "cells" / "images", "--out", "found").out
    model, image = ansatz.load("m"), np.asarray(Image.open(work / "cells/images/3.png"))
    written = np.asarray(Image.open(tmp_path / "found" / "3.png"))
    assert (written == model.predict(image[None])[0].astype(int)).all()


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(command, work, tmp_path):
    done = command("fit", work / "digits", "--dry-run")
    assert done.status == 0
    assert "60 examples of 1 x 16 x 16 numbers, likelihood categorical" in done.out
    assert "network small_resnet" in done.out and not list(tmp_path.iterdir())
    plan = json.loads(command("fit", work / "cells", "--dry-run", "--json").out)
    assert plan["rows"] == 12 and plan["network"] == "unet"


@pytest.mark.parametrize(
    "words, says",
    {
        ("--network", "small_resnett"): "Did you mean 'small_resnet'?",
        ("--set", "nosuch=3"): "nosuch",
        ("--x", "gird"): "unknown structure 'gird'",
        ("--pretrained", "gone.pth"): "gone.pth: no such file of weights",
    }.items(),
)
def test_a_dry_run_refuses_what_the_fit_would(command, work, words, says):
    done = command("fit", work / "digits", *words, "--dry-run")
    assert done.status in (2, 4) and says in done.err and not done.out


def test_a_dry_run_takes_a_file_of_weights_for_no_column(command, work, tmp_path):
    torch.save({}, tmp_path / "w.pth")
    done = command("fit", work / "digits", "--pretrained", "w.pth", "--dry-run")
    assert done.status == 0 and "60 examples" in done.out, done.err


def test_a_fit_to_images_goes_through_a_file_of_options(command, work, tmp_path):
    words = ("--size", "12", "--skip-corrupt", "--freeze", "1", *QUICK[:2])
    printed = command("fit", work / "digits", *words, "--print-config")
    config = json.loads(printed.out)
    assert config["size"] == [12] and config["on_corrupt"] == "skip"
    assert config["freeze"] == 1
    (tmp_path / "fit.json").write_text(printed.out)
    assert json.loads(command("fit", "--config", "fit.json", "--print-config").out) == config
    done = command("fit", "--config", "fit.json", "--dry-run")
    assert "60 examples of 1 x 12 x 12 numbers" in done.out


def test_weights_are_a_column_and_pretrained_is_a_file(command, work, tmp_path):
    words = ("fit", work / "paths.csv", "--target", "count", "--json", "--quiet", "--out")
    assert command(*words, "m", "--weights", "twice", *QUICK[:4]).status == 0
    network = networks.create("lenet5", InputSpec.grid(1, 16, 16), 5)
    torch.save(network.float().state_dict(), tmp_path / "lenet.pth")
    lenet = ("--network", "lenet5", "--set", "epochs=1", "--pretrained", "lenet.pth")
    done = command(*words, "m2", *lenet, "--freeze", "backbone")
    assert done.status == 0, done.err
    found = command("inspect", "m2").out
    assert "left fresh: output.weight, output.bias" in found


def test_images_that_stay_in_their_files_give_the_same_model(command, work, tmp_path):
    for name, how in (("late", "--stream"), ("early", "--no-stream")):
        assert command("fit", work / "digits", *QUICK, how, "--out", name).status == 0
    late, early = (
        (tmp_path / name / "weights.safetensors").read_bytes() for name in ("late", "early")
    )
    assert late == early


def test_volumes_are_fitted_where_the_channels_are_reported(command, tmp_path):
    x = np.random.default_rng(0).normal(size=(12, 6, 6, 6))
    np.savez(tmp_path / "v.npz", x=x, y=np.arange(12) % 2)
    said = refused(command, tmp_path, 3, "fit", "v.npz")
    assert "--channels first, last, none" in said
    assert command("fit", "v.npz", "--channels", "none", *QUICK, "--out", "m").status == 0
    assert len(table_of(command("predict", "m", "v.npz").out)) == 12
    assert "channels must be" in refused(command, tmp_path, 2, "fit", "v.npz", "--channels", "odd")


def test_a_table_of_images_and_masks_needs_no_target(command, work, tmp_path):
    rows = [(f"images/{k}.png", f"masks/{k}.png") for k in range(12)]
    shutil.copytree(work / "cells", tmp_path / "cells")
    pd.DataFrame(rows, columns=["a", "b"]).to_csv(tmp_path / "cells" / "t.csv", index=False)
    words = ("cells/t.csv", "--image", "a", "--masks", "b")
    assert command("fit", *words, *QUICK, "--out", "m").status == 0
    assert "12 masks" in command("predict", "m", "cells/t.csv", "--out", "found").out
    assert "dice" in command("evaluate", "m", "cells/t.csv", "--json").out


def test_masks_have_the_sizes_of_their_images(command, inside, tmp_path):
    sizes = [(20, 30), (16, 16), (40, 24)]
    for k, size in enumerate(sizes):
        save(tmp_path / "mix" / f"{k}.png", np.full(size, (60, 180, 60)[k], np.uint8))
    words = ("predict", "cells-model", tmp_path / "mix", "--out")
    assert inside(command, *words, tmp_path / "found").status == 0
    masks = [np.asarray(Image.open(tmp_path / "found" / f"{k}.png")) for k in range(3)]
    assert [mask.shape for mask in masks] == sizes
    assert [np.median(mask) for mask in masks] == [0, 255, 0]
    assert inside(command, *words, tmp_path / "found.csv").status == 0
    found = pd.read_csv(tmp_path / "found.csv")
    assert found["share_255"].tolist() == [(mask == 255).mean() for mask in masks]


def test_masks_of_a_fit_to_one_size_have_the_sizes_of_their_images(command, work, tmp_path):
    words = ("fit", work / "cells", "--size", "8", *QUICK[:2], "--set", "epochs=30", "--quiet")
    assert command(*words, "--out", "m").status == 0
    save(tmp_path / "wide" / "a.png", np.full((16, 32), 180, np.uint8))
    assert command("predict", "m", "wide", "--out", "found").status == 0
    mask = np.asarray(Image.open(tmp_path / "found" / "a.png"))
    assert mask.shape == (16, 32) and (mask == 255).mean() > 0.5


def test_damaged_files_are_left_out_of_predictions_on_request(command, inside, tmp_path):
    noise(tmp_path / "new", "a", 3)
    (tmp_path / "new" / "a" / "bad.png").write_text("none")
    for model, verb in (("digits-model", "predict"), ("cells-model", "predict")):
        words = (verb, model, tmp_path / "new" / "a")
        stopped = inside(command, *words)
        assert stopped.status == 3 and "--skip-corrupt" in stopped.err
        done = inside(command, *words, "--skip-corrupt")
        assert len(table_of(done.out)) == 3 and "1 of 4 files left out" in done.err
    shutil.copytree("digits", tmp_path / "digits")
    (tmp_path / "digits" / "one" / "bad.png").write_text("none")
    words = ("evaluate", "digits-model", tmp_path / "digits", "--json")
    assert inside(command, *words).status == 3
    assert json.loads(inside(command, *words, "--skip-corrupt").out)["accuracy"] > 0.8


def test_what_is_predicted_needs_neither_masks_nor_classes(command, inside, tmp_path):
    for k in range(2):
        save(tmp_path / f"part/images/{k}.png", np.zeros((16, 16), np.uint8))
    save(tmp_path / "part/masks/0.png", np.zeros((16, 16), np.uint8))
    done = inside(command, "predict", "cells-model", tmp_path / "part", "--out", tmp_path / "found")
    assert done.status == 0 and "2 masks" in done.out
    noise(tmp_path / "one", "b")
    done = inside(command, "predict", "digits-model", tmp_path / "one")
    assert table_of(done.out)["image"].tolist() == [f"b/{k}.png" for k in range(4)]


def test_images_to_predict_may_stay_in_their_files(command, inside):
    words = ("predict", "digits-model", "digits")
    whole = inside(command, *words)
    late = inside(command, *words, "--stream")
    assert "read from their files as they are needed" in late.err and late.out == whole.out
    assert "from their files" in inside(command, *words, "--memory-limit", "1KB").err
    array = inside(command, "predict", "digits-model", "images.npz", "--stream")
    assert array.status == 0 and "--stream and --memory-limit are for files" in array.err
    for verb in ("predict", "evaluate"):
        for model in ("digits-model", "cells-model"):
            said = inside(command, verb, model, "digits", "--memory-limit", "nonsense")
            assert said.status == 2 and "--memory-limit takes a size" in said.err


# What is refused: one line that names what is wrong, and nothing is written.


def refused(command, tmp_path, status, *words):
    before = {path for path in tmp_path.rglob("*")}
    done = command(*words)
    assert done.status == status, (done.out, done.err)
    last = done.err.strip().splitlines()[-1]
    assert last.startswith("ansatz: ") and "unexpected error" not in last and done.out == ""
    assert {path for path in tmp_path.rglob("*")} == before
    return last


def test_a_folder_that_is_not_there(command, tmp_path):
    assert "nowhere does not exist" in refused(command, tmp_path, 3, "fit", "nowhere")


def test_an_empty_folder(command, tmp_path, inside):
    (tmp_path / "empty").mkdir()
    assert "empty is a folder without images" in refused(command, tmp_path, 3, "fit", "empty")
    words = ("predict", "digits-model", tmp_path / "empty")
    assert "is an empty folder" in inside(command, *words).err


def test_a_folder_of_other_files_tells_their_names(command, tmp_path):
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "train-images-idx3-ubyte.gz").write_bytes(b"")
    said = refused(command, tmp_path, 3, "fit", "mnist/")
    assert "It holds train-images-idx3-ubyte.gz: name a file." in said


def test_one_class_only(command, tmp_path):
    noise(tmp_path / "data", "a")
    said = refused(command, tmp_path, 3, "fit", "data")
    assert "data holds one class only ('a'); at least two are needed" in said


def test_a_folder_of_one_class_can_be_evaluated(command, inside, tmp_path, work):
    shutil.copytree(work / "digits" / "one", tmp_path / "data" / "one")
    evaluated = inside(command, "evaluate", "digits-model", tmp_path / "data", "--json")
    assert evaluated.status == 0, evaluated.err
    assert json.loads(evaluated.out)["accuracy"] > 0.8


def test_a_class_with_one_image_is_reported(command, tmp_path):
    noise(tmp_path / "data", "ab")
    save(tmp_path / "data" / "c" / "0.png", np.zeros((16, 16), np.uint8))
    done = command("fit", "data", *QUICK)
    assert done.status == 0 and "one image only in class c" in done.err


def test_mixed_sizes_are_resized_by_a_rule_that_is_reported(command, tmp_path):
    noise(tmp_path / "data")
    save(tmp_path / "data" / "a" / "large.png", np.zeros((50, 30), np.uint8))
    done = command("fit", "data", "--dry-run")
    assert done.status == 0
    assert "1 of 9 images have another size than 16 x 16: they were scaled to fit" in done.err


def truncated(path):
    rng = np.random.default_rng(0)
    save(path.with_suffix(".jpg"), rng.integers(0, 256, (16, 16), np.uint8))
    content = path.with_suffix(".jpg").read_bytes()
    path.with_suffix(".jpg").write_bytes(content[:-100])
    return path.with_suffix(".jpg").name


def text(path):
    path.write_text("not an image")
    return path.name


def nothing(path):
    path.write_bytes(b"")
    return path.name


def bomb(path):
    """30,000 x 30,000 pixels in 110 kB."""

    def chunk(kind, content):
        return (
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", zlib.crc32(kind + content))
        )

    packer, row = zlib.compressobj(9), bytes(30_000 // 8 + 1)
    body = b"".join(packer.compress(row * 100) for _ in range(300)) + packer.flush()
    header = struct.pack(">IIBBBBB", 30_000, 30_000, 1, 0, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + parts)
    assert path.stat().st_size < 120_000
    return path.name


@pytest.mark.parametrize(
    "spoil, told",
    [
        (truncated, "is a damaged image"),
        (text, "is not an image: it holds text"),
        (nothing, "empty"),
        (bomb, "declares 900,000,000 pixels, more than 40,000,000: not decoded"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_or_left_out(command, tmp_path, spoil, told):
    resource = pytest.importorskip("resource")
    noise(tmp_path / "data")
    name = spoil(tmp_path / "data" / "a" / "bad.png")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = refused(command, tmp_path, 3, "fit", "data")
    assert f"data/a/{name}" in said and told in said and "--skip-corrupt" in said
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB
    done = command("fit", "data", "--skip-corrupt", "--dry-run")
    assert done.status == 0 and "1 of 9 files left out" in done.err
    assert "8 examples" in done.out


@pytest.mark.parametrize(
    "mask, told",
    [
        (np.zeros((8, 8), np.uint8), "is 8 x 8, its image images/1.png 16 x 16"),
        (np.zeros((16, 16), np.float32), "is a mask in mode F; expected one whole number"),
        (None, "images/1.png has no mask in data/masks"),
    ],
)
def test_masks_that_do_not_match_their_images(command, tmp_path, mask, told):
    rng = np.random.default_rng(0)
    for k in range(4):
        save(tmp_path / f"data/images/{k}.png", rng.integers(0, 256, (16, 16), np.uint8))
        if k != 1:
            save(tmp_path / f"data/masks/{k}.png", rng.integers(0, 2, (16, 16), np.uint8))
        elif mask is not None:
            save(tmp_path / f"data/masks/{k}.tiff", mask)
    assert told in refused(command, tmp_path, 3, "fit", "data")


def test_masks_of_one_class(command, tmp_path):
    for k in range(4):
        save(tmp_path / f"data/images/{k}.png", np.full((16, 16), k, np.uint8))
        save(tmp_path / f"data/masks/{k}.png", np.zeros((16, 16), np.uint8))
    assert "every pixel is of class 0" in refused(command, tmp_path, 3, "fit", "data")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none(command, tmp_path, value):
    x = np.zeros((8, 6, 6))
    x[5, 3, 2] = value
    np.savez(tmp_path / "data.npz", x=x, y=np.arange(8) % 2)
    said = refused(command, tmp_path, 3, "fit", "data.npz")
    assert f"data.npz: array 'x' holds {value} at [5, 3, 2]" in said


def test_objects_in_arrays(command, tmp_path):
    odd = np.array([{} for _ in range(8)], dtype=object)
    np.savez(tmp_path / "data.npz", x=np.zeros((8, 6, 6)), y=odd)
    assert "data.npz holds Python objects" in refused(command, tmp_path, 3, "fit", "data.npz")


def test_a_target_that_is_not_there(command, work, tmp_path):
    said = refused(command, tmp_path, 3, "fit", work / "paths.csv", "--target", "age")
    assert "no column 'age' for target" in said and "count" in said
    assert "no column 'age'" in refused(
        command, tmp_path, 3, "fit", work / "digits", "--target", "age"
    )


class Code:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def unlike(path):
    torch.save({"a": torch.zeros(2), "b": torch.zeros(1)}, path)
    return "lacks 8 (c1.weight, c1.bias, c3.weight and 5 more) and holds 2 unknown (a, b)"


def of_other_images(path):
    network = networks.create("lenet5", InputSpec.grid(1, 28, 28), 3)
    torch.save(network.float().state_dict(), path)
    return "tensor 'c5.weight' is (120, 400), expected (120, 64)"


def code(path):
    torch.save({"w": Code(str(path.with_name("canary")))}, path)
    return "holds Python objects"


def plain_pickle(path):
    path.write_bytes(pickle.dumps(Code(str(path.with_name("canary")))))
    return "not a file of weights"


def absent(path):
    return "no such file of weights"


@pytest.mark.parametrize("write", [unlike, of_other_images, code, plain_pickle, absent])
def test_weights_that_are_none_of_the_network(command, work, tmp_path, write):
    told = write(tmp_path / "w.pth")
    words = ("--network", "lenet5", "--pretrained", "w.pth")
    said = refused(command, tmp_path, 4, "fit", work / "digits", *words)
    assert "w.pth" in said and told in said
    assert not (tmp_path / "canary").exists()


@pytest.mark.parametrize(
    "words, told",
    [
        (("--network", "lenet5", "--freeze", "backbon"), "freeze must be backbone"),
        (("--network", "unet"), "the outcome needs (3,)"),
        (("--likelihood", "dice"), "dice evaluates masks"),
        (("--x", "vector"), "leave out --x vector"),
        (("--x", "cube"), "unknown structure 'cube'"),
        (("--delimiter", ";"), "'delimiter' is an option of tables"),
        (("--role", "image=numeric"), "'roles' (--role) is an option of tables"),
        (("--size", "large"), "--size takes whole numbers"),
        (("--image", "file"), "has no columns of paths: leave out --image"),
        (("--unlabelled", "255"), "has no masks: leave out --unlabelled"),
        (("--set", "epohcs=3"), "Did you mean 'epochs'?"),
    ],
)
def test_options_that_do_not_go_with_images(command, work, tmp_path, words, told):
    assert told in refused(command, tmp_path, 2, "fit", work / "digits", *words)


@pytest.mark.parametrize(
    "words, told",
    [
        (("images.npz", "--masks", "digits"), "holds its masks itself"),
        (("digits/one/01.png", "--masks", "digits"), "is a single file"),
        (("cells/images", "--masks", "cells/images"), "each would be its own mask"),
        (("signals.csv", "--x", "grid", "--target", "rhythm", "--size", "8"), "leave out --size"),
    ],
)
def test_options_that_do_not_go_with_the_data(command, inside, words, told):
    said = inside(command, "fit", *words, "--out", "none")
    assert said.status == 2 and told in said.err and not os.path.exists("none")


def test_tables_have_no_files_to_skip(command, model):
    for verb in ("predict", "evaluate"):
        said = command(verb, model, "new.csv", "--skip-corrupt")
        assert said.status == 2 and "(--skip-corrupt) is an option of images" in said.err


def test_what_a_model_cannot_be_asked(command, inside, tmp_path):
    said = inside(command, "evaluate", "digits-model", "digits/zero")
    assert said.status == 3 and "no 'class' to evaluate by: the model predicts it" in said.err
    noise(tmp_path / "other")
    said = inside(command, "evaluate", "digits-model", tmp_path / "other")
    assert said.status == 3 and "the class 'a' at row 1 is not among the known" in said.err
    said = inside(command, "predict", "digits-model", "signals.csv")
    assert said.status == 3 and "1 channel of 16 x 16" in said.err
    said = inside(command, "predict", "paths-model", "digits", "--times", "1")
    assert said.status == 2 and "survival" in said.err
    said = inside(command, "export", "digits-model", "--double", "--onnx", tmp_path / "a.onnx")
    assert said.status == 2 and "float32" in said.err and not (tmp_path / "a.onnx").exists()
