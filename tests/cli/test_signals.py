"""SIGINT and SIGTERM, at whatever moment: status 130 or 143, and one line."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansatz.cli.main import run
from ansatz.cli.signals import Stopped

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="looks into /proc for the handlers of a process"
)
WORDS = {signal.SIGINT: (130, "interrupted"), signal.SIGTERM: (143, "terminated")}
FIT = ("fit", "table.csv", "--target", "y", "--inference", "ensemble", "--set", "members=20", "-q")


def is_ready(process):
    """Whether the process has its own handlers; Python itself handles SIGINT from its start."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    (caught,) = (line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def begin(words, folder):
    """Starts the command and waits until it handles signals, before it imports anything."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ansatz", *words],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # A job in the background of a shell inherits an ignored SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while process.poll() is None and not is_ready(process):
        time.sleep(0.001)
    return process


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signals")
    rows = (f"{k % 17},{k % 5},{k / 7 + (k % 11)}\n" for k in range(3000))
    (folder / "table.csv").write_text("a,b,y\n" + "".join(rows))
    return folder


@pytest.mark.parametrize(
    "number, delay",
    [
        (signal.SIGTERM, 0.0),
        (signal.SIGINT, 0.0),
        (signal.SIGTERM, 0.05),
        (signal.SIGINT, 0.2),
        (signal.SIGTERM, 0.5),
        (signal.SIGINT, 1.0),
        *(
            pytest.param(number, random.Random(f"{seed} {number}").uniform(0, 8), marks=slow)
            for slow in [pytest.mark.slow]
            for number in WORDS
            for seed in range(20)
        ),
    ],
)
def test_a_signal_at_any_moment_ends_with_its_status_and_one_line(folder, number, delay):
    process = begin((*FIT, "--out", f"model-{number}-{delay}"), folder)
    time.sleep(delay)
    process.send_signal(number)
    err = process.communicate()[1]
    status, word = WORDS[number]
    assert process.returncode == status, err
    *before, last = err.splitlines()
    assert last.startswith(f"ansatz: {word}")
    assert all(line.startswith(("ansatz: note: ", "ansatz: warning: ")) for line in before)


@pytest.mark.parametrize("number", WORDS)
def test_two_signals_in_the_imports_are_one_line(folder, number):
    process = begin(("--help",), folder)
    process.send_signal(number)
    process.send_signal(number)
    assert process.communicate()[1] == f"ansatz: {WORDS[number][1]}.\n"
    assert process.returncode == WORDS[number][0]


def test_an_ignored_interrupt_stays_ignored(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "import os, signal; from ansatz.cli.signals import enter; enter(); "
         "os.kill(os.getpid(), signal.SIGINT)"],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )  # fmt: skip
    assert done.returncode == 0


CODE = """
import os, signal, sys
from ansatz.cli.signals import enter
enter()
import ansatz.cli.doctor as doctor
{}
sys.argv = ["ansatz", "doctor"]
from ansatz.cli.main import main
main()
"""
SWALLOWED = """
def examine():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except BaseException:
        pass
    raise ImportError("numpy.core.multiarray failed to import")
doctor._examine = examine
"""
FINALISER = """
class Finalised:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
def examine():
    Finalised()
    return iter([])
doctor._examine = examine
"""
ATEXIT = """
import atexit
atexit.register(os.kill, os.getpid(), signal.SIGTERM)
doctor._examine = lambda: iter([])
"""


@pytest.mark.parametrize("code", [SWALLOWED, FINALISER, ATEXIT], ids=["except", "del", "atexit"])
def test_a_signal_that_python_would_lose_still_ends_the_command(tmp_path, code):
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(code)], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (143, "ansatz: terminated.\n")


def test_a_command_inside_of_a_program_gives_the_handlers_back(monkeypatch, capsys):
    def examine():
        os.kill(os.getpid(), signal.SIGTERM)
        return iter([])

    monkeypatch.setattr("ansatz.cli.doctor._examine", examine)
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    assert run(["doctor"]) == 143
    assert capsys.readouterr().err == "ansatz: terminated.\n"
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    assert issubclass(Stopped, KeyboardInterrupt)
