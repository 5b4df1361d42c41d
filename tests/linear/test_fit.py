"""Fits against closed forms, general optimisers and the properties that a maximum has."""

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.optimize import linprog, minimize
from torch.testing import assert_close

from ansatz.data import Batch
from ansatz.errors import DataError, UsageError
from ansatz.likelihoods import create
from ansatz.linear import fit_linear
from ansatz.training import Supervised

N = 150


@pytest.fixture
def x():
    return torch.randn(N, 2) * torch.tensor([1.0, 20.0]) + torch.tensor([0.0, 300.0])


def outcome(name, x):
    eta = 0.4 * x[:, 0] + 0.02 * (x[:, 1] - 300)
    noise = {
        "normal": torch.randn(N),
        "student_t": torch.distributions.StudentT(4.0).sample((N,)),
        "laplace": torch.distributions.Laplace(0.0, 1.0).sample((N,)),
    }
    if name in noise:
        return 5 + 2 * eta + noise[name] * (0.5 * eta).exp()
    if name == "gamma":
        return eta.exp() * torch.distributions.Gamma(2.0, 2.0).sample((N,))
    if name == "poisson":
        return torch.poisson(eta.exp())
    return (torch.rand(N) < eta.sigmoid()).double()


def optimised(negative_log_likelihood, size):
    """The least value that a general optimiser finds, from several starts."""

    def function(b):
        b = torch.tensor(b, requires_grad=True)
        value = negative_log_likelihood(b)
        return value.item(), torch.autograd.grad(value, b)[0].numpy()

    starts = [np.zeros(size), *np.random.default_rng(0).normal(0, 0.3, (4, size))]
    return min(minimize(function, start, jac=True, method="BFGS").fun for start in starts)


def columns(x):
    return torch.stack([torch.ones(N), x[:, 0], (x[:, 1] - 300) / 20], 1)


def test_ordinary_least_squares_is_the_normal_equations(x):
    """w = (X X^T)^-1 X y for X of shape (features, rows) and loss |X^T w - y|^2."""
    y = outcome("normal", x)
    fit = fit_linear(create("normal", dispersion="constant"), x, y)
    X = torch.cat([torch.ones(N, 1), x], 1).T  # (d, s)
    assert_close(fit.coefficients[:, 0], torch.linalg.solve(X @ X.T, X @ y), rtol=1e-9, atol=1e-9)
    mse = fit_linear(create("mse"), x, y)
    assert_close(mse.coefficients, fit.coefficients, rtol=1e-10, atol=1e-10)
    assert (X @ (X.T @ fit.coefficients[:, 0] - y)).abs().max() < 1e-8 * (X.abs() @ y.abs()).max()


def test_logistic_loss_and_gradient_are_the_formulas(x):
    """-log sigma((2y - 1) w.x) and (sigma(w.x) - y) x; the gradient vanishes at the fit."""
    y = outcome("bernoulli", x)
    design = torch.cat([torch.ones(N, 1), x], 1)
    fit = fit_linear(create("bernoulli"), x, y)
    w = fit.coefficients[:, 0].clone().requires_grad_()
    loss = -torch.nn.functional.logsigmoid((2 * y - 1) * (design @ w)).sum()
    (gradient,) = torch.autograd.grad(loss, w)
    assert_close(gradient, design.T @ (torch.sigmoid(design @ w) - y))
    assert_close(fit.log_likelihood, -loss.item())
    assert (gradient.abs() < 1e-9 * design.abs().sum(0)).all()


def test_normal_with_predicted_spread_is_the_direct_maximum(x):
    y = outcome("normal", x)
    likelihood = create("normal")
    fit = fit_linear(likelihood, x, y, dispersion="predicted")
    unit, floor = (
        float(v) for v in (fit.likelihood.dispersion.unit, fit.likelihood.dispersion.floor)
    )
    z = columns(x)

    def loss(b):
        sd = unit * (1 + (z @ b[3:]).exp()).log() + floor
        return -torch.distributions.Normal(z @ b[:3] + 5, sd).log_prob(y).sum()

    assert fit.converged and fit.coefficients.shape == (3, 2)
    np.testing.assert_allclose(-fit.log_likelihood, optimised(loss, 6), rtol=1e-8)


def test_student_t_is_the_direct_maximum(x):
    y = outcome("student_t", x)
    fit = fit_linear(create("student_t", dispersion="constant"), x, y)
    z = columns(x)

    def loss(b):
        scale, nu = b[3].exp(), 2 + b[4].exp()
        return -torch.distributions.StudentT(nu, z @ b[:3] + 5, scale).log_prob(y).sum()

    best = optimised(loss, 5)
    assert fit.converged
    np.testing.assert_allclose(-fit.log_likelihood, best, rtol=1e-8)
    assert fit.parameters == 5 and set(fit.scales) == {"sigma", "nu"}


def test_student_t_on_normal_data_becomes_the_normal_likelihood_and_says_so(x):
    y = 5 + x[:, 0] + torch.as_tensor(stats.norm.ppf((np.arange(N) + 0.5) / N))[torch.randperm(N)]
    fit = fit_linear(create("student_t", dispersion="constant"), x, y)
    normal = fit_linear(create("normal", dispersion="constant"), x, y)
    assert fit.scales["nu"] == pytest.approx(1000)
    assert "end of its range" in fit.messages[0] and fit.converged
    assert_close(fit.coefficients, normal.coefficients, rtol=0.02, atol=0.02)
    assert fit.log_likelihood == pytest.approx(normal.log_likelihood, abs=0.2)


def test_laplace_is_the_linear_programme_of_least_absolute_deviations(x):
    y = outcome("laplace", x)
    fit = fit_linear(create("laplace", dispersion="constant"), x, y)
    design = np.column_stack([np.ones(N), x.numpy()])
    eye = np.eye(N)
    solved = linprog(
        np.r_[np.zeros(3), np.ones(2 * N)],
        A_eq=np.hstack([design, eye, -eye]),
        b_eq=y.numpy(),
        bounds=[(None, None)] * 3 + [(0, None)] * 2 * N,
    )
    np.testing.assert_allclose(fit.coefficients[:, 0], solved.x[:3], rtol=1e-6, atol=1e-7)
    b = solved.fun / N
    np.testing.assert_allclose(fit.scales["b"], b, rtol=1e-8)
    np.testing.assert_allclose(fit.log_likelihood, -N * (1 + np.log(2 * b)), rtol=1e-9)
    fisher = b * np.sqrt(np.diag(np.linalg.inv(design.T @ design)))
    np.testing.assert_allclose(fit.standard_errors[:, 0], fisher, rtol=1e-6)
    assert_close(fit_linear(create("mae"), x, y).coefficients, fit.coefficients, rtol=1e-6, atol=0)


def test_laplace_with_predicted_scale_is_the_direct_maximum(x):
    y = outcome("laplace", x)
    fit = fit_linear(create("laplace"), x, y, dispersion="predicted")
    unit, floor = (
        float(v) for v in (fit.likelihood.dispersion.unit, fit.likelihood.dispersion.floor)
    )
    z = columns(x)

    def loss(b):
        scale = unit * (1 + (z @ b[3:]).exp()).log() + floor
        return -torch.distributions.Laplace(z @ b[:3] + 5, scale).log_prob(y).sum()

    best = optimised(loss, 6)  # a kink stops it a little early
    assert best - 1 < -fit.log_likelihood <= best + 1e-6


def test_gamma_dispersion_is_the_maximum(x):
    y = outcome("gamma", x)
    fit = fit_linear(create("gamma", dispersion="constant"), x, y)
    mean = fit.predict_raw(x)[:, 0].exp().numpy()

    def loss(log_phi):
        phi = np.exp(log_phi[0])
        return -stats.gamma(1 / phi, scale=phi * mean).logpdf(y.numpy()).sum()

    best = minimize(loss, [0.0], method="BFGS", options={"gtol": 1e-8})
    assert fit.dispersion_ml == pytest.approx(np.exp(best.x[0]), rel=1e-5)
    assert fit.log_likelihood == pytest.approx(-best.fun, rel=1e-10)
    # R: dispersion deviance / n, one parameter more.
    phi = fit.residual_deviance / N
    r = -2 * stats.gamma(1 / phi, scale=phi * mean).logpdf(y.numpy()).sum() + 2 * (3 + 1)
    assert fit.aic_as("R") == pytest.approx(r, rel=1e-10)


EVERY = ["normal", "student_t", "laplace", "gamma", "poisson", "bernoulli"]
PREDICTED = ["normal", "student_t", "gamma"]


@pytest.mark.parametrize("name", EVERY)
def test_a_weight_is_a_repetition(x, name):
    y = outcome(name, x)
    weight = torch.randint(0, 4, (N,))
    likelihood = (
        create(name) if name in ("poisson", "bernoulli") else create(name, dispersion="constant")
    )
    weighted = fit_linear(likelihood, x, y, weight=weight.double())
    repeated = fit_linear(likelihood, x.repeat_interleave(weight, 0), y.repeat_interleave(weight))
    assert_close(weighted.coefficients, repeated.coefficients, rtol=1e-7, atol=1e-9)
    assert_close(weighted.standard_errors, repeated.standard_errors, rtol=1e-6, atol=0)
    assert weighted.aic == pytest.approx(repeated.aic, rel=1e-10)
    assert weighted.observations == repeated.observations


@pytest.mark.parametrize("name", PREDICTED)
def test_predicted_dispersion_is_at_a_stationary_point_and_never_worse(x, name):
    y = outcome(name, x)
    constant = fit_linear(create(name), x, y)
    predicted = fit_linear(create(name), x, y, dispersion="predicted")
    likelihood, design = predicted.likelihood, torch.cat([torch.ones(N, 1), x], 1)
    table = predicted.coefficients.clone().requires_grad_()
    terms = likelihood.loss(design @ table, y)
    (gradient,) = torch.autograd.grad(terms.sum(), table)
    assert (gradient.abs() < 1e-6 * design.abs().sum(0).unsqueeze(1)).all()
    assert predicted.log_likelihood > constant.log_likelihood
    assert predicted.log_likelihood == pytest.approx(-terms.sum().item(), rel=1e-12)


@pytest.mark.parametrize("name", PREDICTED)
def test_a_head_held_constant_is_the_constant_likelihood(x, name):
    """dispersion='constant' on a likelihood that could predict it gives the same fit."""
    y = outcome(name, x)
    a = fit_linear(create(name, dispersion="constant"), x, y)
    b = fit_linear(create(name), x, y, dispersion="constant")
    assert_close(a.coefficients[:, 0], b.coefficients[:, 0], rtol=1e-7, atol=1e-8)
    assert_close(a.standard_errors[:, 0], b.standard_errors[:, 0], rtol=1e-6, atol=0)
    assert a.log_likelihood == pytest.approx(b.log_likelihood, rel=1e-10)
    assert a.parameters == b.parameters
    assert (b.coefficients[1:, 1] == 0).all()


@pytest.mark.parametrize("name", EVERY)
def test_shifting_and_scaling_a_column_changes_nothing_but_its_unit(x, name):
    y = outcome(name, x)
    likelihood = (
        create(name) if name in ("poisson", "bernoulli") else create(name, dispersion="constant")
    )
    fit, other = fit_linear(likelihood, x, y), fit_linear(likelihood, 1e4 + x * 1e-3, y)
    assert_close(other.coefficients[1:] * 1e-3, fit.coefficients[1:], rtol=1e-6, atol=1e-9)
    assert_close(other.standard_errors[1:] * 1e-3, fit.standard_errors[1:], rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", EVERY)
def test_the_network_gives_the_raw_numbers_of_the_fit(x, name):
    y = outcome(name, x)
    constant = {} if name in ("poisson", "bernoulli") else {"dispersion": "constant"}
    offset = 0.1 * torch.randn(N)
    fit = fit_linear(create(name, **constant), x, y, offset=offset)
    objective = Supervised(fit.likelihood)
    raw = objective.raw(fit.to_network(), (x,), offset)
    assert_close(raw, fit.predict_raw(x, offset))
    loss = objective.evaluate(fit.to_network(), Batch.of(x, y, offset=offset))
    assert_close(-loss.total.item(), fit.log_likelihood)


def test_the_given_likelihood_is_left_as_it_was(x):
    likelihood = create("normal", dispersion="constant")
    before = {name: value.clone() for name, value in likelihood.state_dict().items()}
    fit_linear(likelihood, x, outcome("normal", x))
    assert all(torch.equal(value, before[name]) for name, value in likelihood.state_dict().items())


def test_rows_in_blocks_give_the_same_fit(x, monkeypatch):
    from ansatz.linear.criterion import Criterion

    y = outcome("poisson", x)
    whole = fit_linear(create("poisson"), x, y)
    blocks = Criterion.blocks
    monkeypatch.setattr(
        Criterion,
        "blocks",
        lambda self: [slice(i, i + 7) for i in range(0, len(self.y), 7)],
    )
    assert len(blocks(Criterion(None, x, y, y, ["x"]))) == 1
    assert_close(fit_linear(create("poisson"), x, y).coefficients, whole.coefficients)


def test_a_float32_table_is_fitted_in_float64(x):
    y = outcome("normal", x)
    fit = fit_linear(create("normal", dispersion="constant"), x.float(), y.float())
    wide = fit_linear(
        create("normal", dispersion="constant"), x.float().double(), y.float().double()
    )
    assert fit.coefficients.dtype == torch.float64
    assert_close(fit.coefficients, wide.coefficients, rtol=1e-12, atol=0)


def test_a_known_dispersion_is_used_as_it_is(x):
    y = outcome("normal", x)
    fit = fit_linear(create("normal", dispersion=3.0), x, y)
    design = torch.cat([torch.ones(N, 1), x], 1)
    errors = 3.0 * torch.linalg.inv(design.T @ design).diagonal().sqrt()
    assert_close(fit.standard_errors[:, 0], errors, rtol=1e-8, atol=0)
    assert fit.dispersion == pytest.approx(9) and fit.parameters == 3 and not fit.uses_t


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        ({"weight": torch.full((N,), -1.0)}, DataError, "weight must be finite and >= 0, got -1.0"),
        ({"weight": torch.zeros(N)}, DataError, "needs a row with a positive weight"),
        ({"offset": torch.full((N,), torch.inf)}, DataError, "offset must be finite, got inf"),
        ({"precision": torch.ones(N - 1)}, UsageError, r"precision must have shape \(150,\)"),
        ({"feature_names": ["a"]}, UsageError, "2 columns need as many names, got 1"),
        ({"dispersion": "both"}, UsageError, "dispersion must be one of constant, predicted"),
        ({"covariance": "hc3"}, UsageError, "covariance must be one of model, sandwich, HC0"),
    ],
)
def test_a_bad_argument_is_named(x, arguments, error, words):
    with pytest.raises(error, match=words):
        fit_linear(create("normal", dispersion="constant"), x, outcome("normal", x), **arguments)


def test_bad_values_are_named_by_row_and_column(x):
    y = outcome("normal", x)
    x[3, 1] = torch.nan
    with pytest.raises(DataError, match=r"column 'b' must be finite, got nan in row 3"):
        fit_linear(create("normal"), x, y, feature_names=["a", "b"])
    with pytest.raises(UsageError, match=r"got y \(150, 1\)"):
        fit_linear(create("normal"), x, y.unsqueeze(1))
    with pytest.raises(UsageError, match="precision= needs an exponential family"):
        fit_linear(create("laplace"), x[4:], y[4:], precision=torch.ones(N - 4))
    with pytest.raises(UsageError, match="constant dispersion"):
        likelihood = create("normal", dispersion="constant")
        fit_linear(likelihood, x[4:], y[4:], dispersion="predicted")


def test_a_row_without_weight_may_hold_anything(x):
    y, weight = outcome("normal", x), torch.ones(N)
    clean = fit_linear(create("normal", dispersion="constant"), x[1:], y[1:])
    x[0], y[0], weight[0] = torch.nan, torch.nan, 0
    fit = fit_linear(create("normal", dispersion="constant"), x, y, weight=weight)
    assert_close(fit.coefficients, clean.coefficients)


@pytest.mark.parametrize("name", ["normal", "student_t", "laplace"])
def test_outcomes_far_from_0_have_the_fit_of_their_differences(x, name):
    y = (outcome(name, x) * 2**20).round() / 2**20  # so that 2^30 can be added without rounding
    near = fit_linear(create(name, dispersion="constant"), x, y)
    far = fit_linear(create(name, dispersion="constant"), x, y + 2**30)
    assert far.converged and far.iterations < 80
    assert_close(far.coefficients[1:], near.coefficients[1:], rtol=1e-6, atol=1e-9)
    assert far.log_likelihood == pytest.approx(near.log_likelihood, rel=1e-9)


def test_heavy_tails_are_seen_behind_strong_effects():
    """y follows x so closely that its own distribution looks normal; its noise does not."""
    x = torch.randn(2000, 3)
    noise = torch.distributions.StudentT(3.0).sample((2000,))
    fit = fit_linear(create("student_t", dispersion="constant"), x, 10 * x.sum(1) + noise)
    assert fit.scales["nu"] == pytest.approx(3, rel=0.3) and fit.messages == ()
