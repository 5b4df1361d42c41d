"""Models whose coefficients vary between groups, from the fit to predictions of new groups."""

import json

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import torch
from torch.testing import assert_close

import ansatz
from ansatz.errors import ConvergenceError, Interrupted, UsageError
from ansatz.estimators import Regressor
from ansatz.inference import runs
from ansatz.inference.chain_folder import go_through

FLAT = {"coefficients": "flat", "intercept": "flat", "sd": "flat", "sigma": "flat"}


@pytest.fixture(scope="module")
def table():
    """18 subjects on 10 days, with intercepts and slopes of their own."""
    draw = np.random.default_rng(1)
    subject, days = np.repeat(np.arange(18), 10), np.tile(np.arange(10.0), 18)
    u = draw.multivariate_normal([0, 0], [[600, 15], [15, 36]], size=18)
    y = 250 + 10 * days + u[subject, 0] + u[subject, 1] * days + draw.normal(0, 25, 180)
    return pd.DataFrame({"days": days, "subject": [f"s{k}" for k in subject], "y": y})


def fit(table, inference, random="days|subject", **options):
    model = Regressor(
        network="linear", inference=inference, random=[random], inference_options=options
    )
    return model.fit(table[["days", "subject"]], table["y"])


@pytest.fixture(scope="module")
def drawn(table):
    return fit(table, "nuts", warmup=250, draws=250)


@pytest.mark.filterwarnings("ignore")  # statsmodels at its optimum
def test_the_mode_under_flat_priors_is_the_maximum_likelihood_of_statsmodels(table):
    model = Regressor(
        network="linear", inference="laplace", random=["days|subject"], priors=FLAT,
        inference_options={"samples": 2000},
    ).fit(table[["days", "subject"]], table["y"])  # fmt: skip
    own = model.model_.posterior.state["mode"]
    kind = sm.MixedLM.from_formula("y ~ days", table, groups="subject", re_formula="~days")
    other = kind.fit(reml=False)
    sd = np.sqrt(np.diagonal(other.cov_re))
    cor = other.cov_re.iloc[0, 1] / sd.prod()
    expected = [*other.fe_params, np.sqrt(other.scale), *sd, cor]
    np.testing.assert_allclose([*own.values()], expected, rtol=1e-4)
    assert model.model_.posterior.state["log_density"] == pytest.approx(other.llf, abs=1e-5)
    estimates = model.summary().table["Estimate"].to_numpy()
    np.testing.assert_allclose(estimates, [*own.values()])


def test_draws_agree_with_the_normal_approximation(table, drawn):
    near = fit(table, "laplace", samples=4000).posterior_frame()
    far = drawn.posterior_frame()
    for name in ("(Intercept)", "days", "sigma"):
        sd = far[name].std()
        assert abs(near[name].mean() - far[name].mean()) < 0.25 * sd
        assert near[name].std() == pytest.approx(sd, rel=0.25)


def test_a_new_group_is_wider_and_the_same_at_every_call(table, drawn):
    rows = pd.DataFrame({"days": [9.0, 9.0, 0.0], "subject": ["s3", "new", "new"]})
    dist = drawn.predict_dist(rows)
    assert dist.variance[1] > 1.2 * dist.variance[0]
    again = drawn.predict_dist(rows.iloc[[1]])
    assert_close(again.mean, dist.mean[1:2])
    other = drawn.predict_dist(rows.assign(subject=["s3", "other", "new"]))
    assert other.mean[1] != dist.mean[1] and other.mean[2] == dist.mean[2]
    missing = drawn.predict_dist(rows.assign(subject=[None, None, "new"]))
    assert torch.isfinite(missing.mean).all()


def test_known_groups_shrink_towards_the_population(table, drawn):
    """Each group's mean lies between its own and that of all, and near its own."""
    own = table.groupby("subject")["y"].mean()
    predicted = pd.Series(drawn.predict(table[["days", "subject"]])).groupby(table.subject).mean()
    centre = table["y"].mean()
    share = float(((predicted - centre) @ (own - centre)) / ((own - centre) @ (own - centre)))
    assert 0.8 < share < 1.0


def test_hypotheses_and_frames_have_names(drawn):
    frame = drawn.posterior_frame()
    assert frame.index.names == ["chain", "draw"] and len(frame) == 1000
    found = drawn.hypothesis("days > 5 and sd(subject: Intercept) > 0")
    assert found.probability == (frame["days"] > 5).mean() and found.mcse < 0.02
    assert drawn.hypothesis("days - 2 * sigma < 0").probability == 1.0
    with pytest.raises(UsageError, match="cannot read"):
        drawn.hypothesis("__import__('os')")
    exported = drawn.to_arviz()
    assert exported.posterior["days"].shape == (4, 250)


def test_the_fit_says_which_question_its_test_rows_answer(table):
    given = {"target": "y", "likelihood": "normal", "network": "linear", "inference": "laplace"}
    given |= {"random": ["1|subject"], "options": {"samples": 50}}
    by_rows = ansatz.fit(table, **given)
    assert any("new rows of known groups" in note for note in by_rows.notes)
    by_groups = ansatz.fit(table, group="subject", **given)
    assert any("0 of" in n and "about new groups" in n for n in by_groups.notes)


@pytest.mark.parametrize("inference", ["nuts", "hmc"])
def test_more_draws_are_those_of_one_longer_run(table, inference):
    longer = fit(table, inference, "1|subject", warmup=50, draws=40)
    shorter = fit(table, inference, "1|subject", warmup=50, draws=20).allow_unconverged()
    X, y = table[["days", "subject"]], table["y"]
    shorter.extend(40, X, y)
    assert torch.equal(*(m.model_.posterior.numbers for m in (longer, shorter)))
    with pytest.raises(UsageError, match="they have 40 draws each"):
        shorter.extend(40, X, y)
    with pytest.raises(UsageError, match="other rows"):
        shorter.extend(50, X, y + 1)


def test_a_killed_run_ends_in_the_same_bits_and_goes_on(table, tmp_path, monkeypatch):
    given = {"target": "y", "likelihood": "normal", "network": "linear", "inference": "nuts"}
    given |= {"random": ["1|subject"], "progress": "off"}

    def run(draws, place, **more):
        options = {"warmup": 60, "draws": draws}
        return ansatz.fit(table, **given, options=options, out=tmp_path / place, **more)

    whole = run(120, "whole").model.model_.posterior.numbers

    class Killed(Interrupted):
        pass

    def cut(found, options, words):
        def look(now):
            if now.done >= 100:
                folder = runs_folder(found, options)
                raise Killed(15, now.done, folder)

        found.go(look)

    def runs_folder(found, options):
        from ansatz.inference.chain_folder import _save
        from ansatz.storage.run_folder import RunFolder

        given = {name: options[name] for name in ("fingerprint", "resume", "force")}
        folder = RunFolder(options["checkpoint"], keep=1, **given)
        return _save(folder, found)

    with monkeypatch.context() as patch:
        patch.setattr("ansatz.inference.glm.sampled.go_through", cut)
        with pytest.raises(Killed):
            run(80, "cut")
    assert (tmp_path / "cut.training").exists() and go_through and runs
    first = run(80, "cut", resume=True).model.model_.posterior.numbers
    assert torch.equal(first, whole[:, :80])
    again = run(120, "cut", resume=True)  # a finished run goes on
    assert torch.equal(again.model.model_.posterior.numbers, whole)
    assert not any("nothing to do" in note for note in again.notes)


def test_failed_chains_are_saved_and_refuse_to_answer(table, tmp_path):
    given = {"target": "y", "likelihood": "normal", "network": "linear", "inference": "nuts"}
    out = tmp_path / "model"
    done = ansatz.fit(
        table, **given, random=["1|subject"], options={"draws": 6, "warmup": 5}, out=out
    )
    assert done.fitted.verdict["status"] == "failed"
    model, X = ansatz.load(out), table[["days", "subject"]]
    for ask in (model.predict, model.interval, model.predict_dist, lambda X: model.summary()):
        with pytest.raises(ConvergenceError, match="R-hat"):
            ask(X)
    allowed = ansatz.load(out, allow_unconverged=True)
    assert np.isfinite(allowed.predict(X)).all() and "failed" in str(allowed.summary())
    json.dumps(model.describe())


@pytest.mark.parametrize("likelihood", ["bernoulli", "poisson", "student_t"])
def test_groups_are_for_any_likelihood(likelihood):
    draw = np.random.default_rng(2)
    group = draw.integers(0, 6, 90)
    eta = draw.normal(size=6)[group]
    y = {
        "bernoulli": (draw.uniform(size=90) < 1 / (1 + np.exp(-eta))).astype(int),
        "poisson": draw.poisson(np.exp(eta)),
        "student_t": eta + draw.standard_t(4, size=90),
    }[likelihood]
    kind = ansatz.Classifier if likelihood == "bernoulli" else Regressor
    X = pd.DataFrame({"x": draw.normal(size=90), "g": [f"g{k}" for k in group]})
    options = {"warmup": 30, "draws": 20, "chains": 2}
    model = kind(
        likelihood, network="linear", inference="nuts", random=["1|g"], inference_options=options
    )
    model.fit(X, y).allow_unconverged()
    rows = model.model_.posterior
    assert rows.effects[0].shape[1:] == (6, 1) and rows.parameters > 6
    shown = rows.effects[0].mean(0)[:, 0].numpy()
    assert np.corrcoef(shown, [eta[group == k][0] for k in range(6)])[0, 1] > 0.6


def test_a_network_posterior_is_not_silently_a_linear_model(table):
    with pytest.raises(UsageError, match="inference swag is for networks"):
        Regressor(network="linear", inference="swag").fit(table[["days"]], table["y"])
