"""Ensembles through the estimators: every likelihood, weights, groups, time, saving, resuming."""

import numpy as np
import pandas as pd
import pytest
import torch

import ansatz
from ansatz import Classifier, Ranker, Regressor, SurvivalRegressor
from ansatz.cli.main import run
from ansatz.errors import UsageError
from ansatz.fitting.recalibration import find_factor
from ansatz.fitting.recipe import Recipe
from ansatz.inference.left_out import plan_members
from ansatz.likelihoods import NormalMixtureDistribution
from ansatz.structures.vector.rows import TableRows

FEW = {"inference": "ensemble", "members": 3, "epochs": 6, "widths": (8,)}
N = 150


@pytest.fixture(scope="module")
def rows():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(N, 3))
    mu = np.sin(X[:, 0]) + X[:, 1]
    noise = generator.normal(size=N)
    positive = np.exp(0.5 * mu + 0.3 * noise)
    return {
        "X": X,
        "number": mu + noise,
        "two": np.column_stack([mu + noise, mu - noise]),
        "positive": positive,
        "count": generator.poisson(positive * generator.gamma(2, 0.5, N)).astype(float),
        "share": 1 / (1 + np.exp(-mu - noise)),
        "angle": np.angle(np.exp(1j * (mu + 0.3 * noise))),
        "yes": np.where(mu + noise > 0, "yes", "no"),
        "grade": np.digitize(mu + noise, [-1, 1]),
        "event": (generator.random(N) > 0.3).astype(int),
        "order": np.argsort(-(np.column_stack([mu, -mu, 0 * mu]) + noise[:, None]), 1),
    }


@pytest.fixture(scope="module")
def trained(rows):
    """One ensemble for all who only look at it."""
    return Regressor("normal", **{**FEW, "epochs": 60}).fit(rows["X"], rows["number"])


MODELS = {
    "normal": (Regressor, "normal", "number"),
    "two targets": (Regressor, "normal", "two"),
    "multivariate_normal": (Regressor, "multivariate_normal", "two"),
    "student_t": (Regressor, "student_t", "number"),
    "gamma": (Regressor, "gamma", "positive"),
    "negative_binomial": (Regressor, "negative_binomial", "count"),
    "beta": (Regressor, "beta", "share"),
    "von_mises": (Regressor, "von_mises", "angle"),
    "quantiles": (Regressor, "quantiles", "number"),
    "mse": (Regressor, "mse", "number"),
    "bernoulli": (Classifier, "auto", "yes"),
    "categorical": (Classifier, "auto", "grade"),
    "ordinal": (Classifier, "ordinal", "grade"),
    "focal": (Classifier, "focal", "grade"),
    "weibull": (SurvivalRegressor, "weibull", "positive"),
    "cox": (SurvivalRegressor, "cox", "positive"),
    "discrete_hazard": (SurvivalRegressor, "discrete_hazard", "positive"),
    "plackett_luce": (Ranker, "plackett_luce", "order"),
}


def outcome(rows, kind, name):
    y = rows[name]
    return np.column_stack([y, rows["event"]]) if kind is SurvivalRegressor else y


# Always one likelihood of each kind: location, positive, angle, quantiles, classes, survival,
# ranking.
KINDS = {"normal", "gamma", "von_mises", "quantiles", "ordinal", "cox", "plackett_luce"}


@pytest.mark.parametrize(
    "name",
    [name if name in KINDS else pytest.param(name, marks=pytest.mark.slow) for name in MODELS],
)
def test_every_likelihood_is_fitted_served_and_saved(rows, tmp_path, name):
    kind, likelihood, target = MODELS[name]
    y = outcome(rows, kind, target)
    model = kind(likelihood, **FEW).fit(rows["X"], y)
    assert len(model.model_.posterior.networks) == FEW["members"]
    assert float(model.model_.posterior.weights.sum()) == pytest.approx(1)
    again = ansatz.load(model.save(tmp_path / "model"))
    evaluated = model.evaluate(rows["X"][:40], y[:40])
    assert again.evaluate(rows["X"][:40], y[:40]) == evaluated
    assert np.array_equal(again.predict(rows["X"]), model.predict(rows["X"]))
    assert getattr(again, "recalibration_", None) == getattr(model, "recalibration_", None)
    finite = [v for v in evaluated.values() if v is not None]
    assert finite and np.isfinite(finite).all()
    if model.model_.likelihood.has_distribution:
        _check_variances(model, rows["X"][:10])


def _check_variances(model, X):
    """The variance between the members, from their own predictions, and the rest."""
    d = model.predict_dist(X, recalibrated=False)
    parts = model.model_.posterior.components(model._given(X, None, None).rows)
    means = torch.stack([part.distribution._centre for _, part in parts])
    weights = torch.tensor([w for w, _ in parts]).to(means).reshape(-1, *(1,) * (means.ndim - 1))
    naive = (weights * (means - (weights * means).sum(0)) ** 2).sum(0)
    found = d.between_variance
    if model.model_.likelihood_name == "von_mises":
        assert bool(((found >= 0) & (found <= d.variance)).all())
    else:
        torch.testing.assert_close(found, naive)
        assert bool((found > 0).any())
    total = (found + d.within_variance)[found < d._scatter]
    torch.testing.assert_close(total, d._scatter[found < d._scatter])


def test_one_model_does_not_disagree_with_itself(rows):
    model = Regressor("normal", epochs=2, widths=(4,)).fit(rows["X"], rows["number"])
    d = model.predict_dist(rows["X"][:5])
    assert d.between_variance.tolist() == [0] * 5
    torch.testing.assert_close(d.within_variance, d.variance)


def test_the_predictive_is_the_weighted_mixture_of_the_members(rows, trained):
    model = trained
    likelihood = model.predict_dist(rows["X"], recalibrated=False)
    assert isinstance(likelihood, NormalMixtureDistribution)
    parts = model.model_.posterior.components(TableRows(rows["X"]))
    assert len(parts) == FEW["members"] + 1  # the linear model among them
    y = torch.from_numpy(rows["number"])
    expected = sum(weight * part.distribution.log_prob(y).exp() for weight, part in parts)
    torch.testing.assert_close(likelihood.log_prob(y).exp(), expected)
    wide = model.predict_dist(rows["X"])
    torch.testing.assert_close(wide.stddev, model.recalibration_.value * likelihood.stddev)
    torch.testing.assert_close(wide.mean, torch.from_numpy(model.predict(rows["X"])))


def test_recalibration_lowers_the_out_of_fold_loss(trained):
    assert trained.recalibration_.after["nll"] <= trained.recalibration_.before["nll"]


def test_one_seed_gives_one_ensemble(rows):
    one, two, other = (
        Regressor(**FEW, random_state=seed).fit(rows["X"], rows["number"]).predict(rows["X"])
        for seed in (0, 0, 1)
    )
    assert np.array_equal(one, two) and not np.array_equal(one, other)


def test_every_row_is_left_out_once_in_each_repeat_and_groups_stay_together(rows):
    job = Regressor().read(rows["X"], rows["number"])
    group = np.arange(N) // 3
    plan = plan_members(job._replace(group=group), Recipe(members=20, holdout=0), 0)
    for repeat in (plan[:10], plan[10:]):
        left = torch.cat([member.valid for member in repeat])
        assert left.sort().values.tolist() == list(range(N))
    for member in plan:
        assert not set(group[member.train]) & set(group[member.valid])


def test_in_order_of_time_members_stop_by_the_latest_rows(rows):
    job = Regressor().read(rows["X"], rows["number"])._replace(time=np.arange(N))
    plan = plan_members(job, Recipe(members=5, holdout=0), 0)
    assert all(torch.equal(member.valid, plan[0].valid) for member in plan)
    assert int(plan[0].train.max()) < int(plan[0].valid.min())


def test_a_network_that_is_no_plain_mlp_is_trained_in_turn(rows, tmp_path):
    options = {**FEW, "epochs": 2, "network_options": {"connection": "residual"}}
    model = Regressor("normal", **options).fit(rows["X"], rows["number"])
    again = ansatz.load(model.save(tmp_path / "model"))
    assert np.array_equal(again.predict(rows["X"]), model.predict(rows["X"]))


def test_an_ensemble_is_surer_than_one_member_about_what_it_does_not_know(rows, trained):
    far = np.full((1, 3), 4.0)
    likelihood = trained.predict_dist(np.concatenate([rows["X"], far]), recalibrated=False)
    means = likelihood.means
    spread = (likelihood.weights * (means - likelihood.mean.unsqueeze(-1)) ** 2).sum(-1)
    assert float(spread[-1]) > float(spread[:-1].median())


def test_options_that_make_no_sense_are_refused(rows):
    with pytest.raises(UsageError, match="unknown inference 'mcmc'"):
        Regressor(inference="mcmc").fit(rows["X"], rows["number"])
    with pytest.raises(UsageError, match="no warm_start"):
        Regressor(inference="ensemble", warm_start=True).fit(rows["X"], rows["number"])
    with pytest.raises(UsageError, match="one network"):
        Regressor(inference="ensemble").partial_fit(rows["X"], rows["number"])
    with pytest.raises(UsageError, match="members"):
        Regressor(inference="ensemble", members=1).fit(rows["X"], rows["number"])


# Conformal intervals.


def test_conformal_intervals_need_rows_held_out(rows, tmp_path):
    plain = Regressor(network="linear").fit(rows["X"], rows["number"])
    with pytest.raises(UsageError, match=r"calibration=0.2.*calibrate\(X, y\)"):
        plain.interval(rows["X"], method="conformal")
    model = Regressor(network="linear", calibration=0.3).fit(rows["X"], rows["number"])
    assert 30 < len(model.conformal_scores_) < 60
    again = ansatz.load(model.save(tmp_path / "model"))
    ends = again.interval(rows["X"], 0.8, method="conformal")
    assert np.array_equal(ends, model.interval(rows["X"], 0.8, method="conformal"))
    assert ends.shape == (N, 2)
    none = Regressor(network="linear").fit(rows["X"], rows["number"])
    with pytest.raises(UsageError, match="method must be"):
        none.interval(rows["X"], method="jackknife")


def test_conformal_intervals_cover_where_the_likelihood_does_not():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(3000, 1))
    y = X[:, 0] + generator.standard_t(2, size=3000)
    model = Regressor("laplace", network="linear").fit(X[:500], y[:500])
    model.calibrate(X[500:1500], y[500:1500])
    for level in (0.5, 0.9, 0.99):
        low, high = model.interval(X[1500:], level, method="conformal").T
        inside = np.mean((y[1500:] >= low) & (y[1500:] <= high))
        assert abs(inside - level) < 4 * np.sqrt(level * (1 - level) / 1000)


def test_an_ensemble_has_conformal_intervals_from_its_folds(rows, trained):
    assert len(trained.conformal_scores_) == N
    low, high = trained.interval(rows["X"], 0.8, method="conformal").T
    assert 0.7 < np.mean((rows["number"] >= low) & (rows["number"] <= high)) < 0.97


def test_losses_without_a_spread_have_conformal_intervals(rows):
    model = Regressor("mse", network="linear", calibration=0.5).fit(rows["X"], rows["number"])
    low, high = model.interval(rows["X"], 0.8, method="conformal").T
    assert np.ptp(high - low) < 1e-9 and np.all(high > low)


# Through fit and the command.


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments):
        capsys.readouterr()
        status = run(list(arguments))
        return (status, *capsys.readouterr())

    return invoke


def frame(rows):
    table = pd.DataFrame(rows["X"], columns=list("abc"))
    return table.assign(y=rows["number"])


def test_fit_saves_an_ensemble_with_its_evidence(rows, tmp_path):
    table = frame(rows)
    options = {"members": 3, "epochs": 20, "widths": [8]}
    call = {"target": "y", "likelihood": "normal", "inference": "ensemble", "options": options}
    whole = ansatz.fit(table, out=tmp_path / "whole", **call)
    short = ansatz.fit(table, time_limit=1e-9, **call)  # stops at once, with what it has
    assert short.model.history_.stop_reason == "time limit"
    assert whole.inference == "ensemble" and whole.metrics["nll"] < whole.constant["nll"]
    again = ansatz.load(tmp_path / "whole")
    assert again.evaluate(table) == whole.model.evaluate(table)


def test_the_command_fits_and_predicts_with_an_ensemble(rows, tmp_path, command):
    frame(rows).to_csv(tmp_path / "rows.csv", index=False)
    status, out, err = command(
        *"fit rows.csv --target y --likelihood normal --inference ensemble".split(),
        *"--set members=3 --set epochs=2 --out model --json".split(),
    )
    assert status == 0, err
    assert '"inference": "ensemble"' in out
    status, out, err = command(*"predict model rows.csv --interval 0.9 --method conformal".split())
    assert status == 0 and "lower,upper" in out, err


def test_a_small_ensemble_that_is_mostly_linear_holds_what_its_intervals_claim():
    """Its factor is near the out-of-fold one: little of the mixture is averaged."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(2_200, 10))
    y = X @ generator.normal(size=10) / 3 + generator.normal(size=len(X))
    model = Regressor("normal", inference="ensemble").fit(X[:200], y[:200])
    out = model.model_.out_of_fold
    job = model.read(X[:200], y[:200])
    assert out.weights[-1] > 0.5

    def loss(factor):
        parts = out._replace(factor=factor).served()
        return torch.cat([law.loss(raw, job.y[rows]) for rows, law, raw in parts])

    needed = find_factor(loss, torch.ones(200, dtype=torch.float64))
    assert model.recalibration_.value == pytest.approx(needed, rel=0.06)
    lower, upper = model.interval(X[200:], 0.9).T
    assert 0.87 < ((lower <= y[200:]) & (y[200:] <= upper)).mean() < 0.93
