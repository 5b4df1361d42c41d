"""Survival models through the estimator: published fits, closed forms, direct optimisation."""

import functools
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, optimize, stats
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from tests.estimators.conftest import TINY

from ansatz import Regressor, SurvivalRegressor, load
from ansatz.errors import DataError, UsageError

SURVIVAL = Path(os.environ.get("ANSATZ_DATA", "nowhere")) / "survival"
needs_data = pytest.mark.skipif(not SURVIVAL.exists(), reason="ANSATZ_DATA is not set")
LIKELIHOODS = ["exponential", "weibull", "log_normal", "gamma", "cox", "discrete_hazard"]
every_likelihood = pytest.mark.parametrize("likelihood", LIKELIHOODS)


def linear(likelihood="weibull", **options):
    if likelihood == "discrete_hazard":
        options.setdefault("likelihood_options", {"intervals": 3})
    return SurvivalRegressor(likelihood, network="linear", **options)


def patients(rows=80, seed=0, ties=False):
    """X (rows, 2), times of which a third is censored, and events."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 2))
    life = np.exp(0.6 * X[:, 0] - 0.3 * X[:, 1]) * rng.weibull(1.5, size=rows) + 0.05
    end = rng.exponential(2.5, size=rows) + 0.05
    time = np.minimum(life, end)
    return X, np.ceil(6 * time) if ties else time, (life <= end).astype(float)


@functools.cache
def model_of(likelihood):
    """One model of the patients for all who only ask it."""
    X, time, event = patients()
    return linear(likelihood).fit(X, time, event=event)


def coefficients(model):
    return model.linear_.coefficients.numpy()


# Published fits and closed forms.


def test_the_exponential_constant_is_events_over_time_at_risk():
    _, time, event = patients()
    model = linear("exponential").fit(None, time, event=event)
    rate = np.exp(-coefficients(model)[0, 0])
    assert_allclose(rate, event.sum() / time.sum(), rtol=1e-9)
    assert_allclose(model.predict(None), np.log(2) / rate, rtol=1e-9)
    late = linear("exponential").fit(None, time, event=event, entry=time / 2)
    assert_allclose(np.exp(-coefficients(late)[0, 0]), 2 * rate, rtol=1e-9)


@needs_data
def test_cox_on_rossi_is_the_published_fit():
    rossi = pd.read_csv(SURVIVAL / "rossi.csv")
    X = rossi.drop(columns=["week", "arrest"])
    model = linear("cox").fit(X, rossi["week"], event=rossi["arrest"])
    found = dict(zip(model.linear_.names, coefficients(model)[:, 0], strict=True))
    assert model.linear_.log_likelihood == pytest.approx(-658.7477, abs=5e-5)
    for name, value in {"fin": -0.3794, "age": -0.0574, "prio": 0.0915}.items():
        assert found[name] == pytest.approx(value, abs=5e-5)
    y = np.stack([rossi["week"], rossi["arrest"]], 1)
    assert model.score(X, y) == pytest.approx(0.6403, abs=5e-5)


@needs_data
@pytest.mark.parametrize(
    "name, concordance", [("metabric", 0.6324), ("gbsg_deepsurv", 0.6563), ("whas", 0.8160)]
)
def test_linear_cox_models_have_the_known_concordance_on_published_splits(name, concordance):
    with np.load(SURVIVAL / f"{name}.npz") as data:
        train, test = ([data[f"{part}_{k}"] for k in "xte"] for part in ("train", "test"))
    model = linear("cox").fit(train[0], train[1], event=train[2])
    found = model.evaluate(test[0], np.stack(test[1:], 1))
    assert found["c_index"] == pytest.approx(concordance, abs=5e-5)
    assert 0 < found["integrated_brier"] < 0.25  # that of a curve of 1/2


@needs_data
def test_left_truncated_heart_patients_are_fitted_as_by_statsmodels():
    heart = pd.read_csv(SURVIVAL / "stanford_heart.csv")
    X = heart[["age", "year", "surgery", "transplant"]].astype(float)
    rows = {"event": heart["event"], "entry": heart["start"]}
    model = linear("cox").fit(X, heart["stop"], **rows)
    reference = sm.PHReg(
        heart["stop"].to_numpy(),
        X.to_numpy(),
        status=heart["event"].to_numpy(),
        entry=heart["start"].to_numpy() + 1e-6,  # it takes a row to be at risk at its entry
        ties="efron",
    ).fit()
    assert model.linear_.log_likelihood == pytest.approx(reference.llf, rel=1e-8)
    assert_allclose(coefficients(model)[1:, 0], reference.params, atol=1e-5)


@needs_data
def test_a_left_truncated_weibull_fit_is_scipys_optimum():
    heart = pd.read_csv(SURVIVAL / "stanford_heart.csv")
    X = heart[["age", "transplant"]].astype(float)
    start, stop, event = (heart[k].to_numpy(dtype=float) for k in ("start", "stop", "event"))
    model = linear().fit(X, stop, event=event, entry=start)

    def loss(theta):
        eta, sigma = theta[0] + X.to_numpy() @ theta[1:3], np.exp(theta[3])
        hazard = lambda t: (t / np.exp(eta)) ** (1 / sigma)  # noqa: E731
        log_rate = (np.log(stop) - eta) / sigma - np.log(sigma) - np.log(stop)
        return (hazard(stop) - hazard(start)).sum() - (event * log_rate).sum()

    best = optimize.minimize(loss, [5.0, 0.0, 0.0, 0.5], method="BFGS", options={"gtol": 1e-7})
    assert model.linear_.log_likelihood == pytest.approx(-best.fun, abs=1e-5)
    assert_allclose(coefficients(model)[:, 0], best.x[:3], atol=1e-3)


@needs_data
@pytest.mark.parametrize("likelihood", ["weibull", "log_normal"])
def test_interval_censored_diabetes_is_scipys_optimum(likelihood):
    table = pd.read_csv(SURVIVAL / "interval_diabetes.csv")
    X = (table[["gender"]] == "male").astype(float)
    lower, upper = (table[k].to_numpy(dtype=float) for k in ("left", "right"))
    upper = np.where(np.isnan(upper), np.inf, upper)
    model = linear(likelihood).fit(X, lower, upper=upper)
    exact = lower == upper

    def loss(theta):
        eta, sigma = theta[0] + theta[1] * X["gender"].to_numpy(), np.exp(theta[2])
        if likelihood == "weibull":
            frozen = stats.weibull_min(1 / sigma, scale=np.exp(eta))
        else:
            frozen = stats.lognorm(sigma, scale=np.exp(eta))
        with np.errstate(divide="ignore"):
            return -np.where(
                exact, frozen.logpdf(lower), np.log(frozen.cdf(upper) - frozen.cdf(lower))
            ).sum()

    best = optimize.minimize(loss, [3.0, 0.0, -1.0], method="Nelder-Mead", options={"xatol": 1e-7})
    assert model.linear_.log_likelihood == pytest.approx(-best.fun, abs=1e-4)
    assert_allclose(coefficients(model)[:, 0], best.x[:2], atol=1e-3)
    metrics = model.evaluate(X, pd.DataFrame({"lower": lower, "upper": upper}))
    # Intervals have no order; the predictive distribution is averaged over the estimates' error.
    assert metrics == {"nll": pytest.approx(best.fun / len(X), rel=2e-3)}
    assert np.isnan(model.score(X, pd.DataFrame({"lower": lower, "upper": upper})))


# What must not change a fit.


def test_censoring_that_hides_nothing_is_the_uncensored_fit():
    X, time, _ = patients()
    plain = Regressor("weibull", network="linear", likelihood_options={"dispersion": "constant"})
    expected = coefficients(plain.fit(X, time))
    assert_allclose(coefficients(linear().fit(X, time)), expected, rtol=1e-6)
    assert_allclose(coefficients(linear().fit(X, time, event=np.ones(80))), expected, rtol=1e-6)
    # One who was never seen again after time 0, and one who left a tiny interval around y.
    more, ends = np.append(time, 1e-9), np.append(np.ones(80), 0)
    longer = linear().fit(np.vstack([X, [5.0, 5.0]]), more, event=ends)
    assert_allclose(coefficients(longer), expected, rtol=1e-5)
    narrow = linear().fit(X, time * (1 - 1e-4), upper=time * (1 + 1e-4))
    assert_allclose(coefficients(narrow), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("likelihood", ["cox", "weibull", "exponential", "discrete_hazard"])
@pytest.mark.parametrize("share", [0.1, 0.7])
def test_a_row_cut_into_pieces_at_any_time_says_the_same(likelihood, share):
    X, time, event = patients(60)
    whole = linear(likelihood).fit(X, time, event=event)
    cut = share * time
    pieces = linear(likelihood).fit(
        np.vstack([X, X]),
        np.concatenate([cut, time]),
        event=np.concatenate([np.zeros(60), event]),
        entry=np.concatenate([np.zeros(60), cut]),
    )
    assert pieces.linear_.log_likelihood == pytest.approx(whole.linear_.log_likelihood, rel=1e-8)
    assert_allclose(coefficients(pieces), coefficients(whole), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "likelihood", [likelihood for likelihood in LIKELIHOODS if likelihood != "gamma"]
)
def test_weights_are_repetitions(likelihood):
    X, time, event = patients(60, ties=True)
    times = np.arange(60) % 3
    again = np.repeat(np.arange(60), times)
    weighted = linear(likelihood).fit(X, time, times, event=event)
    repeated = linear(likelihood).fit(X[again], time[again], event=event[again])
    assert_allclose(coefficients(weighted), coefficients(repeated), rtol=1e-5, atol=1e-6)
    at = np.quantile(time, [0.2, 0.6])
    assert_allclose(
        weighted.predict_survival(X, at), repeated.predict_survival(X, at), rtol=1e-5, atol=1e-7
    )
    y = np.stack([time, event], 1)
    mine = weighted.evaluate(X, y, sample_weight=times)
    theirs = repeated.evaluate(X[again], y[again])
    assert mine == pytest.approx(theirs, rel=1e-5)


# Predictions agree with each other.


@every_likelihood
def test_hazards_integrate_to_cumulative_hazards(likelihood):
    X, time, event = patients()
    model, some = model_of(likelihood), X[:4]
    end = np.quantile(time, 0.7)
    if likelihood == "cox":  # constant between events: a sum over the intervals that they bound
        knots = np.append(0, np.sort(time[event > 0]))
        knots = knots[knots <= end]
        total = model.predict_hazard(some, knots[1:]) @ np.diff(knots)
        end = knots[-1]
    else:
        grid = np.linspace(0, end, 4001)[1:]
        middle = grid - grid[0] / 2
        total = model.predict_hazard(some, middle).sum(1) * grid[0]
    assert_allclose(total, model.predict_cumulative_hazard(some, [end])[:, 0], rtol=2e-3)


@every_likelihood
def test_restricted_means_are_areas_under_survival_curves(likelihood):
    X, time, event = patients()
    model, some = model_of(likelihood), X[:3]
    for end in (0.4, 3.0):
        grid = np.linspace(0, end, 5_001)
        curve = model.predict_survival(some, (grid[:-1] + grid[1:]) / 2)
        area = curve.mean(1) * end
        assert_allclose(model.predict_restricted_mean(some, end), area, rtol=2e-4)
    whole = model.predict_restricted_mean(some)
    assert_allclose(whole, model.predict_restricted_mean(some, time[event > 0].max()))


@every_likelihood
def test_curves_medians_and_risks_agree(likelihood):
    X, time, event = patients()
    model = model_of(likelihood)
    curves = model.predict_survival(X)
    assert curves.shape == (80, 100) and model.time_grid()[-1] == time[event > 0].max()
    assert (np.diff(curves, axis=1) <= 0).all() and (curves <= 1).all() and (curves >= 0).all()
    assert_allclose(np.exp(-model.predict_cumulative_hazard(X)), curves)
    assert_allclose(model.predict_incidence(X), 1 - curves)
    median = model.predict(X)
    reached = np.isfinite(median)
    at = [model.predict_survival(X[[k]], [median[k]])[0, 0] for k in np.flatnonzero(reached)[:9]]
    if likelihood == "cox":
        assert (np.array(at) <= 0.5).all()
    elif likelihood == "discrete_hazard":
        assert_allclose(at, 0.5, rtol=1e-6)
    else:  # the median is that at the estimate, the curve is averaged over its error
        assert_allclose(at, 0.5, atol=0.02)
    order = stats.spearmanr(model.predict_risk(X), -model.predict_restricted_mean(X)).statistic
    assert order > 0.99


def test_a_time_before_the_beginning_is_survived():
    X, _, _ = patients()
    for likelihood in LIKELIHOODS:
        assert_array_equal(
            model_of(likelihood).predict_survival(X[:2], [-1.0, 0.0]), np.ones((2, 2))
        )


# Several causes.


def competing(rows=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 1))
    lives = np.stack([rng.exponential(np.exp(-X[:, 0])), rng.exponential(2, rows)], 1)
    end = rng.exponential(1.5, rows)
    time = np.minimum(lives.min(1), end)
    cause = np.where(lives.min(1) <= end, lives.argmin(1) + 1.0, 0)
    return X, np.ceil(8 * time), cause


def aalen_johansen(time, cause, which, at):
    free, total = 1.0, 0.0
    for t in np.unique(time[cause > 0]):
        if t > at:
            break
        risk = (time >= t).sum()
        total += free * ((time == t) & (cause == which)).sum() / risk
        free *= 1 - ((time == t) & (cause > 0)).sum() / risk
    return total


def test_the_constant_model_of_several_causes_is_aalen_johansens():
    _, time, cause = competing()
    options = {"intervals": len(np.unique(time)), "measure": "interval"}
    model = SurvivalRegressor("discrete_hazard", likelihood_options=options)
    model.fit(None, time, event=cause)
    at = [2.0, 5.0, 9.0]
    for which in (1, 2):
        expected = [aalen_johansen(time, cause, which, t) for t in at]
        assert_allclose(model.predict_incidence(None, at, which)[0], expected, rtol=1e-6)


@pytest.mark.parametrize("network", ["linear", "mlp"])
def test_incidences_add_up_to_the_dead(network):
    X, time, cause = competing(90)
    model = SurvivalRegressor("discrete_hazard", network=network, **TINY)
    model.set_params(likelihood_options={"intervals": 4}).fit(X, time, event=cause)
    total = sum(model.predict_incidence(X, cause=k) for k in (1, 2))
    assert_allclose(total, 1 - model.predict_survival(X), rtol=1e-6, atol=1e-9)
    frame = model.predict_frame(X, times=[4])
    names = ["incidence_1", "incidence_2", "survival_4", "incidence_1_4", "incidence_2_4"]
    assert list(frame) == names
    assert_allclose(frame[["survival_4", "incidence_1_4", "incidence_2_4"]].sum(axis=1), 1)


def test_with_several_causes_each_has_its_concordance():
    X, time, cause = competing()
    model = linear("discrete_hazard").fit(X, time, event=cause)
    found = model.evaluate(X, np.stack([time, cause], 1))
    assert set(found) == {"nll", "c_index_1", "c_index_2"}
    assert found["c_index_1"] > 0.65 > 0.55 > abs(found["c_index_2"] - 0.5) + 0.4
    assert model.score(X, np.stack([time, cause], 1)) == found["c_index_1"]
    with pytest.raises(UsageError, match="2 causes predict_median has no meaning"):
        model.predict(X)
    with pytest.raises(UsageError, match="cause must be one of 1 to 2, got 3"):
        model.predict_incidence(X, cause=3)


# As an estimator.


@every_likelihood
def test_networks_learn_predict_and_come_back_from_a_folder(likelihood, tmp_path):
    X, time, event = patients()
    y = np.stack([time, event], 1)
    model = SurvivalRegressor(likelihood, **TINY).fit(X, y)
    assert model.score(X, y) > 0.55
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert_array_equal(again.predict_survival(X), model.predict_survival(X))
    assert_array_equal(again.predict_risk(X), model.predict_risk(X))
    assert_array_equal(again.predict_restricted_mean(X), model.predict_restricted_mean(X))
    assert again.evaluate(X, y) == model.evaluate(X, y)
    assert_array_equal(again.time_grid(), model.time_grid())


@pytest.mark.parametrize("likelihood", ["weibull", "cox"])
def test_outcomes_go_through_scikit_learn_in_every_form(likelihood):
    X, time, event = patients()
    pairs = np.stack([time, event], 1)
    named = np.array(
        list(zip(event.astype(bool), time, strict=True)), dtype=[("cens", "?"), ("time", "<f8")]
    )
    scores = [cross_val_score(linear(likelihood), X, y, cv=3) for y in (pairs, named)]
    assert_allclose(*scores)
    assert (scores[0] > 0.55).all()


def test_it_clones_and_keeps_what_it_was_given():
    model = SurvivalRegressor("cox", likelihood_options={"ties": "breslow"}, widths=(8,))
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(UsageError, match="cox compares rows"):
        model.partial_fit(*patients()[:2])


def test_partial_fit_goes_on():
    X, time, event = patients(200)
    model = SurvivalRegressor("weibull", widths=(8,), batch_size=50)
    for _ in range(3):
        model.partial_fit(X, time, event=event)
    assert model.n_iter_ == 12
    assert np.isfinite(model.evaluate(X, np.stack([time, event], 1))["nll"])


def test_frames_of_predictions_have_a_column_for_each_time():
    X, time, event = patients()
    frame = pd.DataFrame(X, columns=["a", "b"], index=range(100, 180))
    model = linear().fit(frame, time, event=event)
    found = model.predict_frame(frame, interval=0.8, times=[0.5, 1_234_567])
    assert list(found) == [
        *("prediction", "lower", "upper", "risk"),
        *("survival_0.5", "survival_1234567"),
    ]
    assert_array_equal(found.index, frame.index)
    assert_allclose(found["survival_0.5"], model.predict_survival(frame, [0.5])[:, 0])
    assert (found["lower"] < found["prediction"]).all()


def test_sharp_and_heavy_likelihoods_have_exact_restricted_means():
    for likelihood, sigma in (("weibull", 0.01), ("log_normal", 4.0)):
        model = linear(likelihood, likelihood_options={"dispersion": sigma})
        model.fit(None, [1.0, 2.0, 5.0], event=[1, 1, 0])
        distribution_of_time = model.predict_dist(None)
        survival = lambda t, d=distribution_of_time: float(d.log_survival(0 * d.mean + t).exp())  # noqa: E731
        middle = float(distribution_of_time.median)
        points = sorted(p for p in (middle * f for f in (0.01, 0.1, 0.9, 0.97, 1.0, 1.03)) if p < 6)
        area = integrate.quad(survival, 0, 6, points=points, limit=500, epsabs=1e-12)[0]
        assert_allclose(model.predict_restricted_mean(None, 6.0), area, rtol=1e-6)


WRONG = {
    "all censored": (dict(event=np.zeros(80)), "censored"),
    "two causes": (dict(event=np.arange(80) % 3), "2 causes"),
}


@pytest.mark.parametrize("likelihood", ["weibull", "cox"])
@pytest.mark.parametrize("given, words", WRONG.values(), ids=WRONG)
def test_what_cannot_be_fitted_is_said_in_one_line(likelihood, given, words):
    X, time, _ = patients()
    with pytest.raises(DataError, match=words) as caught:
        linear(likelihood).fit(X, time, **given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("likelihood", ["weibull", "cox", "exponential", "discrete_hazard"])
def test_a_negative_time_is_named_censored_or_not(likelihood):
    X, time, event = patients()
    for row in (int(np.flatnonzero(event == k)[0]) for k in (0, 1)):
        with pytest.raises(DataError, match=rf"got -1(\.0)? at y\[{row}\]"):
            linear(likelihood).fit(X, np.where(np.arange(80) == row, -1, time), event=event)


def test_questions_that_have_no_answer_are_refused():
    X, time, event = patients()
    model = linear().fit(X, time, event=event)
    with pytest.raises(UsageError, match="times must be a list of numbers"):
        model.predict_survival(X, [1.0, np.nan])
    with pytest.raises(UsageError, match="horizon must be positive, got -1"):
        model.predict_restricted_mean(X, -1)
    with pytest.raises(ValueError, match="X has 80 rows and y has 79"):
        linear().fit(X, time[:-1], event=event[:-1])
