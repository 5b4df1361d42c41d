"""The rows of the catalog, the claims that test them, and the common slips."""

import typing
from importlib import import_module
from pathlib import Path

import pytest

from ansatz import claims
from ansatz.claims.catalog import SECTIONS, Kind, Row, Section, catalog, coverage
from ansatz.claims.errata import Correction, errata

ROWS = catalog()


def test_every_row_is_there_once_and_in_order():
    rows = [f"M{k:03}" for k in range(1, 447)] + [f"E{k}" for k in range(1, 68)]
    assert [row.id for row in ROWS] == rows


def test_every_row_has_a_title_a_section_and_a_known_kind():
    assert all(row.item.strip() == row.item != "" for row in ROWS)
    assert {row.section for row in ROWS} == set(SECTIONS)
    assert {row.kind for row in ROWS} == set(typing.get_args(Kind))
    assert all((row.section == "errata") == (row.kind == "erratum") for row in ROWS)


def test_sections_follow_each_other():
    order = list(SECTIONS)
    first = [order.index(row.section) for row in ROWS[:424]]  # later rows are of a second reading
    assert first == sorted(first)


def test_a_layer_is_a_thing_and_a_theorem_is_a_statement():
    kinds = {row.id: row for row in ROWS}
    assert not kinds["M012"].states and not kinds["M249"].states and kinds["M008"].states
    assert kinds["E17"].states


def test_every_source_of_a_claim_is_a_row_of_the_catalog():
    known = {row.id for row in ROWS}
    for name in claims.names():
        assert set(claims.get(name).sources) <= known, name


def test_coverage_lists_the_rows_that_have_a_claim():
    found = coverage()
    assert [section.id for section in found] == list(SECTIONS)
    for section in found:
        there = {row.id for row in section.rows} - {row.id for row in section.missing}
        assert there == {row.id for row in section.rows} & set(section.claims)
        for row, names in section.claims.items():
            assert all(row in claims.get(name).sources for name in names)


def test_a_section_counts_what_is_missing():
    rows = (Row("M001", "A", "one", "theorem"), Row("M002", "A", "two", "identity"))
    section = Section("A", "first", rows, {"M001": ("xor",)})
    assert section.missing == rows[1:]
    assert section.to_dict()["states"] == 2 and section.to_dict()["claimed"] == 1


@pytest.mark.parametrize("letter", "ABCDEFGHIJKLNU")
def test_a_built_chapter_lacks_nothing(letter):
    (section,) = [each for each in coverage() if each.id == letter]
    assert not [f"{row.id} {row.item}" for row in (*section.missing, *section.absent)]


def test_a_thing_is_where_the_catalog_has_it():
    pages = Path(__file__).parents[2]
    for row in ROWS:
        if row.where.startswith("docs/"):
            assert (pages / row.where).is_file(), row
        elif row.where:
            assert not row.states
            module, _, name = row.where.rpartition(".")
            assert hasattr(import_module(module), name), row


def test_errata_come_in_order_and_all():
    found = errata([])
    numbers = [int(each.row.id[1:]) for each in found]
    assert numbers == sorted(numbers) and set(numbers) == set(range(1, 68))
    assert not [each.row for each in found if each.claim is None]


def test_a_slip_has_its_formulas_even_if_nothing_was_run():
    for each in errata([]):
        if each.erratum is not None:
            assert each.check is None and not each.refuted
            assert each.erratum.printed != each.erratum.correct


def correction(check):
    erratum = claims.Erratum("E1", "2n", "n")
    return Correction(ROWS[-67], "ten", erratum, check)


def test_a_slip_in_a_prediction_is_compared_by_what_it_predicts():
    wrong = claims.Wrong("twice", predicted=20.0, erratum="E1")
    found = correction(claims.Check("n", 10.1, 10.0, 0.5, "half", wrong=wrong))
    assert (found.printed_gives, found.correct_gives) == (20.0, 10.0)
    assert found.refuted and not found.is_measured_otherwise


def test_a_slip_in_a_computation_is_compared_by_what_is_measured_under_it():
    wrong = claims.Wrong("twice", measured=20.0, erratum="E1")
    found = correction(claims.Check("n", 10.1, 10.0, 0.5, "half", wrong=wrong))
    assert (found.printed_gives, found.correct_gives) == (20.0, 10.1)
    assert found.refuted and found.is_measured_otherwise
    assert found.to_dict()["printed"] == "2n" and found.to_dict()["refuted"] is True


def test_errata_of_claims_that_ran_have_their_measurement():
    names = [name for name in claims.names() if claims.get(name).errata][:1]
    outcomes = claims.verify(*names)
    found = [each for each in errata(outcomes) if each.claim in names]
    assert found and all(each.refuted for each in found)
