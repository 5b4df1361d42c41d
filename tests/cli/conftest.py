import os
import subprocess
import sys
from typing import NamedTuple

import pytest

from ansatz.cli.main import run


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    """Runs one command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments: str) -> Outcome:
        capsys.readouterr()
        status = run([str(argument) for argument in arguments])
        return Outcome(status, *capsys.readouterr())

    return invoke


@pytest.fixture
def process(tmp_path):
    """Runs one command as a process of its own, in an empty folder."""

    def invoke(*arguments: str, environment=None, cwd=tmp_path, code: str | None = None) -> Outcome:
        start = ["-m", "ansatz"] if code is None else ["-c", code]
        done = subprocess.run(
            [sys.executable, *start, *(str(argument) for argument in arguments)],
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=cwd,
            env=os.environ if environment is None else environment,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return invoke
