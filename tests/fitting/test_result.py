"""A fit that is written to disk: killed at any moment and resumed, it ends in the same bits."""

import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import torch

import ansatz
from ansatz.cli.main import run
from ansatz.errors import AnsatzError, BusyError, UsageError
from ansatz.storage import RunLock, read_tensors

OPTIONS = {"widths": (8,), "dropout": 0.1}
# As `ansatz.fit`, but with a checkpoint every 20 ms in place of every 30 s.
SCRIPT = """
import sys
import ansatz, ansatz.training.loop as loop
loop._SECONDS_BETWEEN_CHECKPOINTS = 0.02
data, out, epochs, resume = sys.argv[1:]
options = {"widths": (8,), "dropout": 0.1, "epochs": int(epochs)}
ansatz.fit(
    data, target="price", likelihood="normal", out=out, resume=resume == "True", options=options
)
"""
posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals to deliver")


def houses(path, rows=300):
    rng = np.random.default_rng(0)
    area = rng.uniform(1, 9, size=rows).round(3)
    town = rng.choice(["Jena", "Weimar"], size=rows)
    price = (3 * area + 5 * (town == "Jena") + rng.normal(size=rows)).round(3)
    pd.DataFrame({"area": area, "town": town, "price": price}).to_csv(path, index=False)
    return path


def weights(folder):
    return read_tensors(folder / "weights.safetensors")


def assert_same_bits(one, two):
    a, b = weights(one), weights(two)
    assert a.keys() == b.keys()
    assert all(torch.equal(a[name], b[name]) for name in a)


def steps_written(folder):
    if not folder.exists():
        return []
    return [int(path.name[5:]) for path in folder.iterdir() if path.name.startswith("step-")]


def start(*arguments, code=SCRIPT):
    words = [sys.executable, "-c", code] if code else [sys.executable, "-m", "ansatz"]
    return subprocess.Popen(
        [*words, *(str(argument) for argument in arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_step(process, folder, step):
    """Until a checkpoint of that step or later is there, or the process ends."""
    for _ in range(12_000):
        if process.poll() is not None or max(steps_written(folder), default=-1) >= step:
            return
        time.sleep(0.005)


def kill_and_resume(tmp_path, rows, epochs, moments):
    data = houses(tmp_path / "houses.csv", rows)
    whole = tmp_path / "whole"
    ansatz.fit(
        data, target="price", likelihood="normal", out=whole, options={**OPTIONS, "epochs": epochs}
    )
    out = tmp_path / "cut"
    killed = 0
    for k, step in enumerate(moments):
        process = start(data, out, epochs, k > 0)
        wait_for_step(process, tmp_path / "cut.training", step)
        process.kill()
        process.communicate(timeout=60)
        killed += process.returncode == -signal.SIGKILL
        assert not out.exists() or process.returncode == 0
    assert killed > 0  # else the machine was too fast for this test to say anything
    fit = ansatz.fit(
        data,
        target="price",
        likelihood="normal",
        out=out,
        resume=True,
        options={**OPTIONS, "epochs": epochs},
    )
    assert_same_bits(whole, out)
    assert not (tmp_path / "cut.training").exists()
    again = ansatz.load(whole)
    frame = pd.read_csv(data)
    np.testing.assert_array_equal(
        fit.model.predict_frame(frame)["prediction"], again.predict_frame(frame)["prediction"]
    )
    assert fit.metrics == again.evidence_["fit"]["metrics"]


@pytest.mark.slow
@posix
def test_killed_twice_and_resumed_it_ends_in_the_same_bits(tmp_path):
    kill_and_resume(tmp_path, rows=300, epochs=250, moments=[1, 1_000])


@posix
@pytest.mark.slow
def test_killed_at_many_moments_it_ends_in_the_same_bits(tmp_path):
    kill_and_resume(tmp_path, rows=300, epochs=700, moments=[0, *range(1, 9_000, 400)])


@posix
@pytest.mark.slow
def test_a_small_table_killed_ends_in_the_same_bits(tmp_path):
    kill_and_resume(tmp_path, rows=90, epochs=4_000, moments=[0, 1, 500, 2_000])


def test_a_checkpoint_at_the_last_step_leaves_only_the_saving(tmp_path, monkeypatch):
    """Killed between the end of training and the saved model: no step is repeated."""
    data = houses(tmp_path / "houses.csv")
    options = {**OPTIONS, "epochs": 3}
    whole = ansatz.fit(
        data, target="price", likelihood="normal", out=tmp_path / "whole", options=options
    )
    run = ansatz.fitting.result
    with monkeypatch.context() as patch:
        cut = OSError("power cut")
        patch.setattr(run, "save_model", lambda *a, **k: (_ for _ in ()).throw(cut))
        with pytest.raises(OSError, match="power cut"):
            ansatz.fit(
                data, target="price", likelihood="normal", out=tmp_path / "cut", options=options
            )
    assert not (tmp_path / "cut").exists()
    done = max(steps_written(tmp_path / "cut.training"))
    fit = ansatz.fit(
        data,
        target="price",
        likelihood="normal",
        out=tmp_path / "cut",
        resume=True,
        options=options,
    )
    assert fit.model.n_iter_ == whole.model.n_iter_ == done
    assert_same_bits(tmp_path / "whole", tmp_path / "cut")


# The finished run.


@pytest.fixture
def finished(tmp_path):
    data = houses(tmp_path / "houses.csv", rows=120)
    options = {**OPTIONS, "epochs": 2}
    fit = ansatz.fit(
        data, target="price", likelihood="normal", out=tmp_path / "model", options=options
    )
    return data, options, fit


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_finished_run_has_nothing_to_do_and_changes_nothing(finished):
    data, options, fit = finished
    before = contents(fit.folder)
    again = ansatz.fit(
        data, target="price", likelihood="normal", out=fit.folder, resume=True, options=options
    )
    assert again.notes[-1] == "the run was finished: nothing to do."
    assert again.metrics == fit.metrics and again.rows == fit.rows and again.linear == fit.linear
    assert contents(fit.folder) == before


def test_other_data_or_options_are_another_run(finished):
    data, options, fit = finished
    before = contents(fit.folder)
    frame = pd.read_csv(data)
    frame.loc[0, "price"] += 1e-9
    for changed in (
        {"data": frame},
        {"data": data, "seed": 1},
        {"data": data, "test": 0.3},
        {"data": data, "options": {**options, "epochs": 3}},
        {"data": data, "likelihood": "laplace"},
    ):
        arguments = {"options": options, "likelihood": "normal", **changed}
        with pytest.raises(UsageError, match=r"other data or with other options.*--force"):
            ansatz.fit(
                arguments.pop("data"),
                target="price",
                out=fit.folder,
                resume=True,
                **arguments,
            )
    assert contents(fit.folder) == before
    kept = ansatz.fit(
        frame,
        target="price",
        likelihood="normal",
        out=fit.folder,
        resume=True,
        force=True,
        options=options,
    )
    assert kept.metrics == fit.metrics


def test_an_existing_model_or_run_is_not_touched_unasked(finished, tmp_path):
    data, options, fit = finished
    before = contents(fit.folder)
    with pytest.raises(UsageError, match="exists"):
        ansatz.fit(data, target="price", likelihood="normal", out=fit.folder, options=options)
    (tmp_path / "new.training").mkdir()
    with pytest.raises(UsageError, match=r"unfinished run.*--resume"):
        ansatz.fit(data, target="price", likelihood="normal", out=tmp_path / "new", options=options)
    assert contents(fit.folder) == before
    ansatz.fit(
        data,
        target="price",
        likelihood="normal",
        out=fit.folder,
        overwrite=True,
        seed=3,
        options=options,
    )
    assert contents(fit.folder) != before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_failed_overwrite_keeps_the_earlier_model(finished):
    data, _, fit = finished
    before = contents(fit.folder)
    with pytest.raises(AnsatzError):
        ansatz.fit(
            data,
            target="price",
            out=fit.folder,
            overwrite=True,
            likelihood="poisson",  # prices are no counts
        )
    exploding = {"widths": (8,), "epochs": 50, "learning_rate": 1e30, "activation": "relu"}
    with pytest.raises(AnsatzError):
        ansatz.fit(
            data,
            target="price",
            likelihood="normal",
            out=fit.folder,
            overwrite=True,
            options=exploding,
        )
    assert contents(fit.folder) == before


def test_overwriting_leaves_the_checkpoints_of_a_fit_that_runs(finished, tmp_path):
    data, options, _ = finished
    running = tmp_path / "new.training"
    running.mkdir()
    (running / "step").write_text("of the other")
    with RunLock(running), pytest.raises(BusyError, match="in use"):
        ansatz.fit(data, target="price", out=tmp_path / "new", overwrite=True, options=options)
    assert (running / "step").read_text() == "of the other"


@pytest.mark.parametrize("where", ["a file", "below a file", "a loop", "a long name"])
def test_an_impossible_place_is_named_before_the_work(tmp_path, where):
    data = houses(tmp_path / "houses.csv", rows=120)
    place = tmp_path / "place"
    if where in ("a file", "below a file"):
        place.write_text("kept")
        place = place if where == "a file" else place / "model"
    elif where == "a loop":
        if os.name == "nt":
            pytest.skip("links need rights on Windows")
        place.symlink_to(place)
    else:
        place = tmp_path / ("m" * 300)
    with pytest.raises((AnsatzError, OSError)) as caught:
        ansatz.fit(data, target="price", likelihood="normal", out=place, options=OPTIONS)
    assert "place" in str(caught.value) or "mmm" in str(caught.value)


def test_resume_needs_a_place(tmp_path):
    with pytest.raises(UsageError, match="--out"):
        ansatz.fit({"x": range(20), "y": range(20)}, target="y", resume=True)


def test_a_folder_that_vanishes_in_training_costs_no_result(tmp_path, monkeypatch):
    """The model stays in memory and is saved all the same."""
    data = houses(tmp_path / "houses.csv", rows=120)
    loop = ansatz.training.loop.Loop
    original, seen = loop.finish, []

    def finish(self, reason):
        seen.append(reason)
        shutil.rmtree(tmp_path / "model.training")
        return original(self, reason)

    monkeypatch.setattr(loop, "finish", finish)
    fit = ansatz.fit(
        data,
        target="price",
        likelihood="normal",
        out=tmp_path / "model",
        options={**OPTIONS, "epochs": 2},
    )
    assert seen and fit.folder.exists() and ansatz.load(fit.folder).n_iter_ == fit.model.n_iter_


# Signals, through the command.


@posix
@pytest.mark.parametrize(
    "number, status",
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)],
)
def test_a_stopped_command_resumes_to_the_same_bits(tmp_path, number, status):
    data = houses(tmp_path / "houses.csv")
    words = ["--target", "price", "--set", "widths=[8]", "--set", "dropout=0.1", "--quiet"]
    words += ["--set", "epochs=500", "--likelihood", "normal"]
    whole, out = tmp_path / "whole", tmp_path / "cut"
    process = start("fit", data, *words, "--out", out, code=None)
    wait_for_step(process, tmp_path / "cut.training", 0)
    process.send_signal(number)
    printed, said = process.communicate(timeout=120)
    assert process.returncode == status, said
    assert printed == "" and "--resume" in said.splitlines()[-1] and not out.exists()
    assert steps_written(tmp_path / "cut.training")
    options = {"widths": [8], "dropout": 0.1, "epochs": 500}
    ansatz.fit(data, target="price", likelihood="normal", out=whole, options=options)
    assert run(["fit", str(data), *words, "--out", str(out), "--resume"]) == 0
    assert_same_bits(whole, out)
