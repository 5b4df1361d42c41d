"""The linear Cox model: a published fit, naive sums over risk sets, and what has no maximum."""

import os
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch.testing import assert_close

from ansatz.errors import DataError, UsageError
from ansatz.likelihoods import create, survival_outcome
from ansatz.linear import fit_linear, residuals
from ansatz.linear.cox import PartialLikelihood, score_residuals

N = 90


def rows(ties=False, entries=False):
    x = torch.randn(N, 2)
    time = torch.distributions.Exponential((0.8 * x[:, 0] - 0.4 * x[:, 1]).exp()).sample()
    if ties:
        time = (4 * time).ceil()
    end = time.quantile(0.8)
    event = (time <= end).double()
    entry = 0.3 * torch.rand(N) * time if entries else None
    return x, survival_outcome(torch.minimum(time, end), event, entry)


def efron(x, beta, y):
    """The log partial likelihood, event time by event time and death by death."""
    risk, total = (x @ beta).exp(), 0.0
    time, event, entry = y.unbind(1)
    for t in time[event > 0].unique():
        dead = (time == t) & (event > 0)
        at_risk = (entry < t) & (time >= t)
        count = int(dead.sum())
        total = total + risk[dead].log().sum()
        for k in range(count):
            total = total - (risk[at_risk].sum() - k / count * risk[dead].sum()).log()
    return total


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("entries", [False, True])
def test_it_is_the_maximum_of_the_partial_likelihood_with_its_curvature(ties, entries):
    x, y = rows(ties, entries)
    fit = fit_linear(create("cox"), x, y, feature_names=["a", "b"])
    beta = fit.coefficients[1:, 0].clone().requires_grad_()
    value = efron(x, beta, y)
    (gradient,) = torch.autograd.grad(value, beta)
    assert fit.converged and fit.log_likelihood == pytest.approx(value.item(), rel=1e-12)
    assert gradient.abs().max() < 1e-7
    information = -torch.autograd.functional.hessian(lambda b: efron(x, b, y), beta.detach())
    assert_close(fit.covariance, torch.linalg.inv(information), rtol=1e-7, atol=0)
    assert fit.null_log_likelihood == pytest.approx(efron(x, torch.zeros(2), y).item(), rel=1e-12)
    assert fit.names == ("(Intercept)", "a", "b") and fit.standard_errors[0].isnan().all()


def rossi():
    path = Path(os.environ.get("ANSATZ_DATA", "."), "survival", "rossi.csv")
    if "ANSATZ_DATA" not in os.environ or not path.exists():
        pytest.skip("survival/rossi.csv is not in $ANSATZ_DATA")
    frame = pd.read_csv(path)
    names = [name for name in frame if name not in ("week", "arrest")]
    time, event = (torch.tensor(frame[name].to_numpy(float)) for name in ("week", "arrest"))
    return torch.tensor(frame[names].to_numpy(float)), survival_outcome(time, event), names


def test_the_published_fit_of_rossi():
    x, y, names = rossi()
    fit = fit_linear(create("cox"), x, y, feature_names=names)
    found = dict(zip(fit.names, fit.coefficients[:, 0].tolist(), strict=True))
    assert fit.log_likelihood == pytest.approx(-658.7477, abs=5e-5)
    assert found["fin"] == pytest.approx(-0.3794, abs=5e-5)
    assert found["age"] == pytest.approx(-0.0574, abs=5e-5)
    assert found["prio"] == pytest.approx(0.0915, abs=5e-5)
    assert fit.measures["concordance"] == pytest.approx(0.6403, abs=5e-5)
    beta = fit.coefficients[1:, 0]
    information = -torch.autograd.functional.hessian(lambda b: efron(x, b, y), beta)
    errors = torch.linalg.inv(information).diagonal().sqrt()
    assert_close(fit.standard_errors[1:, 0], errors, rtol=1e-8, atol=0)
    text = str(fit.summary())
    assert "exp(Est.)" in text and "(Intercept)" not in text
    assert "432 rows, 114 events" in text and "Likelihood ratio test: 33.27 on 7" in text
    assert "AIC" not in text  # a partial likelihood is compared with no other likelihood's


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("entries", [False, True])
def test_score_residuals_add_up_to_the_score(ties, entries):
    x, y = rows(True, entries)
    partial = PartialLikelihood(x, y, torch.ones(N), None, ties)
    theta = torch.tensor([0.3, -0.2])
    total = score_residuals(partial, theta).sum(0)
    assert_close(total, -partial.derivatives(theta).gradient, rtol=1e-9, atol=1e-9)


def test_robust_errors_are_the_infinitesimal_jackknife():
    """A score residual is what the score gains when a row's weight grows (without ties)."""

    def breslow(x, y, weight):  # Efron's term for a weight that is no whole number interpolates
        return PartialLikelihood(x, y, weight, None, "breslow")

    x, y = rows(entries=True)
    fit = fit_linear(create("cox"), x, y, covariance="sandwich")
    theta, h, columns = fit.coefficients[1:, 0], 1e-5, []
    for i in range(N):
        up, down = (torch.ones(N).index_fill(0, torch.tensor(i), 1 + s) for s in (h, -h))
        more, less = (breslow(x, y, weight).derivatives(theta).gradient for weight in (up, down))
        columns.append((less - more) / (2 * h))
    residual = torch.stack(columns)
    inverse = torch.linalg.inv(breslow(x, y, torch.ones(N)).derivatives(theta).hessian)
    expected = inverse @ residual.T @ residual @ inverse
    assert_close(fit.covariance, expected, rtol=1e-5, atol=0)


def test_a_weight_is_a_repetition():
    x, y = rows(ties=True)
    weight = torch.randint(0, 4, (N,))
    weighted = fit_linear(create("cox"), x, y, weight=weight.double())
    repeated = fit_linear(
        create("cox"), x.repeat_interleave(weight, 0), y.repeat_interleave(weight, 0)
    )
    assert_close(weighted.coefficients, repeated.coefficients, rtol=1e-8, atol=1e-10)
    assert_close(weighted.standard_errors[1:], repeated.standard_errors[1:], rtol=1e-8, atol=0)
    assert weighted.measures["concordance"] == pytest.approx(repeated.measures["concordance"])


def test_an_offset_is_a_column_with_coefficient_one():
    x, y = rows()
    whole = fit_linear(create("cox"), x, y)
    rest = fit_linear(create("cox"), x[:, :1], y, offset=whole.coefficients[2, 0] * x[:, 1])
    assert_close(rest.coefficients[1], whole.coefficients[1], rtol=1e-7, atol=1e-9)
    assert rest.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-10)


def test_an_aliased_column_is_dropped_and_named():
    x, y = rows()
    x = torch.cat([x, 2 * x[:, :1] + 1], 1)
    fit = fit_linear(create("cox"), x, y, feature_names=["a", "b", "c"])
    assert fit.dropped == ("c",) and "'c' (= 2 a)" in fit.messages[0] and fit.converged
    assert fit.coefficients[3].isnan().all()


def test_a_level_without_events_is_a_monotone_likelihood_and_is_named():
    x, y = rows()
    level = (torch.arange(N) < 20).double()
    y[:20, 1] = 0
    x = torch.cat([x, level.unsqueeze(1)], 1)
    fit = fit_linear(create("cox"), x, y, feature_names=["a", "b", "cured"])
    assert not fit.converged
    assert fit.messages[0].startswith("monotone likelihood: along 'cured' the partial")


def test_a_column_that_orders_the_events_is_a_monotone_likelihood():
    x, y = rows()
    x[:, 0] = -y[:, 0]
    fit = fit_linear(create("cox"), x, y, feature_names=["clock", "b"])
    assert not fit.converged and "'clock'" in fit.messages[0]


def test_without_columns_there_is_the_null_model():
    x, y = rows()
    fit = fit_linear(create("cox"), x[:, :0], y)
    assert fit.converged and fit.log_likelihood == fit.null_log_likelihood
    assert "y ~ 1" in str(fit.summary())


def test_the_fit_knows_survival_curves_by_breslows_baseline():
    x, y = rows()
    fit = fit_linear(create("cox"), x, y)
    likelihood = create("cox")
    likelihood.set_baseline(fit.predict_raw(x)[:, 0], y)
    assert_close(fit.likelihood.baseline_hazard, likelihood.baseline_hazard)
    curve = fit.likelihood.distribution(fit.predict_raw(x))
    assert (curve.cdf(y[:, 0]) >= 0).all()


def test_what_cannot_be_is_said():
    x, y = rows()
    with pytest.raises(UsageError, match="precision= has no meaning for cox"):
        fit_linear(create("cox"), x, y, precision=torch.ones(N))
    with pytest.raises(UsageError, match=r"go with y \(90, L\), got y \(90,\)"):
        fit_linear(create("cox"), x, y[:, 0])
    censored = y.clone()
    censored[:, 1] = 0
    with pytest.raises(DataError, match="no row has an event"):
        fit_linear(create("cox"), x, censored)
    with pytest.raises(UsageError, match="cox has no residuals: it couples rows"):
        residuals(create("cox"), torch.zeros(N, 1), y)
