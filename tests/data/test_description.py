import numpy as np
import pandas as pd
import pytest

from ansatz.data import table_one
from ansatz.errors import UsageError


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 10, 90),
            "cost": rng.lognormal(3, 2, 90),
            "sex": rng.choice(["f", "m"], 90),
            "ill": rng.choice(["no", "yes"], 90),
        }
    )
    frame.loc[:4, "sex"] = None
    return frame


def test_cells_are_the_moments_counts_and_quartiles_of_their_rows(table):
    found = table_one(table, by="ill").set_index("variable")
    ill = table[table["ill"] == "yes"]
    column = f"yes (n = {len(ill)})"
    assert (
        found.loc["age, mean (sd)", column] == f"{ill['age'].mean():.4g} ({ill['age'].std():.4g})"
    )
    low, middle, high = ill["cost"].quantile([0.25, 0.5, 0.75])
    expected = f"{middle:.4g} [{low:.4g}, {high:.4g}]"
    assert found.loc["cost, median [quartiles]", column] == expected
    count, known = (ill["sex"] == "f").sum(), ill["sex"].notna().sum()
    assert found.loc["sex, n (%) f", column] == f"{count} ({100 * count / known:.3g})"
    gone = ill["sex"].isna().sum()
    assert found.loc["sex, missing, n (%)", column] == f"{gone} ({100 * gone / len(ill):.3g})"


def test_a_number_divides_the_rows_in_thirds(table):
    sizes = [int(name.split("n = ")[1][:-1]) for name in table_one(table, by="age").columns[1:]]
    assert sizes == [90, 30, 30, 30]


def test_rare_levels_share_a_row(table):
    table["town"] = [f"t{k % 30}" for k in range(90)]
    found = table_one(table)
    assert "20 more" in found["variable"].tolist()


def test_an_unknown_column_is_named(table):
    with pytest.raises(UsageError, match="no column 'x'"):
        table_one(table, by="x")


def test_dates_and_amounts_are_read_as_a_fit_reads_them():
    days = pd.date_range("2021-01-01", periods=90)
    cost = np.random.default_rng(0).uniform(1_000, 9_000, 90).round(2)
    frame = pd.DataFrame({"day": days.strftime("%d.%m.%Y"), "cost": [f"${c:,.2f}" for c in cost]})
    found = table_one(frame).set_index("variable").iloc[:, 0]
    assert found["day, range"] == "2021-01-01 to 2021-03-31"
    plain = table_one(pd.DataFrame({"cost": cost})).set_index("variable").iloc[:, 0]
    assert found.filter(like="cost").tolist() == plain.filter(like="cost").tolist()
    assert table_one(frame, "cost").columns[2].startswith("cost <= ")
