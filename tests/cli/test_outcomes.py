"""Every kind of outcome through the command: fit, predict and evaluate, and what is refused."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import optimize, special, stats

DATA = Path(os.environ.get("ANSATZ_DATA", "nowhere"))
needs_data = pytest.mark.skipif(not DATA.exists(), reason="ANSATZ_DATA is not set")
LINEAR = ("--network", "linear", "--quiet")
ORDERS = """age,order
20,tea>rum>milk
30,tea>milk>rum
40,milk>tea>rum
50,rum>tea
60,milk>tea
33,rum>milk
23,milk>tea>rum
22,tea
44,rum>tea>milk
55,rum>milk>tea
"""


@pytest.fixture
def times(tmp_path):
    """Times of two causes by x; returns a writer of variants of the table."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=80).round(3)
    first, second, end = rng.exponential([np.exp(0.5 * x), np.exp(-0.5 * x), 2 + 0 * x])
    cause = np.select([end <= np.minimum(first, second), first <= second], [0, 1], 2)
    time = np.minimum(np.minimum(first, second), end).round(3) + 0.001
    table = pd.DataFrame({"x": x, "time": time, "cause": cause})

    def write(name="times.csv", **columns):
        table.assign(**columns).to_csv(tmp_path / name, index=False)
        return table

    write()
    return write


def one_line(done, status, *words):
    """A failure is one line on standard error, without a traceback, and prints nothing else."""
    assert done.status == status, done.err
    assert done.out == "" and done.err.startswith("ansatz: ")
    assert done.err.count("\n") == 1 and "unexpected" not in done.err
    for word in words:
        assert word in done.err
    return done.err


# Tables without features.


@needs_data
def test_wind_directions_have_the_known_concentration(command):
    words = ("--target", "direction_radians", "--likelihood", "von_mises", "--quiet")
    done = command("fit", "wind-direction", *words)
    assert "(kappa: 1.76786)" in done.out and "(mean direction: 0.29216" in done.out


def test_a_model_without_features_predicts_as_many_rows_as_there_are(command, tmp_path, table_of):
    values = np.random.default_rng(0).vonmises(0.5, 2, 40)
    (tmp_path / "wind.csv").write_text("angle\n" + "\n".join(map(str, values)))
    words = ("--target", "angle", "--likelihood", "von_mises", "--quiet")
    assert command("fit", "wind.csv", *words).status == 0
    found = table_of(command("predict", "wind-model", "wind.csv", "--interval", "0.9").out)
    direction = np.angle(np.exp(1j * values).mean())
    assert len(found) == 40
    np.testing.assert_allclose(found["prediction"], direction, rtol=1e-5)
    kappa = wider(stats.vonmises.fit(values, fscale=1)[0], 40)
    bound = stats.vonmises(kappa).ppf(0.95)
    np.testing.assert_allclose(found["upper"], direction + bound, rtol=1e-4)
    evaluated = json.loads(command("evaluate", "wind-model", "wind.csv", "--json").out)
    truth = -stats.vonmises(kappa, loc=direction).logpdf(values).mean()
    assert evaluated["nll"] == pytest.approx(truth, rel=1e-4)


def wider(kappa, rows):
    """The concentration of von Mises distributions averaged over the error of its estimate.

    The natural parameters kappa (cos m, sin m) have the information A' along their direction and
    A / kappa across it, A = I1 / I0; the average has the mean of the first moments.
    """
    length = special.ive(1, kappa) / special.ive(0, kappa)
    error = np.array([1 - length / kappa - length**2, length / kappa]) * rows
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    along = (kappa + nodes / np.sqrt(error[0]))[:, None]
    size = np.hypot(along, nodes / np.sqrt(error[1]))
    moments = special.ive(1, size) / special.ive(0, size) * along / size
    mean = weights @ moments @ weights / weights.sum() ** 2
    return optimize.brentq(lambda k: special.ive(1, k) / special.ive(0, k) - mean, 1e-3, 50)


# Rankings.


def test_a_ranking_of_one_item_is_an_order_among_orders(command, tmp_path):
    (tmp_path / "tea.csv").write_text(ORDERS)
    done = command("fit", "tea.csv", "--target", "order", *LINEAR)
    assert "likelihood plackett_luce: 'order' holds orders" in done.err
    assert "in 1 of the rankings two or more of the 3 items are left out" in done.err
    assert "NEW.csv\n" in done.out  # an order has no interval to recommend
    words = ("--target", "order", "--set", "unranked=absent", "--overwrite", *LINEAR)
    absent = command("fit", "tea.csv", *words)
    assert absent.status == 0 and "left out" not in absent.err


def test_texts_with_some_other_text_are_classes(command, tmp_path):
    (tmp_path / "tea.csv").write_text(ORDERS.replace("22,tea", "22,coffee"))
    done = command("fit", "tea.csv", "--target", "order", "--dry-run")
    assert "likelihood categorical" in done.err


def test_rows_of_all_ranks_ask_whether_they_are_rankings(command, tmp_path):
    rows = (np.random.default_rng(k).permutation(3) + 1 for k in range(8))
    (tmp_path / "t.csv").write_text("a,b,c\n" + "\n".join(",".join(map(str, r)) for r in rows))
    done = command("fit", "t.csv", "--target", "a,b,c", "--dry-run")
    assert "if they are rankings, --likelihood plackett_luce" in done.err
    assert done.out == "a, b, c: 8 rows, likelihood normal, network linear; would write t-model\n"


# Compositions.


def test_parts_of_a_whole_keep_their_names(command, tmp_path):
    shares = np.random.default_rng(0).dirichlet([3.0, 2.0, 4.0], 30)
    table = pd.DataFrame(shares, columns=["sand", "silt", "clay"]).assign(depth=range(30))
    table.to_csv(tmp_path / "lake.csv", index=False)
    done = command("fit", "lake.csv", "--target", "sand,silt,clay", *LINEAR)
    assert re.findall("Coefficients of (.*):", done.out) == ["silt", "clay"]
    assert "linear with 5 parameters" in done.out and "with 5 parameters," in done.out


# Survival.


def test_events_may_be_true_or_false(command, times):
    table = times()
    times("words.csv", cause=table["cause"] > 0)
    times("codes.csv", cause=(table["cause"] > 0).astype(int))
    words = ("--target", "time", "--event", "cause", "--likelihood", "weibull", "--json", *LINEAR)
    assert (table["cause"] == 0).any()
    one, other = (
        json.loads(command("fit", name, *words).out) for name in ("words.csv", "codes.csv")
    )
    assert one["log_likelihood"] == other["log_likelihood"]


@pytest.mark.parametrize("likelihood", ["exponential", "weibull", "log_normal", "cox"])
def test_rows_alike_have_a_concordance_of_one_half(command, times, likelihood):
    times("one.csv", cause=(times()["cause"] > 0).astype(int))
    words = ("--target", "time", "--event", "cause", "--likelihood", likelihood, "--json", *LINEAR)
    assert json.loads(command("fit", "one.csv", *words).out)["constant"]["c_index"] == 0.5


def test_several_causes_have_no_interval(command, times, table_of):
    words = ("--target", "time", "--event", "cause", "--set", "epochs=2", "--quiet")
    done = command("fit", "times.csv", *words)
    assert done.status == 0 and "NEW.csv\n" in done.out
    found = command("predict", "times-model", "times.csv", "--interval", "0.9", "--times", "1,2")
    assert "several causes have no interval" in found.err
    table = table_of(found.out)
    total = table["survival_1"] + table["incidence_1_1"] + table["incidence_2_1"]
    np.testing.assert_allclose(total, 1, rtol=1e-6)


@pytest.mark.parametrize("likelihood", ["cox", "weibull"])
def test_rows_that_are_all_censored_are_refused_with_advice(command, times, likelihood):
    times("none.csv", cause=0)
    words = ("--target", "time", "--event", "cause", "--likelihood", likelihood, *LINEAR)
    one_line(command("fit", "none.csv", *words), 3, "censored", "--event COLUMN=VALUE")
    assert not Path("none-model").exists()


def test_too_few_test_rows_for_any_metric_print_no_empty_table(command, times):
    table = times()
    table.head(6).assign(cause=[1, 1, 0, 1, 1, 1]).to_csv("few.csv", index=False)
    words = ("--target", "time", "--event", "cause", "--likelihood", "cox", "--test", "0.17")
    done = command("fit", "few.csv", *words, *LINEAR)
    assert done.status == 0 and not re.search(r"^metric .*\n\n", done.out, flags=re.MULTILINE)


# The model beside the linear model.


@pytest.mark.parametrize("likelihood", ["weibull", "log_normal"])
def test_a_linear_model_is_its_own_comparison(command, times, likelihood):
    times("one.csv", cause=(times()["cause"] > 0).astype(int))
    words = ("--target", "time", "--event", "cause", "--likelihood", likelihood, "--json", *LINEAR)
    done = json.loads(command("fit", "one.csv", *words).out)
    assert done["linear"] == done["metrics"]


# Options.


@pytest.mark.parametrize(
    "words, said",
    [
        (("--likelihood", "normal", "--set", "foo=1"), "'foo' is not an option of a linear model"),
        (
            ("--likelihood", "normal", "--set", "widths=[3]"),
            "'widths' is not an option of a linear",
        ),
        (("--set", "components=2"), "'components' is not an option of a linear model"),
        (("--likelihood", "normal", "--set", "dispersion=wide"), "got 'wide'"),
        (("--likelihood", "quantiles", "--set", "levels=[0.1,2]"), "strictly between 0 and 1"),
        (("--likelihood", "quantiles", "--set", "levels=3"), "quantiles"),
        (("--likelihood", "normal_mixture", "--set", "components=0"), ">= 1, got 0"),
        (("--likelihood", "tweedie", "--set", "power=3"), "inverse_gaussian"),
    ],
)
def test_an_option_that_cannot_be_honoured_is_named(command, times, words, said):
    one_line(command("fit", "times.csv", "--target", "time", *words, *LINEAR), 2, said)
    assert not Path("times-model").exists()


# Successes of trials.


@pytest.fixture
def successes(tmp_path):
    rng = np.random.default_rng(0)
    x, n = rng.normal(size=60), rng.integers(1, 20, 60)
    table = pd.DataFrame({"x": x, "k": rng.binomial(n, 1 / (1 + np.exp(-x))), "n": n})
    table.to_csv(tmp_path / "shots.csv", index=False)
    return table


def test_successes_are_predicted_in_their_own_unit(command, successes, table_of):
    words = ("--target", "k", "--trials", "n", "--likelihood", "binomial", "--test", "0", *LINEAR)
    assert command("fit", "shots.csv", *words).status == 0
    found = table_of(command("predict", "shots-model", "shots.csv", "--interval", "0.8").out)
    k, n = successes["k"].to_numpy(), successes["n"].to_numpy()
    X = sm.add_constant(successes["x"].to_numpy())
    fitted = sm.GLM(np.stack([k, n - k], 1), X, family=sm.families.Binomial()).fit()
    np.testing.assert_allclose(found["probability"], fitted.predict(X), rtol=1e-4)
    np.testing.assert_allclose(found["prediction"], n * found["probability"])
    # The mixture over the error of the log odds.
    error = np.sqrt(np.einsum("ni,ij,nj->n", X, fitted.cov_params(), X))
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    chance = special.expit((X @ fitted.params)[:, None] + error[:, None] * nodes)
    counts = stats.binom(n[:, None, None], chance[:, :, None]).cdf(np.arange(20))
    cdf = np.einsum("nmk,m->nk", counts, weights / weights.sum())
    for name, level in (("lower", 0.1), ("upper", 0.9)):
        np.testing.assert_array_equal(found[name], (cdf < level).sum(1))
    successes[["x"]].to_csv("new.csv", index=False)
    alone = table_of(command("predict", "shots-model", "new.csv").out)
    assert list(alone) == ["probability"]
    np.testing.assert_allclose(alone["probability"], found["probability"])
    refused = command("predict", "shots-model", "new.csv", "--interval", "0.8")
    one_line(refused, 3, "no column 'n'", "trials")


# What evaluate refuses and keeps.


def test_impossible_outcomes_are_refused_when_evaluated(command, successes):
    words = ("--target", "k", "--trials", "n", "--likelihood", "binomial", *LINEAR)
    assert command("fit", "shots.csv", *words).status == 0
    successes.loc[2, "k"] = 99
    successes.to_csv("wrong.csv", index=False)
    one_line(command("evaluate", "shots-model", "wrong.csv"), 3, "wrong.csv", "99", "row 3")


def test_open_intervals_are_evaluated(command, times):
    table = times()
    ends = {"lower": table["time"], "upper": table["time"] + 0.5}
    ends["upper"] = ends["upper"].where(table.index % 3 > 0)
    ends["lower"] = ends["lower"].where(table.index % 5 > 0)
    both = ends["lower"].isna() & ends["upper"].isna()
    times("ends.csv", **ends)
    words = ("--lower", "lower", "--upper", "upper", "--likelihood", "weibull", "--test", "0")
    fitted = json.loads(
        command("fit", "ends.csv", *words, "--drop", "time,cause", "--json", *LINEAR).out
    )
    done = command("evaluate", "ends-model", "ends.csv", "--json")
    assert f"left out: {both.sum()}." in done.err
    total = json.loads(done.out)["nll"] * (~both).sum()
    # The log-likelihood is that at the estimates, the score is averaged over their error.
    assert total == pytest.approx(-fitted["log_likelihood"], rel=5e-3)


# Tables that need another look.


def test_classes_that_were_not_named_are_refused(command, tmp_path):
    rows = (f"{k},{'low mid high'.split()[k % 3]}" for k in range(30))
    (tmp_path / "t.csv").write_text("x,grade\n" + "\n".join(rows))
    words = ("--target", "grade", "--likelihood", "ordinal", "--set", 'classes=["low","mid"]')
    done = command("fit", "t.csv", *words, *LINEAR)
    one_line(done, 3, "t.csv, column 'grade'", "'high' at row 3", "['low', 'mid']")


@pytest.mark.parametrize("likelihood", ["normal", "laplace", "student_t"])
def test_numbers_too_large_to_be_squared_are_refused(command, tmp_path, likelihood):
    (tmp_path / "t.csv").write_text("x,y\n" + "\n".join(f"{k},{k + 1}e200" for k in range(20)))
    done = command("fit", "t.csv", "--target", "y", "--likelihood", likelihood, *LINEAR)
    one_line(done, 3, "t.csv, row 20, column 'y'", "power of ten")


def test_percentages_ask_whether_they_are_parts_of_a_whole(command, tmp_path):
    shares = (100 * np.random.default_rng(0).dirichlet([3.0, 2.0, 4.0], 30)).round(2)
    pd.DataFrame(shares, columns=list("abc")).to_csv(tmp_path / "t.csv", index=False)
    done = command("fit", "t.csv", "--target", "a,b,c", "--dry-run")
    assert "each row adds up to 100" in done.err
    words = ("--target", "a,b,c", "--likelihood", "dirichlet")
    one_line(command("fit", "t.csv", *words), 3, "at row 1", "Divide percentages by 100")


def test_a_missing_entry_is_said(command, times):
    table = times()
    entry = (table["time"] / 2).where(table.index != 4)
    times("late.csv", entry=entry, cause=(table["cause"] > 0).astype(int))
    words = ("--target", "time", "--event", "cause", "--entry", "entry", "--likelihood", "cox")
    done = command("fit", "late.csv", *words, *LINEAR)
    assert "rows without a value of 'entry', watched from the start: 1." in done.err
