import errno
import os
import signal
import subprocess
import sys
import warnings

import pytest

import ansatz
from ansatz import errors
from ansatz.cli import main


def failing(monkeypatch, error):
    def doctor(**options):
        raise error

    monkeypatch.setattr("ansatz.cli.doctor._examine", doctor)


def one_line(err):
    assert err.startswith("ansatz: ") and err.count("\n") == 1, err
    return err


def test_version(command):
    assert command("--version") == (0, f"ansatz {ansatz.__version__}\n", "")


def test_help_without_arguments(command):
    assert "Usage: ansatz" in command().out


@pytest.mark.parametrize(
    "name", ["fit", "predict", "evaluate", "inspect", "list", "show", "doctor", "data"]
)
def test_every_command_has_help_with_an_example(command, name):
    page = command(name, "--help")
    assert page.status == 0
    text = page.out if name != "data" else command("data", "get", "--help").out
    assert f"ansatz {name}" in text.split("Example:")[1]


def test_a_mistyped_command_suggests_the_nearest(command):
    done = command("evalute")
    assert done.status == 2 and done.out == ""
    assert "Did you mean 'evaluate'?" in one_line(done.err)


@pytest.mark.parametrize("name", ["fit", "predict", "evaluate"])
def test_a_mistyped_option_suggests_the_nearest(command, name):
    done = command(name, "a", "--delimitr", ";")
    assert done.status == 2
    assert f"Did you mean '--delimiter'? Help: ansatz {name} --help" in one_line(done.err)


def test_a_value_of_the_wrong_type_names_the_option(command):
    done = command("fit", "a.csv", "--target", "y", "--seed", "many")
    assert done.status == 2 and "--seed" in one_line(done.err)


@pytest.mark.parametrize(
    "error, status",
    [
        (errors.UsageError("no"), 2),
        (errors.DataError("no"), 3),
        (errors.ModelError("no"), 4),
        (errors.ResourceError("no"), 5),
        (errors.NumericalError("no"), 6),
        (errors.BusyError("no"), 7),
        (errors.MissingExtraError("Parquet files", "data"), 2),
        (MemoryError(), 5),
        (OSError(errno.ENOSPC, "x", "model"), 5),
        (PermissionError(errno.EACCES, "x", "model"), 5),
        (FileNotFoundError(errno.ENOENT, "x", "model"), 2),
        (OSError(errno.ENAMETOOLONG, "x", "model"), 2),
        (KeyboardInterrupt(), 130),
        (RuntimeError("a bug"), 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_each_failure_has_its_line_and_status(command, monkeypatch, error, status):
    failing(monkeypatch, error)
    done = command("doctor")
    assert done.status == status and done.out == ""
    one_line(done.err)


def test_a_missing_extra_says_how_to_get_it(command, monkeypatch):
    failing(monkeypatch, errors.MissingExtraError("Parquet files", "data"))
    assert "pip install 'ansatz-learn[data]'" in command("doctor").err


def test_what_is_unexpected_offers_debug_and_debug_shows_where(command, monkeypatch):
    failing(monkeypatch, RuntimeError("a bug"))
    plain, debug = command("doctor"), command("doctor", "--debug")
    assert "run again with --debug" in one_line(plain.err) and "Traceback" not in plain.err
    assert "Traceback" in debug.err and plain.status == debug.status == 1


def test_an_error_cannot_steer_the_terminal(command, monkeypatch):
    failing(monkeypatch, errors.DataError("column 'a\x1b[2J\u202e\nb' is empty"))
    assert one_line(command("doctor").err) == "ansatz: column 'a\\x1b[2J\\u202e b' is empty\n"


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_training_that_was_stopped_says_how_to_go_on(command, monkeypatch, number, status):
    from ansatz.training import Interrupted

    failing(monkeypatch, Interrupted(number, step=40, checkpoint="run"))
    done = command("doctor")
    assert done.status == status
    assert "after step 40. To go on: the same command with --resume" in one_line(done.err)


def test_a_warning_is_one_line(command, monkeypatch):
    def examine():
        warnings.warn("three rows are alike", UserWarning, stacklevel=2)
        return iter([])

    monkeypatch.setattr("ansatz.cli.doctor._examine", examine)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert command("doctor").err == "ansatz: warning: three rows are alike\n"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM to deliver")
def test_sigterm_unwinds_and_exits_143(tmp_path):
    code = (
        "import os, signal, sys, time\n"
        "import ansatz.cli.doctor as doctor\n"
        "def examine():\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)\n"
        "    finally:\n"
        "        open('unwound', 'w').close()\n"
        "doctor._examine = examine\n"
        "sys.argv = ['ansatz', 'doctor']\n"
        "from ansatz.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (143, "ansatz: terminated.\n")
    assert (tmp_path / "unwound").exists()


def test_a_closed_pipe_ends_quietly(process):
    code = (
        "import os, sys\n"
        "reader, writer = os.pipe()\n"
        "os.close(reader)\n"
        "os.dup2(writer, 1)\n"
        "sys.argv = ['ansatz', '--help']\n"
        "from ansatz.cli.main import main\n"
        "main()\n"
    )
    assert process(code=code) == (0, "", "")


def test_works_without_home_locale_or_terminal(process, tmp_path):
    keep = {"PATH", "PYTHONPATH", "SYSTEMROOT", "ANSATZ_DATA", "OMP_NUM_THREADS"}
    bare = {key: value for key, value in os.environ.items() if key in keep}
    done = process("--help", environment={**bare, "LANG": "C", "LC_ALL": "C"})
    assert done.status == 0 and "Usage: ansatz" in done.out and done.err == ""


def test_an_ascii_terminal_gets_escapes(process):
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = process("show", "normal", environment=ascii_only)
    assert done.status == 0 and "\\u03c3" in done.out


def test_completion_offers_names(process):
    asked = {
        **os.environ,
        "_ANSATZ_COMPLETE": "complete_bash",
        "COMP_WORDS": "ansatz list lik",
        "COMP_CWORD": "2",
        "_TYPER_COMPLETE_ARGS": "ansatz list lik",
    }
    assert process(environment=asked).out.split() == ["likelihoods"]


def test_debug_after_two_dashes_is_an_argument():
    assert main._take_debug(["show", "--", "--debug"]) == (False, ["show", "--", "--debug"])
