import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from tests.estimators.conftest import TINY

from ansatz import Classifier, Regressor, load
from ansatz.errors import UsageError

LIKELIHOODS = ["normal", "laplace", "student_t", "gamma", "poisson"]


def draw(rows, likelihood, seed):
    """Outcomes of a likelihood whose first parameter is linear in x."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(rows, 1))
    mean = 1 + 2 * x[:, 0]
    y = {
        "normal": lambda: mean + 0.5 * rng.normal(size=rows),
        "laplace": lambda: mean + 0.5 * rng.laplace(size=rows),
        "student_t": lambda: mean + 0.5 * rng.standard_t(5, size=rows),
        "gamma": lambda: rng.gamma(4.0, np.exp(mean / 2) / 4.0),
        "poisson": lambda: rng.poisson(np.exp(1 + mean / 2)).astype(float),
    }[likelihood]()
    return x, y


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("network", ["linear", "mlp"])
def test_intervals_cover_new_rows_as_often_as_they_say(likelihood, network):
    """Binomial: 4 standard errors of 4,000 rows, and 1.5 % for estimating the parameters."""
    options = {} if network == "linear" else {"widths": (8,), "epochs": 12, "learning_rate": 1e-2}
    model = Regressor(likelihood, network=network, **options).fit(*draw(2_000, likelihood, 0))
    X, y = draw(4_000, likelihood, 1)
    for level in (0.5, 0.9):
        lower, upper = model.interval(X, level).T
        covered = ((lower <= y) & (y <= upper)).mean()
        slack = 4 * np.sqrt(level * (1 - level) / 4_000) + 0.015
        # An interval of counts holds at least its level: whole numbers cannot hold it exactly.
        most = level + slack + (0.12 if likelihood == "poisson" else 0)
        assert level - slack < covered < most


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_quantile_residuals_of_the_right_likelihood_are_standard_normal(likelihood):
    model = Regressor(likelihood, network="linear").fit(*draw(2_000, likelihood, 0))
    residuals = model.residuals(*draw(2_000, likelihood, 1))
    # Kolmogorov's distance at 1e-6, and 0.01 for estimated parameters
    assert stats.kstest(residuals, "norm").statistic < 2.7 / np.sqrt(2_000) + 0.01


def test_the_log_score_is_the_mean_log_density(mixed):
    frame, number, label, count = mixed
    weight = np.random.default_rng(0).uniform(0.5, 2, size=80)
    for model, y in (
        (Regressor(**TINY), number),
        (Regressor("poisson", **TINY), count.astype(float)),
        (Regressor("laplace", network="linear"), number),
    ):
        model.fit(frame, y)
        density = model.predict_dist(frame).log_prob(torch.from_numpy(y)).numpy()
        assert model.log_score(frame, y) == pytest.approx(density.mean(), rel=1e-12)
        weighted = model.log_score(frame, y, sample_weight=weight)
        assert weighted == pytest.approx(np.average(density, weights=weight), rel=1e-12)
    model = Classifier(**TINY).fit(frame, label)
    p = model.predict_proba(frame)[np.arange(80), (label == "yes").astype(int)]
    assert model.log_score(frame, label) == pytest.approx(np.log(p).mean(), rel=1e-12)


def test_the_normal_distribution_is_scipys(numbers):
    X, y = numbers
    model = Regressor(**TINY).fit(X, y)
    found = model.predict_dist(X)
    likelihood = stats.norm(model.predict(X), np.sqrt(found.variance.numpy()))
    assert_allclose(found.log_prob(torch.from_numpy(y)), likelihood.logpdf(y), rtol=1e-10)
    assert_allclose(model.interval(X, 0.8), np.stack(likelihood.interval(0.8), 1), rtol=1e-8)
    assert not found.variance.requires_grad


def test_residual_kinds_are_their_formulas(mixed):
    frame, number, _, count = mixed
    model = Regressor("poisson", **TINY).fit(frame, count)
    mean = model.predict(frame)
    assert_allclose(model.residuals(frame, count, "response"), count - mean, rtol=1e-10)
    pearson = (count - mean) / np.sqrt(mean)
    assert_allclose(model.residuals(frame, count, "pearson"), pearson, rtol=1e-10)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratio = np.where(count > 0, count * np.log(count / mean), 0)
    deviance = np.sign(count - mean) * np.sqrt(2 * (log_ratio - (count - mean)))
    assert_allclose(model.residuals(frame, count, "deviance"), deviance, rtol=1e-8, atol=1e-8)
    normal = Regressor(**TINY).fit(frame, number)
    z = (number - normal.predict(frame)) / np.sqrt(normal.predict_dist(frame).variance.numpy())
    assert_allclose(normal.residuals(frame, number, "quantile"), z, rtol=1e-6)


def test_quantile_residuals_of_counts_are_randomised_by_a_seed(mixed):
    frame, _, _, count = mixed
    model = Regressor("poisson", **TINY).fit(frame, count)
    same = [model.residuals(frame, count, random_state=s) for s in (0, 0, 1)]
    assert_array_equal(same[0], same[1])
    assert not np.array_equal(same[0], same[2])
    with pytest.raises(ValueError, match="deviance"):
        model.residuals(frame, count, "devianc")


def test_draws_have_the_moments_of_the_distribution(numbers):
    X, y = numbers
    model = Regressor(**TINY).fit(X, y)
    draws = model.sample(X, 4_000)
    assert draws.shape == (4_000, 60)
    likelihood = model.predict_dist(X)
    sd = np.sqrt(likelihood.variance.numpy())
    assert np.abs((draws.mean(0) - likelihood.mean.numpy()) / (sd / np.sqrt(4_000))).max() < 5
    assert_array_equal(draws, model.sample(X, 4_000))
    assert not np.array_equal(draws, model.sample(X, 4_000, random_state=1))


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.1, float("nan")])
def test_a_level_is_a_probability(numbers, level):
    model = Regressor(**TINY).fit(*numbers)
    with pytest.raises(UsageError, match=r"level must be in \(0, 1\)"):
        model.interval(numbers[0], level)


def test_one_row_alone_is_the_row_among_others(mixed):
    frame, number, _, _ = mixed
    model = Regressor(**TINY).fit(frame, number)
    alone = np.concatenate([model.predict(frame.iloc[[k]]) for k in range(5)])
    assert_allclose(alone, model.predict(frame)[:5], rtol=1e-13)


def test_no_rows_in_no_rows_out(mixed, numbers):
    frame, number, label, _ = mixed
    model = Regressor(**TINY).fit(frame, number)
    empty = frame.iloc[:0]
    assert model.predict(empty).shape == (0,) and model.interval(empty).shape == (0, 2)
    assert model.sample(empty, 3).shape == (3, 0)
    classes = Classifier(**TINY).fit(frame, label)
    assert classes.predict_proba(empty).shape == (0, 2) and classes.predict(empty).shape == (0,)
    assert Regressor(**TINY).fit(*numbers).predict(np.empty((0, 3))).shape == (0,)


def test_a_table_that_lacks_or_adds_columns_is_reported(mixed):
    frame, number, _, _ = mixed
    model = Regressor(**TINY).fit(frame, number)
    with pytest.raises(ValueError, match="town"):
        model.predict(frame.drop(columns="town"))
    with pytest.raises(ValueError, match="extra"):
        model.predict(frame.assign(extra=1))
    with pytest.raises(ValueError, match="Town"):
        model.predict(frame.rename(columns={"town": "Town"}))


def test_a_level_never_seen_is_reported_and_predicted(mixed):
    frame, number, _, _ = mixed
    model = Regressor(**TINY).fit(frame, number)
    new = frame.assign(town=["Suhl", *frame["town"][1:]])
    with pytest.warns(Warning, match=r"'town': 1 rows have a level never seen.*'Suhl'"):
        found = model.predict(new)
    assert np.isfinite(found).all()
    assert_array_equal(found[1:], model.predict(frame)[1:])


def test_a_number_that_became_text_is_named(mixed):
    frame, number, _, _ = mixed
    model = Regressor(**TINY).fit(frame, number)
    with pytest.raises(ValueError, match=r"'a'"):
        model.predict(frame.assign(a=["x"] * 80))


def test_evaluate_needs_outcomes_of_the_same_length(numbers):
    X, y = numbers
    model = Regressor(**TINY).fit(X, y)
    with pytest.raises(ValueError, match="59"):
        model.evaluate(X, y[:59])
    with pytest.raises(ValueError, match=r"59|weight"):
        model.evaluate(X, y, sample_weight=np.ones(59))
    with pytest.raises(UsageError, match="needs both"):
        model.evaluate(X)


def test_a_frame_of_predictions_keeps_the_index(mixed):
    frame, number, label, _ = mixed
    named = frame.set_axis([f"row {k}" for k in range(80)])
    found = Regressor(**TINY).fit(frame, number).predict_frame(named, interval=0.9)
    assert found.columns.tolist() == ["prediction", "lower", "upper"]
    assert found.index.tolist() == named.index.tolist()
    assert (found["lower"] < found["prediction"]).all()
    classes = Classifier(**TINY).fit(frame, label).predict_frame(named)
    assert classes.columns.tolist() == ["prediction", "p_no", "p_yes"]
    both = pd.DataFrame({"u": number, "v": -number})
    several = Regressor(**TINY).fit(frame, both).predict_frame(frame, interval=0.5)
    assert several.columns.tolist() == [
        "prediction_u", "lower_u", "upper_u", "prediction_v", "lower_v", "upper_v",
    ]  # fmt: skip


def test_metrics_follow_the_outcomes(mixed):
    frame, number, label, _ = mixed
    model = Regressor(**TINY).fit(frame, number)
    found = model.evaluate(frame, number)
    error = number - model.predict(frame)
    assert found["rmse"] == pytest.approx(np.sqrt((error**2).mean()), rel=1e-12)
    assert found["mae"] == pytest.approx(np.abs(error).mean(), rel=1e-12)
    assert found["r2"] == pytest.approx(model.score(frame, number), rel=1e-12)
    classes = Classifier(**TINY).fit(frame, label)
    accuracy = classes.evaluate(frame, label)["accuracy"]
    assert accuracy == pytest.approx(classes.score(frame, label), rel=1e-12)


def test_an_offset_that_was_learned_with_is_asked_for(numbers, tmp_path):
    X, y = numbers
    counts, exposure = np.exp(y).round(), np.full(len(y), 0.5)
    model = Regressor("poisson", network="linear").fit(X, counts, offset=exposure)
    again = load(model.save(tmp_path / "model"))
    for fitted in (model, again):
        assert_allclose(
            fitted.predict(X, offset=exposure + 1), np.e * fitted.predict(X, offset=exposure)
        )
        for answer in (fitted.predict, fitted.interval, fitted.predict_dist):
            with pytest.raises(UsageError, match="pass offset="):
                answer(X)


@pytest.mark.parametrize("options", [{"random_state": "abc"}, {"network_options": 3}])
def test_an_option_of_the_wrong_kind_is_named(numbers, options):
    with pytest.raises(UsageError, match=next(iter(options))):
        Regressor(**{**TINY, **options}).fit(*numbers)
