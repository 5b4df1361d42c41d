"""ansatz fit --processes: the command in several processes, as a user sees it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansatz.cli.main import run as here

DATA = Path(os.environ.get("ANSATZ_DATA", "")) / "abalone"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="the data set abalone is not here")
ABALONE = ("fit", "abalone", "--target", "rings", "--likelihood", "poisson", "--quiet")


def start(folder, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "ansatz", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def run(folder, *arguments):
    process = start(folder, *arguments)
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


@needs_data
@pytest.mark.slow  # docs/scale.md runs the command, test_distributed compares every loss
def test_two_processes_give_the_metrics_of_one(tmp_path, capfd, monkeypatch):
    """In float32, without dropout, whose masks are each process's own: 1e-6 of a metric."""
    monkeypatch.chdir(tmp_path)
    small = ("--set", "epochs=2", "--set", "widths=[16]", "--set", "dropout=0")

    def document(*words):
        capfd.readouterr()
        status = here([*ABALONE, *small, "--json", *words])
        out, err = capfd.readouterr()  # what the two processes print, too
        assert status == 0, err
        return json.loads(out)

    two, one = document("--out", "two", "--processes", "2"), document("--out", "one")
    assert two["metrics"] == pytest.approx(one["metrics"], rel=1e-6)
    assert two["linear"] == one["linear"] and two["rows"] == one["rows"]
    assert (tmp_path / "two" / "weights.safetensors").exists()
    assert not (tmp_path / "two.training").exists()


def test_a_number_of_processes_must_be_one(command, tmp_path):
    done = command("fit", "houses.csv", "--target", "price", "--processes", "0")
    assert done.status == 2 and "processes" in done.err


def test_under_torchrun_the_option_is_refused(command, tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    done = command("fit", "houses.csv", "--target", "price", "--processes", "2")
    assert done.status == 2 and "under torchrun leave it out" in done.err


@pytest.mark.slow
def test_bad_data_is_one_line_and_exit_status_3(tmp_path):
    (tmp_path / "bad.csv").write_text("x,y\n1,2\n2,a\n3,4\n")
    arguments = ("fit", "bad.csv", "--target", "y", "--likelihood", "poisson", "--processes", "2")
    status, out, err = run(tmp_path, *arguments)
    assert (status, out) == (3, "")
    assert err.count("\n") == 1 and "row 2, column 'y'" in err


def wait_until_it_trains(process, folder):
    end = time.monotonic() + 120
    while not list(folder.glob("step-*")):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.1)
    time.sleep(1)


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_all_and_the_run_can_go_on(number, status, tmp_path):
    options = (*ABALONE, "--set", "epochs=500", "--set", "holdout=0", "--processes", "2")
    process = start(tmp_path, *options, "--out", "model")
    wait_until_it_trains(process, tmp_path / "model.training")
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == status
    assert err.count("\n") == 1 and "the same command with --resume" in err
    assert len(list((tmp_path / "model.training").glob("step-*"))) == 2


@needs_data
@pytest.mark.slow
def test_a_killed_process_is_named_in_one_line(tmp_path):
    options = (*ABALONE, "--set", "epochs=500", "--set", "holdout=0", "--processes", "2")
    process = start(tmp_path, *options, "--out", "model")
    wait_until_it_trains(process, tmp_path / "model.training")
    found = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True)
    os.kill(max(map(int, found.stdout.split())), signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 5
    assert err.count("\n") == 1 and "was killed (SIGKILL)" in err
