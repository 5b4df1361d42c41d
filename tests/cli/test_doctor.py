import json
import os
import re
import tomllib
from pathlib import Path

import pytest

from ansatz.cli import doctor


def test_a_healthy_installation_is_well(command):
    done = command("doctor")
    assert done.status == 0, done.out
    assert done.out.splitlines()[-1] == "All is well."


def test_as_json(command):
    document = json.loads(command("doctor", "--json").out)
    names = [check["name"] for check in document["checks"]]
    assert document["healthy"] and {"torch", "devices", "disk", "fit"} <= set(names)


def test_a_failed_check_is_named_and_the_status_is_one(command, monkeypatch):
    monkeypatch.setattr(doctor, "_NEEDED", 2**80)
    done = command("doctor")
    assert done.status == 1 and done.out.splitlines()[-1] == "failed: disk"


def test_a_wrong_data_folder_is_named(command, monkeypatch):
    monkeypatch.setenv("ANSATZ_DATA", "/no/such/folder")
    done = command("doctor")
    assert done.status == 1 and "ANSATZ_DATA=/no/such/folder" in done.out


def test_every_package_of_every_extra_for_users_is_checked():
    text = Path(__file__).parents[2].joinpath("pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    of_users = {name: each for name, each in extras.items() if name not in ("bench", "dev", "docs")}
    listed = {
        (re.split("[<>=~ ]", package)[0], extra)
        for extra, packages in of_users.items()
        for package in packages
    }
    assert listed == {(name, extra) for name, (_, extra, _) in doctor._EXTRAS.items()}


@pytest.mark.parametrize("error", [ImportError, RuntimeError, OSError])
def test_a_broken_optional_package_is_reported_and_does_no_harm(monkeypatch, tmp_path, error):
    (tmp_path / "brokenthing.py").write_text(f"raise {error.__name__}('no such operator')")
    monkeypatch.syspath_prepend(tmp_path)
    check = doctor._extra("brokenthing", "brokenthing", "x", "nothing")
    assert check.state == "absent" and "pip install 'ansatz-learn[x]'" in check.detail


@pytest.mark.slow
def test_a_broken_torchvision_does_no_harm(process, tmp_path):
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").write_text("raise RuntimeError('no nms')")
    done = process("doctor", environment={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.status == 0, done.out
