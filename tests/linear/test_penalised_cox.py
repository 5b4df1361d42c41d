"""Penalised Cox regression: optimality conditions, statsmodels, and limits of the penalty."""

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose
from statsmodels.duration.hazard_regression import PHReg

import ansatz
from ansatz import SurvivalRegressor
from ansatz.errors import UsageError
from ansatz.likelihoods import Cox, survival_outcome
from ansatz.linear import fit_linear, fit_penalised
from ansatz.linear.proximal_newton import MIXINGS


def study(rows=80, columns=6, seed=0):
    """Times with ties and late entries; the first two columns have effects."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns))
    time = np.ceil(4 * rng.exponential(size=rows) * np.exp(-x[:, 0] + 0.7 * x[:, 1]))
    event = (rng.uniform(size=rows) < 0.7).astype(float)
    entry = np.where(rng.uniform(size=rows) < 0.3, time / 2, -np.inf)
    return (x - x.mean(0)) / x.std(0), time, event, entry


def minus_log_partial(beta, x, time, event, entry, ties):
    """Term by term, as Breslow and Efron wrote it."""
    total, eta = 0.0, x @ beta
    for at in np.unique(time[event > 0]):
        risk = (entry < at) & (time >= at)
        dead = (time == at) & (event > 0)
        deaths = int(dead.sum())
        for k in range(deaths):
            share = k / deaths if ties == "efron" else 0.0
            sums = eta[risk].exp().sum() - share * eta[dead].exp().sum()
            total = total + sums.log()
        total = total - eta[dead].sum()
    return total / len(time)


def gradient_at(beta, *study_and_ties):
    x, *others = study_and_ties
    point = beta.clone().requires_grad_()
    loss = minus_log_partial(point, torch.from_numpy(x), *others)
    return torch.autograd.grad(loss, point)[0]


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("penalty", MIXINGS)
def test_the_optimality_conditions_hold(penalty, ties):
    x, time, event, entry = study()
    y = survival_outcome(*map(torch.from_numpy, (time, event, entry)))
    strength, mixing = 0.07, MIXINGS[penalty]
    fit = fit_penalised(Cox(ties=ties), torch.from_numpy(x), y, penalty=penalty, strength=strength)
    beta = fit.coefficients[1:, 0]
    slope = gradient_at(beta, x, time, event, entry, ties) + strength * (1 - mixing) * beta
    kept = beta != 0
    assert_allclose(slope[kept], -strength * mixing * beta[kept].sign(), atol=1e-9)
    assert (slope[~kept].abs() <= strength * mixing + 1e-9).all()
    assert kept.all() == (penalty != "l1")


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_the_path_begins_at_the_largest_gradient_and_ends_at_maximum_likelihood(ties):
    x, time, event, entry = study()
    y = survival_outcome(*map(torch.from_numpy, (time, event, entry)))
    fold = np.arange(80) % 2
    folds = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(2)]
    design = torch.from_numpy(x)
    path = fit_penalised(Cox(ties=ties), design, y, penalty="l1", folds=folds).path
    most = gradient_at(torch.zeros(6), x, time, event, entry, ties).abs().max()
    assert_allclose(path.strengths[0], most, rtol=1e-10)
    assert (path.coefficients[0, 1:] == 0).all() and (path.coefficients[1, 1:] != 0).any()
    plain = fit_linear(Cox(ties=ties), design, y)
    for penalty in MIXINGS:
        weak = fit_penalised(Cox(ties=ties), design, y, penalty=penalty, strength=1e-9)
        assert_allclose(weak.coefficients, plain.coefficients, atol=1e-6)
        assert_allclose(weak.log_likelihood, plain.log_likelihood, rtol=1e-9)
        baselines = weak.likelihood.baseline_hazard, plain.likelihood.baseline_hazard
        assert_allclose(*baselines, rtol=1e-5)


@pytest.mark.parametrize("mixing, penalty", [(1.0, "l1"), (0.5, "elastic_net")])
def test_solutions_are_those_of_statsmodels(mixing, penalty):
    x, time, event, _ = study()
    other = PHReg(time, x, status=event, ties="breslow")
    expected = other.fit_regularized(alpha=0.05, L1_wt=mixing, maxiter=500, cnvrg_tol=1e-12).params
    y = survival_outcome(torch.from_numpy(time), torch.from_numpy(event))
    fit = fit_penalised(Cox(ties="breslow"), torch.from_numpy(x), y, penalty=penalty, strength=0.05)
    assert_allclose(fit.coefficients[1:, 0], expected, atol=1e-4)


def test_the_out_of_fold_loss_is_that_of_all_rows_less_that_of_the_rows_trained_on():
    x, time, event, entry = study()
    y = survival_outcome(*map(torch.from_numpy, (time, event, entry)))
    learn, test = np.arange(60), np.arange(60, 80)
    options = {"penalty": "l2", "strength": 0.1}
    fit = fit_penalised(Cox(), torch.from_numpy(x), y, folds=[(learn, test)], **options)
    part = (x[learn] - x[learn].mean(0)) / x[learn].std(0)
    own = fit_penalised(Cox(), torch.from_numpy(part), y[learn], **options).coefficients[1:, 0]
    own = own / torch.from_numpy(x[learn].std(0))
    whole = 80 * minus_log_partial(own, torch.from_numpy(x), time, event, entry, "efron")
    inside = (each[learn] for each in (time, event, entry))
    less = 60 * minus_log_partial(own, torch.from_numpy(x[learn]), *inside, "efron")
    assert_allclose(fit.path.losses[0], (whole - less) / 20, rtol=1e-8)


def test_a_weight_of_two_is_the_row_twice():
    x, time, event, entry = study(40)
    y = survival_outcome(*map(torch.from_numpy, (time, event, entry)))
    weight = 1.0 + (torch.arange(40) % 3 == 0)
    twice = torch.repeat_interleave(torch.arange(40), weight.long())
    design, options = torch.from_numpy(x), {"penalty": "elastic_net", "strength": 0.05}
    weighted = fit_penalised(Cox(), design, y, weight=weight, **options)
    repeated = fit_penalised(Cox(), design[twice], y[twice], **options)
    assert_allclose(weighted.coefficients, repeated.coefficients, atol=1e-8)


@pytest.fixture(scope="module")
def table():
    x, time, event, _ = study(120, 12, seed=1)
    frame = pd.DataFrame(x, columns=[f"x{k}" for k in range(12)])
    return frame.assign(site=np.arange(120) % 2, time=time, event=event.astype(int))


def test_an_estimator_finds_the_sparse_truth(table, tmp_path):
    X = table.drop(columns=["time", "event", "site"])
    model = SurvivalRegressor("cox", network="linear", penalty="lasso")
    model.fit(X, table["time"], event=table["event"])
    found = model.linear_
    strong = found.coefficients[1:, 0].abs().argsort(descending=True)[:2]
    assert set(strong.tolist()) == {0, 1}
    assert (found.coefficients[1:, 0] == 0).sum() >= 3
    assert found.path.losses.isfinite().all() and found.measures["out_of_fold"] > 0
    text = str(model.summary())
    assert "Penalty: lasso, strength" in text and "chosen by cross-validation" in text
    assert "of 12 columns have 0)" in text and "Partial log-likelihood" in text
    assert "Likelihood ratio" not in text and "no standard errors and p-values" in text
    with pytest.raises(UsageError, match="has no confidence intervals"):
        found.confint()
    again = ansatz.load(model.save(tmp_path / "model"))
    assert_allclose(again.predict_survival(X[:3], [2.0]), model.predict_survival(X[:3], [2.0]))


def test_strata_and_the_command_take_a_penalty(table):
    fit = ansatz.fit(
        table, target="time", event="event", strata="site", network="linear", penalty="ridge=0.1"
    )
    (linear,) = fit.fitted.linear
    assert linear.path.strength == 0.1 and fit.metrics["c_index"] > 0.6


def test_what_has_no_events_is_refused():
    x, time, _, entry = study(20)
    y = survival_outcome(*map(torch.from_numpy, (time, np.eye(20)[3], entry)))
    folds = [(np.delete(np.arange(20), 3), np.array([3]))]
    with pytest.raises(UsageError, match="too few events to choose its strength by"):
        fit_penalised(Cox(), torch.from_numpy(x), y, penalty="l1", folds=folds)
