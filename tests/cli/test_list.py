import importlib
import json
import pkgutil

import pytest

import ansatz
from ansatz.cli.names import KINDS, complete, kind_called, names_of, registry_of
from ansatz.errors import UsageError
from ansatz.registry import Registry


def every_registry():
    for info in pkgutil.walk_packages(ansatz.__path__, "ansatz."):
        if not info.name.endswith("__main__"):
            for value in vars(importlib.import_module(info.name)).values():
                if isinstance(value, Registry):
                    yield value


def test_every_registry_of_the_library_is_a_kind():
    listed = [registry_of(kind) for kind in KINDS]
    forgotten = {each.kind for each in every_registry() if not any(each is one for one in listed)}
    assert not forgotten


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_as_json_is_rows_of_name_summary_reference(command, kind):
    done = command("list", kind, "--json")
    assert (done.status, done.err) == (0, "")
    rows = json.loads(done.out)
    assert [row["name"] for row in rows] == registry_of(kind).names()
    assert all(set(row) == {"name", "summary", "reference"} for row in rows)
    assert all(row["summary"] for row in rows)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_as_a_table_names_everything(command, kind):
    lines = command("list", kind).out.splitlines()
    assert [line.split()[0] for line in lines[1:-2]] == registry_of(kind).names()


def test_without_a_kind_the_kinds_are_counted(command):
    rows = json.loads(command("list", "--json").out)
    assert {row["kind"]: row["count"] for row in rows} == {
        kind: len(registry_of(kind).names()) for kind in KINDS
    }
    assert "likelihoods" in command("list").out


@pytest.mark.parametrize("kind", KINDS)
def test_completion_knows_what_the_registry_knows(kind):
    assert names_of(kind) == registry_of(kind).names()


def test_completion_offers_what_begins_alike():
    assert complete("likelihoods")("poi") == ["poisson"]


@pytest.mark.parametrize("spelling", ["likelihoods", "likelihood", "Likelihoods"])
def test_a_kind_may_be_spelled_in_the_singular(spelling):
    assert kind_called(spelling) == "likelihoods"


def test_a_mistyped_kind_suggests_the_nearest(command):
    done = command("list", "likelyhoods")
    assert done.status == 2 and "Did you mean 'likelihoods'?" in done.err


def test_an_unknown_kind_lists_the_kinds():
    with pytest.raises(UsageError, match="Kinds: likelihoods, networks"):
        kind_called("zzz")


def test_losses_are_the_likelihoods_without_a_distribution(command):
    out = command("list", "losses").out
    listed = {line.split()[0] for line in out.splitlines()[1:] if line.startswith(("m", "n"))}
    assert listed == {"mae", "mse"} and "--likelihood NAME" in out
