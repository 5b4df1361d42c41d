import json

import pytest

from ansatz.bench import suites
from ansatz.bench.finding import Bound, Finding
from ansatz.bench.race import Quartiles
from ansatz.errors import UsageError


@pytest.fixture
def suite(monkeypatch):
    """One suite whose finding the test decides."""
    found = [Finding("toy", "seconds", 1.0, {"b": 3.0}, {"b": Quartiles(3.0, 2.9, 3.1)})]

    class Toy:
        is_quick = True

        def run(self, options):
            self.options = options
            return found

    toy = Toy()
    toy.found = found
    monkeypatch.setattr(suites, "SUITES", {"toy": toy})
    return toy


def test_a_table_with_ratio_spread_limit_and_verdict(command, suite):
    suite.found[0].limit = {"b": Bound(at_least=2)}
    done = command("bench")
    assert done.status == 0
    assert "3.00" in done.out and "2.90 to 3.10" in done.out and ">= 2" in done.out
    assert "met" in done.out and "NOT MET" not in done.out


def test_a_bar_that_is_not_met_is_status_1(command, suite):
    suite.found[0].limit = {"b": Bound(at_least=4)}
    done = command("bench", "toy")
    assert done.status == 1 and "NOT MET" in done.out


def test_a_missing_peer_is_said_and_is_no_failure(command, suite):
    suite.found[0].missing = ["skorch"]
    done = command("bench")
    assert done.status == 0 and "missing: skorch. To measure these too: make bench" in done.out


def test_json_is_one_document_of_the_announced_shape(command, suite):
    suite.found[0].limit = {"b": Bound(at_least=2)}
    (row,) = json.loads(command("bench", "--json").out)
    assert row["name"] == "toy" and row["ours"] == 1 and row["peers"] == {"b": 3}
    assert row["limit"] == {"b": {"at_least": 2}} and row["ratio"] == {"b": 3}
    assert row["unit"] == "seconds" and row["holds"] is True


def test_a_record_keeps_the_circumstances(command, suite, tmp_path):
    for _ in range(2):  # a second one replaces the first
        assert command("bench", "--record", "--out", "kept", "--seed", "3").status == 0
    kept = json.loads((tmp_path / "kept" / "bench-toy.json").read_text())
    assert kept["seed"] == 3 and "torch" in kept["versions"]
    assert kept["results"][0]["name"] == "toy" and "commit" in kept and "machine" in kept


def test_a_part_of_the_cases_can_be_asked_for(command, suite):
    command("bench", "--only", "mnist, cifar10", "--examples", "300", "--threads", "2")
    assert suite.options.pick(["mnist", "isbi2012", "cifar10"]) == ["mnist", "cifar10"]
    assert suite.options.examples == 300 and suite.options.threads == 2
    with pytest.raises(UsageError, match=r"no case is called 'cifar10'\. Known: mnist, lenet5"):
        suite.options.pick(["mnist", "lenet5"])


def test_options_reach_the_suite(command, suite):
    command("bench", "--rounds", "2", "--splits", "0-2,5", "--inference", "point")
    assert suite.options.rounds == 2 and suite.options.splits == (0, 1, 2, 5)
    assert suite.options.inference == "point" and suite.options.folder is None


@pytest.mark.parametrize(
    "words, complaint",
    [
        (["nothing"], "no suite is called 'nothing'. Known: toy, all."),
        (["--splits", "a-b"], "--splits takes numbers and ranges"),
        (["--inference", "magic"], "--inference must be dropout or ensemble or gp or"),
        (["--rounds", "0"], "rounds"),
    ],
)
def test_what_cannot_be_run_is_a_usage_error(command, suite, words, complaint):
    done = command("bench", *words)
    assert done.status == 2 and complaint in done.err
