"""The test of proportional hazards, and stratified Cox models."""

import numpy as np
import pytest
import torch
from scipy import stats
from statsmodels.duration.hazard_regression import PHReg
from torch.testing import assert_close

from ansatz.likelihoods import Cox
from ansatz.likelihoods.partial_likelihood import partial_likelihood
from ansatz.linear import fit_linear, proportional_hazards, schoenfeld_residuals


def sample(n=120, strata=3, ties=False, seed=0, changing=0.0):
    """Times with a hazard that is not proportional where ``changing`` is not 0."""
    rng = np.random.default_rng(seed)
    X, stratum = rng.normal(size=(n, 2)), rng.integers(0, strata, n)
    shape = np.exp(changing * X[:, 0])
    time = rng.weibull(1.2 * shape, n) * np.exp(-0.4 * X[:, 1]) * (1 + 3 * stratum)
    end = rng.uniform(0.2, 8, n)
    event = (time <= end).astype(float)
    time = np.minimum(time, end)
    if ties:
        time = np.ceil(time * 4) / 4
    return X, time, event, stratum


def tensors(*arrays):
    return [torch.from_numpy(np.asarray(a, dtype=float)) for a in arrays]


def outcome(time, event, *more):
    return torch.stack(tensors(time, event, np.full(len(time), -np.inf), *more), 1)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("method", ["efron", "breslow"])
def test_a_stratified_model_is_that_of_statsmodels(ties, method):
    X, time, event, stratum = sample(ties=ties)
    fit = fit_linear(Cox(ties=method), torch.from_numpy(X), outcome(time, event, stratum))
    other = PHReg(time, X, status=event, strata=stratum, ties=method).fit()
    assert_close(fit.coefficients[1:, 0].numpy(), other.params, rtol=1e-5, atol=1e-7)
    assert_close(fit.covariance.diagonal().sqrt().numpy(), other.bse, rtol=1e-4, atol=1e-7)
    assert fit.log_likelihood == pytest.approx(other.llf, rel=1e-8)


def test_late_entries_stay_within_their_stratum():
    X, time, event, stratum = sample()
    entry = np.where(np.arange(len(time)) % 3 == 0, 0.5 * time, -np.inf)
    y = torch.stack(tensors(time, event, entry, stratum), 1)
    beta = torch.tensor([0.3, -0.2], dtype=torch.float64)
    stratified = (
        Cox()
        .double()
        .joint_loss(
            (torch.from_numpy(X) @ beta).unsqueeze(1), y, torch.ones(len(time), dtype=torch.float64)
        )
    )
    total = 0.0
    for s in range(3):
        rows = stratum == s
        parts = tensors(X[rows], beta, time[rows], event[rows], entry[rows])
        total -= float(partial_likelihood(*parts)[0])
    assert float(stratified.sum()) == pytest.approx(total, rel=1e-10)


def test_each_stratum_has_the_baseline_of_its_own_rows():
    X, time, event, stratum = sample()
    log_risk = torch.from_numpy(X @ [0.2, 0.4])
    together, y = Cox().double(), outcome(time, event, stratum)
    together.set_baseline(log_risk, y)
    for s in range(3):
        rows = torch.from_numpy(stratum == s)
        alone = Cox().double()
        alone.set_baseline(log_risk[rows], y[rows, :3])
        raw = torch.tensor([[0.7, float(s)]], dtype=torch.float64)
        at = alone.baseline_times
        expected = alone.distribution(raw[:, :1]).log_survival(at)
        assert_close(together.distribution(raw).log_survival(at), expected)


def test_residuals_are_the_naive_differences():
    X, time, event, _ = sample()
    beta = np.array([0.3, -0.5])
    found = schoenfeld_residuals(*tensors(X, beta, time, event))
    rows = np.flatnonzero(event)
    risk = np.exp(X @ beta)
    naive = []
    for i in rows:
        there = time >= time[i]
        naive.append(X[i] - (risk[there] @ X[there]) / risk[there].sum())
    assert_close(found.numpy(), np.array(naive))


def test_residuals_are_those_of_statsmodels():
    X, time, event, _ = sample()
    other = PHReg(time, X, status=event).fit()
    found = schoenfeld_residuals(*tensors(X, other.params, time, event))
    theirs = other.schoenfeld_residuals
    assert_close(found.numpy(), theirs[~np.isnan(theirs[:, 0])], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_residuals_add_up_to_the_score(ties):
    X, time, event, _ = sample(ties=True)
    parts = tensors(X, [0.1, 0.2], time, event)
    _, gradient, _ = partial_likelihood(*parts, ties=ties)
    assert_close(schoenfeld_residuals(*parts, ties=ties).sum(0), gradient)


@pytest.mark.parametrize("transform", ["km", "rank", "log", "identity"])
def test_the_test_is_the_formula(transform):
    X, time, event, _ = sample()
    fit = PHReg(time, X, status=event).fit()
    V = fit.cov_params()
    found = proportional_hazards(*tensors(X, fit.params, V, time, event), transform=transform)
    rows = np.flatnonzero(event)
    r, t = schoenfeld_residuals(*tensors(X, fit.params, time, event)).numpy(), time[rows]
    if transform == "km":
        left = [1 - np.prod([1 - 1 / (time >= u).sum() for u in t if u < s]) for s in t]
        g = np.array(left)
    else:
        g = {"rank": stats.rankdata(t), "log": np.log(t), "identity": t}[transform]
    g, d = g - g.mean(), len(rows)
    scaled = d * r @ V
    chi2 = (g @ scaled) ** 2 / (d * np.diag(V) * (g @ g))
    assert_close(found.chi2.numpy(), chi2, rtol=1e-6, atol=1e-9)
    assert_close(found.p.numpy(), stats.chi2.sf(chi2, 1), rtol=1e-6, atol=1e-9)
    assert found.global_chi2 == pytest.approx(d * (g @ r) @ V @ (g @ r) / (g @ g))
    slopes = [np.corrcoef(g, scaled[:, j])[0, 1] for j in range(2)]
    assert_close(found.correlation.numpy(), np.array(slopes), rtol=1e-6, atol=1e-9)


def test_a_weight_of_two_is_the_row_twice():
    X, time, event, _ = sample(60)
    weight = 1 + np.arange(60) % 2
    twice = [np.repeat(a, weight, 0) for a in (X, time, event)]
    beta, V = np.array([0.2, 0.1]), np.eye(2)
    one = proportional_hazards(
        *tensors(X, beta, V, time, event), weight=torch.from_numpy(weight), ties="breslow"
    )
    two = proportional_hazards(*tensors(twice[0], beta, V, *twice[1:]), ties="breslow")
    assert_close(one.chi2, two.chi2)


def test_it_has_its_level_and_finds_a_crossing():
    small = 0
    for seed in range(60):
        X, time, event, _ = sample(150, strata=1, seed=seed)
        fit = fit_linear(Cox(), torch.from_numpy(X), outcome(time, event))
        small += fit.measures["proportional_hazards_p"] < 0.1
    assert 0 <= small <= 14  # binomial(60, 0.1): six expected, 3.4 standard deviations
    X, time, event, _ = sample(400, strata=1, changing=0.8)
    fit = fit_linear(Cox(), torch.from_numpy(X), outcome(time, event), feature_names=["a", "b"])
    assert fit.measures["proportional_hazards_p"] < 1e-4
    (message,) = [m for m in fit.messages if "proportional hazards" in m]
    assert "'a' changes most" in message
    assert "Test of proportional hazards (Schoenfeld): p" in str(fit.summary())
