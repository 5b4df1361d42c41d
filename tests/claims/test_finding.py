"""A check decides by its relation and tolerance, and its wrong prediction must fail."""

import math

import pytest

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.errors import UsageError


@pytest.mark.parametrize(
    "relation, measured, holds",
    [
        ("=", 1.1, True),
        ("=", 0.9, True),
        ("=", 1.2, False),
        ("=", 0.8, False),
        ("<=", 1.1, True),
        ("<=", -9.0, True),
        ("<=", 1.2, False),
        (">=", 0.9, True),
        (">=", 9.0, True),
        (">=", 0.8, False),
    ],
)
def test_a_relation_allows_its_own_side_and_the_tolerance(relation, measured, holds):
    assert Check("x", measured, 1.0, 0.125, "one eighth", relation).holds is holds


@pytest.mark.parametrize("relation", ["=", "<=", ">="])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_never_holds(relation, value):
    assert not Check("x", value, 1.0, 0.1, "", relation).holds
    assert not Check("x", 1.0, value, 0.1, "", relation).holds


def test_a_tolerance_of_nan_never_holds():
    assert not Check("x", 1.0, 1.0, math.nan, "").holds


def test_a_wrong_prediction_fails_by_what_it_predicts():
    assert Check("x", 1.0, 1.0, 0.1, "", wrong=Wrong("twice", predicted=2.0)).rejects_wrong
    assert not Check("x", 1.0, 1.0, 0.1, "", wrong=Wrong("same", predicted=1.05)).rejects_wrong


def test_a_wrong_formula_fails_by_what_is_measured_under_it():
    assert Check("x", 1.0, 1.0, 0.1, "", wrong=Wrong("twice", measured=2.0)).rejects_wrong
    assert not Check("x", 1.0, 1.0, 0.1, "", wrong=Wrong("same", measured=1.05)).rejects_wrong


def test_a_wrong_formula_that_gives_nan_is_refuted():
    assert Check("x", 1.0, 1.0, 0.1, "", wrong=Wrong("breaks", measured=math.nan)).rejects_wrong


def test_a_wrong_bound_must_be_violated():
    wrong = Wrong("half the bound", predicted=0.5)
    assert Check("x", 0.9, 1.0, 0.0, "", "<=", wrong=wrong).rejects_wrong
    assert not Check("x", 0.4, 1.0, 0.0, "", "<=", wrong=wrong).rejects_wrong


def test_a_check_without_a_wrong_prediction_rejects_nothing():
    assert Check("x", 1.0, 1.0, 0.1, "").rejects_wrong


def test_json_has_what_the_wrong_one_predicts_and_gives():
    wrong = Wrong("twice", measured=2.0, erratum="E17")
    found = Check("x", 1.0, 1.0, 0.1, "exact", wrong=wrong).to_dict()
    assert found["holds"] and found["because"] == "exact" and found["relation"] == "="
    assert found["wrong"] == {
        "name": "twice", "erratum": "E17", "predicted": 1.0, "measured": 2.0, "refuted": True,
    }  # fmt: skip
    assert "wrong" not in Check("x", 1.0, 1.0, 0.1, "exact").to_dict()


def finding(*checks):
    return Finding(checks, Table(["a"], [[1]]))


GOOD = Check("good", 1.0, 1.0, 0.1, "", wrong=Wrong("twice", predicted=2.0))
BAD = Check("bad", 3.0, 1.0, 0.1, "")


def test_a_finding_holds_when_all_its_checks_do():
    assert finding(GOOD).holds and not finding(GOOD, BAD).holds
    assert finding(GOOD, BAD).measured == 1.0 and finding(BAD, GOOD).measured == 3.0
    assert (finding(GOOD).predicted, finding(GOOD).tolerance) == (1.0, 0.1)


def test_a_finding_must_name_a_wrong_prediction_and_every_one_must_fail():
    passes = Check("x", 1.0, 1.0, 0.1, "", wrong=Wrong("same", predicted=1.0))
    assert finding(GOOD, BAD).rejects_wrong
    assert not finding(BAD).rejects_wrong and not finding(GOOD, passes).rejects_wrong


def test_a_finding_without_a_check_is_refused():
    with pytest.raises(ValueError, match="at least one check"):
        Finding([])


def claim(**options):
    def measure(generator, *, runs=10, size=2.0):
        """Nothing."""
        return finding(Check("runs", runs, 10, 0, "", wrong=Wrong("none", predicted=0)))

    given = {"id": "ten", "title": "Ten", "statement": "Ten is ten.", "formula": "10 = 10"}
    given |= {"sources": ("M001",), "measure": measure, "reference": "Nobody."}
    return Claim(**(given | options))


def test_the_parameters_of_a_quick_run_are_the_defaults_and_full_replaces_some():
    found = claim(full={"runs": 1000})
    assert found.parameters() == {"runs": 10, "size": 2.0}
    assert found.parameters("full") == {"runs": 1000, "size": 2.0}
    assert found.run().holds and not found.run("full").holds
    assert found.run("full", runs=10).holds


def test_an_unknown_parameter_is_named_with_the_known_ones():
    with pytest.raises(UsageError, match=r"'ten' has no parameter 'rnus'\. Known: runs, size"):
        claim().run(rnus=3)


def test_an_unknown_scale_is_refused():
    with pytest.raises(UsageError, match="quick or full, got 'huge'"):
        claim().run("huge")


def test_a_claim_explains_itself_by_title_statement_formula_and_reference():
    text = claim(errata=(Erratum("E1", "a", "b"),)).__doc__
    assert text.startswith("Ten.\n\nTen is ten.\n\n.. math:: 10 = 10\n\nReferences:\n    Nobody.")
