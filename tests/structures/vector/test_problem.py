import numpy as np
import pandas as pd
import pytest

from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.structures.vector.problem import build_problem

CYCLE = np.arange(60)
PROPOSALS = {
    "numbers": (CYCLE / 7, "normal"),
    "zeros and ones": (CYCLE % 2, "bernoulli"),
    "zeros and ones as floats": ((CYCLE % 2).astype(float), "bernoulli"),
    "two words": (np.where(CYCLE % 2, "u", "v"), "bernoulli"),
    "three words": (np.array(["u", "v", "w"])[CYCLE % 3], "categorical"),
    "truth": (CYCLE % 2 == 0, "bernoulli"),
}


@pytest.mark.parametrize("values, likelihood", PROPOSALS.values(), ids=PROPOSALS)
def test_a_likelihood_is_proposed_by_the_support(values, likelihood):
    problem = build_problem({"x": CYCLE % 11, "y": values}, ColumnRoles(target=["y"]))
    assert likelihood in problem.candidates and (problem.kind == "number") == (
        likelihood == "normal"
    )
    assert len(problem.candidates) > 1 or any(likelihood in note for note in problem.notes)


def test_a_likelihood_that_is_given_is_not_explained():
    problem = build_problem(
        {"x": CYCLE % 11, "y": CYCLE}, ColumnRoles(target=["y"]), likelihood="poisson"
    )
    assert problem.likelihood == "poisson" and not problem.notes


def test_rows_are_named_as_in_the_file(tmp_path):
    path = tmp_path / "claims.csv"
    path.write_text("x,y\n1,1\n2,\n3,2\n4,-1\n5,3\n")
    with pytest.raises(DataError, match=r"claims\.csv, column 'y'.*-1.*row 4"):
        build_problem(path, ColumnRoles(target=["y"]), likelihood="poisson")


def test_the_fingerprint_is_of_the_content():
    column_roles, table = ColumnRoles(target=["y"]), {"x": CYCLE % 11, "y": CYCLE / 7}
    one = build_problem(table, column_roles).fingerprint
    assert build_problem(pd.DataFrame(table).set_axis(CYCLE + 5), column_roles).fingerprint == one
    for other in (
        {"x": CYCLE % 11, "y": CYCLE / 7 + 1e-12},
        {"z": CYCLE % 11, "y": CYCLE / 7},
        {"x": (CYCLE % 11)[::-1], "y": CYCLE / 7},
    ):
        assert build_problem(other, column_roles).fingerprint != one


def test_columns_are_dropped_and_given_roles():
    table = {"a": CYCLE % 5, "b": CYCLE % 7, "y": CYCLE / 7}
    problem = build_problem(
        table, ColumnRoles(target=["y"]), roles={"a": "categorical"}, drop=["b"]
    )
    assert [(c.name, c.role) for c in problem.columns] == [("a", "categorical")]


def test_reading_options_are_for_files():
    with pytest.raises(UsageError, match="delimiter: only for files"):
        build_problem({"x": [1], "y": [2]}, ColumnRoles(target=["y"]), reader={"delimiter": ";"})


def test_names_that_are_no_strings_become_strings():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)))
    problem = build_problem(frame, ColumnRoles(target=["2"]))
    assert problem.rows.describe()["names"] == ["0", "1"]


@pytest.mark.parametrize(
    "options", [{"drop": ["code"]}, {"roles": {"code": "categorical"}}], ids=["dropped", "classes"]
)
def test_a_column_that_is_mostly_numbers_may_be_dropped_or_made_classes(tmp_path, options):
    path = tmp_path / "codes.csv"
    codes = ["none", "1", "2", *"1212" * 20]
    path.write_text("x,code,y\n" + "".join(f"{k},{c},{k / 7}\n" for k, c in enumerate(codes)))
    with pytest.raises(DataError, match="column 'code': expected a number, got 'none'"):
        build_problem(path, ColumnRoles(target=["y"]))
    columns = {
        column.name: column
        for column in build_problem(path, ColumnRoles(target=["y"]), **options).columns
    }
    assert "code" not in columns or columns["code"].levels == ("1", "2", "none")


def test_an_infinite_feature_is_named_by_its_row_in_the_file(tmp_path):
    path = tmp_path / "claims.csv"
    path.write_text("x,y\n1,1\n2,\n3,2\ninf,4\n5,3\n")
    with pytest.raises(DataError, match=r"claims\.csv: infinite values in column 'x'.*row 4"):
        build_problem(path, ColumnRoles(target=["y"]))


def test_dates_are_no_classes():
    days = [f"2024-01-{1 + k % 28:02d}" for k in range(60)]
    with pytest.raises(DataError, match="'y' holds dates"):
        build_problem({"x": CYCLE % 11, "y": days}, ColumnRoles(target=["y"]))


def test_whole_numbers_with_an_exposure_are_counts():
    table = {"x": CYCLE % 11, "years": 1 + CYCLE % 3, "y": CYCLE % 4}
    assert build_problem(table, ColumnRoles(target=["y"], exposure="years")).likelihood == "poisson"
    assert (
        "normal" not in build_problem(table, ColumnRoles(target=["y"], exposure="years")).candidates
    )
    assert "normal" in build_problem(table, ColumnRoles(target=["y"])).candidates


def test_an_exposure_beside_an_identity_link_is_reported():
    table = {"x": CYCLE % 11, "years": 1 + CYCLE % 3, "y": CYCLE / 7 - 2}
    notes = build_problem(table, ColumnRoles(target=["y"], exposure="years")).notes
    assert any("exposure" in note and "identity" in note for note in notes)
    assert not build_problem(table, ColumnRoles(target=["y"])).notes[1:]


def test_a_column_of_words_is_no_time(tmp_path):
    table = {"x": CYCLE % 11, "town": np.where(CYCLE % 2, "Jena", "Weimar"), "y": CYCLE / 7}
    with pytest.raises(DataError, match="column 'town': expected an ISO date"):
        build_problem(table, ColumnRoles(target=["y"], time="town"))


def test_a_constant_target_is_reported():
    notes = build_problem({"x": CYCLE % 11, "y": CYCLE * 0 + 5}, ColumnRoles(target=["y"])).notes
    assert any("is 5 in every row" in note for note in notes)
