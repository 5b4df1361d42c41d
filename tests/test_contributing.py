"""The examples of CONTRIBUTING.md work as they stand, each after the data that they share."""

import re
from pathlib import Path

import pytest
import torch

from ansatz import __version__, inference, likelihoods, networks, outcomes, structures

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
FAMILIES = (inference, likelihoods, networks, outcomes, structures)
KINDS = [
    *("A likelihood", "A network", "A structure", "An outcome", "An inference"),
    *("A report section", "A claim"),
]


@pytest.fixture(autouse=True)
def _own_members():
    """Forgets the members that an example registers."""
    before = {family: set(family.names()) for family in FAMILIES}
    yield
    for family, names in before.items():
        for name in set(family.names()) - names:
            family.registry.remove(name)


def test_there_is_one_example_for_each_kind_of_extension():
    parts = TEXT.split("\n### ")[1:]
    assert [part.splitlines()[0] for part in parts] == KINDS
    assert all(len(BLOCK.findall(part)) == 1 for part in parts)


def test_the_examples_run_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.set_default_dtype(torch.float32)  # what a user has
    names = {"__name__": "__main__"}
    for found in BLOCK.finditer(TEXT):
        line = TEXT[: found.start(1)].count("\n")
        exec(compile("\n" * line + found[1], "CONTRIBUTING.md", "exec"), names)


def test_the_files_that_it_names_exist():
    named = re.findall(r"`(tests/[\w/]+\.(?:py|txt))`|\]\(([^)#]+)\)", TEXT)
    missing = [one or other for one, other in named if not (ROOT / (one or other)).exists()]
    assert not missing
    folders = re.findall(r"[Ff]older:\s`(\w+)/", TEXT)
    assert len(folders) >= 5 and all((ROOT / "src" / "ansatz" / f).is_dir() for f in folders)


def test_the_version_is_the_same_everywhere():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (version, day), *_ = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\S+)$", changes, re.MULTILINE)
    assert version == __version__
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {version}\n" in citation and f"\ndate-released: {day}\n" in citation
