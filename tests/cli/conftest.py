import io
import os
import shutil
import subprocess
import sys
from typing import NamedTuple

import pandas as pd
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
def inside(work, monkeypatch, command):
    """Runs one command in the folder with data and models that a module calls ``work``."""

    def go(*words):
        monkeypatch.chdir(work)
        return command(*words)

    return go


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


@pytest.fixture(scope="session")
def rows():
    """A table of prices by area and town."""
    lines = (
        f"{k / 10},{'Jena' if k % 3 else 'Weimar'},{k / 5 + (k % 7) / 10}\n" for k in range(60)
    )
    return "area,town,price\n" + "".join(lines)


@pytest.fixture(scope="session")
def saved(tmp_path_factory, rows):
    """One model for all: price by area and town."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "houses.csv").write_text(rows)
    out = folder / "houses-model"
    words = [
        "--target",
        "price",
        "--likelihood",
        "normal",
        "--network",
        "linear",
        "--out",
        str(out),
        "--json",
        "--quiet",
    ]
    assert run(["fit", str(folder / "houses.csv"), *words]) == 0
    return out


@pytest.fixture
def model(saved, tmp_path):
    """A copy of the model to do anything to, and a table to predict."""
    (tmp_path / "new.csv").write_text("area,town\n1.5,Jena\n2.5,Weimar\n")
    return shutil.copytree(saved, tmp_path / "houses-model")


@pytest.fixture(scope="session")
def table_of():
    """Reads the CSV that predict prints."""
    return lambda text: pd.read_csv(io.StringIO(text), index_col="row")
