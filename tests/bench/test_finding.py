import math

import pytest

from ansatz.bench.finding import Bound, Finding
from ansatz.bench.image_quality import epochs_within
from ansatz.bench.race import Race, Time


def race(**seconds):
    return Race({name: [Time(s, 2 * s) for s in each] for name, each in seconds.items()})


def test_under_at_least_the_ratio_is_how_many_times_as_fast_we_are():
    found = Finding.of("x", race(ours=[1, 1], slow=[3, 3]), {"slow": Bound(at_least=2.5)})
    assert found.ratio["slow"].median == 3 and found.holds


def test_under_at_most_the_ratio_is_ours_over_theirs():
    found = Finding.of("x", race(ours=[3, 3], limit=[1, 1]), {"limit": Bound(at_most=2)})
    assert found.ratio["limit"].median == 3 and not found.holds


def test_a_bar_of_who_did_not_run_is_left_out_and_they_are_missing():
    bars = {"skorch": Bound(at_least=2), "b": Bound(at_least=1)}
    found = Finding.of("x", race(ours=[1], b=[2]), bars, missing=["skorch"])
    assert found.holds and found.missing == ["skorch"] and list(found.limit) == ["b"]


def test_what_could_not_be_measured_does_not_pass():
    assert not Bound(at_most=1).met(None) and not Bound(at_least=0).met(math.nan)


@pytest.mark.parametrize("value, passes", [(0.86, False), (0.87, True), (0.95, True), (1, False)])
def test_a_bar_may_have_two_sides(value, passes):
    assert Finding("c", "share", value, limit={"ours": Bound(0.87, 0.95)}).holds == passes


def test_the_document_has_the_announced_keys():
    found = Finding.of("x", race(ours=[1, 2], b=[2, 6]), {"b": Bound(at_least=2)}).to_dict()
    assert {"name", "ours", "peers", "limit", "unit", "ratio"} <= set(found)
    assert found["ratio"] == {"b": 2.5} and found["limit"] == {"b": {"at_least": 2}}
    assert found["wall ratio"] == {"b": 2.5} and found["rounds"] == 2


def test_a_bar_is_written_with_its_sides():
    bars = Bound(0.87, 0.95), Bound(at_least=2.0), Bound(at_most=1.5), Bound()
    assert [str(bar) for bar in bars] == ["0.87 to 0.95", ">= 2", "<= 1.5", "any"]


def test_the_epochs_of_the_window_leave_one_for_validation():
    assert (epochs_within(100.0, 9.0), epochs_within(5.0, 9.0)) == (10, 1)
