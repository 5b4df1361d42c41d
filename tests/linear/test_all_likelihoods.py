"""The linear model of every likelihood: simulated rows give back what they were made from."""

from functools import cache

import pytest
import torch
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.likelihoods import create, right_censored, survival_outcome
from ansatz.linear import fit_linear, residuals
from ansatz.linear.row_loss import differenced_curvature, exact_curvature, row_loss
from ansatz.seeds import generator
from ansatz.spec import TargetSpec

N = 701
# likelihood: options of the likelihood that makes the outcomes, of the likelihood that is fitted,
# and the coefficients (intercept, two slopes) of each raw number that carries the location
ONE = [[0.4, 0.5, -0.3]]
TWO = [[0.8, 0.4, -0.2], [-0.5, 0.3, 0.4]]
CONSTANT = {"dispersion": "constant"}
ROWS = {
    "normal": ({"dispersion": 0.7}, CONSTANT, ONE),
    "laplace": ({"dispersion": 0.7}, CONSTANT, ONE),
    "student_t": ({"dispersion": 0.7, "nu": 4.0}, CONSTANT, ONE),
    "exponential": ({}, {}, ONE),
    "gamma": ({"dispersion": 0.5}, CONSTANT, ONE),
    "log_normal": ({"dispersion": 0.5}, CONSTANT, ONE),
    "weibull": ({"dispersion": 0.6}, CONSTANT, ONE),
    "inverse_gaussian": ({"dispersion": 0.3}, CONSTANT, ONE),
    "tweedie": ({"dispersion": 0.8, "power": 1.6}, {**CONSTANT, "power": "learned"}, ONE),
    "generalized_pareto": ({"shape": 0.2}, {}, ONE),
    "beta": ({"dispersion": 0.1}, CONSTANT, ONE),
    "von_mises": ({}, {}, TWO),
    "bernoulli": ({}, {}, ONE),
    "poisson": ({}, {}, ONE),
    "negative_binomial": ({"dispersion": 0.5}, CONSTANT, ONE),
    "zero_inflated_poisson": ({}, {}, TWO),
    "hurdle_poisson": ({}, {}, TWO),
    "binomial": ({}, {}, ONE),
    "beta_binomial": ({"dispersion": 0.3}, CONSTANT, ONE),
    "zero_one_inflated_beta": (
        {"dispersion": 0.2},
        CONSTANT,
        [*ONE, [-0.5, 0.3, 0.4], [-1.0, 0.2, -0.3]],
    ),
    "hurdle_negative_binomial": ({"dispersion": 0.5}, CONSTANT, [[1.4, 0.4, -0.2], TWO[1]]),
    "zero_inflated_negative_binomial": ({"dispersion": 0.5}, CONSTANT, [[1.4, 0.4, -0.2], TWO[1]]),
}
TRIALS = ("binomial", "beta_binomial")
SCALES = {  # what the constant scales and shapes must come near to
    "normal": {"sigma": 0.7},
    "laplace": {"b": 0.7},
    "student_t": {"sigma": 0.7, "nu": 4.0},
    "gamma": {"phi": 0.5},
    "log_normal": {"sigma": 0.5},
    "weibull": {"sigma": 0.6},
    "inverse_gaussian": {"phi": 0.3},
    "tweedie": {"phi": 0.8, "p": 1.6},
    "generalized_pareto": {"xi": 0.2},
    "beta": {"phi": 10.0},
    "negative_binomial": {"alpha": 0.5},
    "beta_binomial": {"phi": 1 / 0.3},
    "zero_inflated_negative_binomial": {"alpha": 0.5},
    "hurdle_negative_binomial": {"alpha": 0.5},
    "zero_one_inflated_beta": {"phi": 5.0},
}
every_likelihood = pytest.mark.parametrize("name", ROWS)


@cache
def simulated(name):
    torch.manual_seed(0)
    made, fitted, table = ROWS[name]
    x, likelihood, table = torch.randn(N, 2), create(name, **made), torch.tensor(table)
    likelihood.outputs(TargetSpec())
    raw = torch.cat([torch.ones(N, 1), x], 1) @ table.T
    with torch.no_grad():
        if name not in TRIALS:
            return (
                x,
                likelihood.distribution(raw).sample(generator=generator(0)),
                create(name, **fitted),
            )
        trials = torch.randint(1, 20, (N,)).double()
        y = likelihood.distribution(raw, trials).sample(generator=generator(0))
        return x, torch.stack([y, trials], 1), create(name, **fitted)


@cache
def fitted(name):
    x, y, likelihood = simulated(name)
    return fit_linear(likelihood, x, y, feature_names=["a", "b"])


@every_likelihood
def test_the_coefficients_are_found_within_their_standard_errors(name):
    fit = fitted(name)
    truth = torch.tensor(ROWS[name][2]).T
    count = truth.shape[1]
    errors = fit.standard_errors[:, :count]
    assert fit.converged and fit.messages == () and errors.isfinite().all()
    assert ((fit.coefficients[:, :count] - truth).abs() < 4 * errors).all()
    assert (errors < 0.5).all()
    for symbol, value in SCALES.get(name, {}).items():
        assert fit.scales[symbol] == pytest.approx(value, rel=0.35)
    assert str(fit.summary()).count("\na ") == count


@every_likelihood
def test_the_score_is_zero(name):
    (x, y, _), fit = simulated(name), fitted(name)
    if name == "laplace":
        return  # a kink: proved by the dual certificate in test_fit
    table = fit.coefficients.clone().requires_grad_()
    parameters = list(fit.likelihood.parameters())
    design = torch.cat([torch.ones(N, 1), x], 1)
    terms = fit.likelihood.loss(design @ table, y)
    gradients = torch.autograd.grad(terms.sum(), [table, *parameters])
    assert all((gradient.abs() < 1e-5).all() for gradient in gradients)
    assert fit.log_likelihood == pytest.approx(-terms.sum().item(), rel=1e-12)


@every_likelihood
def test_without_columns_it_is_the_constant_model(name):
    _, y, likelihood = simulated(name)
    fit = fit_linear(likelihood, torch.zeros(N, 0), y)
    start = create(name, **ROWS[name][1])
    start.outputs(TargetSpec())
    start.observe(y, torch.ones(N))
    shift, _ = start.start(y, torch.ones(N))
    assert fit.converged and fit.log_likelihood == pytest.approx(fit.null_log_likelihood, rel=1e-12)
    assert_close(fit.coefficients[0], shift, rtol=1e-5, atol=1e-5)
    at_start = -start.loss(shift.expand(N, -1), y).sum().item()
    assert fit.log_likelihood == pytest.approx(at_start, rel=1e-9)


@every_likelihood
def test_second_derivatives_are_those_of_differences(name):
    """A tail that dropped its share of a second derivative without a word would show here."""
    _, y, likelihood = simulated(name)
    likelihood.outputs(TargetSpec())
    likelihood.observe(y, torch.ones(N))
    shift, scale = likelihood.start(y, torch.ones(N))
    loss, constants = row_loss(likelihood, len(shift))
    z = torch.cat([shift, constants]) + 0.3 * torch.randn(20, len(shift) + len(constants))
    unit = torch.cat([scale, torch.ones_like(constants)])
    columns = range(z.shape[1])
    exact = exact_curvature(loss, z, y[:20], columns)
    if name == "laplace":
        return
    differenced = differenced_curvature(loss, z, y[:20], columns, unit)
    assert_close(exact[2], differenced[2], rtol=1e-5, atol=1e-5 * float(exact[2].abs().max()))


@every_likelihood
def test_quantile_residuals_are_standard_normal(name):
    (x, y, _), fit = simulated(name), fitted(name)
    if name == "von_mises":
        pytest.skip("angles have residuals of their own")
    r = residuals(fit.likelihood, fit.predict_raw(x), y, "quantile", generator=generator(1))
    assert r.isfinite().all()
    assert abs(r.mean().item()) < 4 / N**0.5 and r.std().item() == pytest.approx(1, abs=0.08)


def within(estimate, truth, errors):
    return bool(((estimate - torch.as_tensor(truth)).abs() < 4 * errors).all())


def test_ordered_classes_have_slopes_and_thresholds():
    x = torch.randn(N, 2) + 5
    latent = x @ torch.tensor([0.8, -0.5]) + torch.logit(torch.rand(N))
    fit = fit_linear(create("ordinal"), x, torch.bucketize(latent, torch.tensor([0.5, 1.5, 2.5])))
    assert fit.converged and within(
        fit.coefficients[1:, 0], [0.8, -0.5], fit.standard_errors[1:, 0]
    )
    assert list(fit.scales.values()) == pytest.approx([0.5, 1.5, 2.5], abs=1.0)
    raw = fit.predict_raw(x)
    assert fit.likelihood.distribution(raw).cdf(torch.ones(N)).mean() > 0.2
    r = residuals(
        fit.likelihood,
        raw,
        torch.bucketize(latent, torch.tensor([0.5, 1.5, 2.5])).double(),
        "quantile",
        generator=generator(1),
    )
    assert abs(r.mean().item()) < 0.12 and r.std().item() == pytest.approx(1, abs=0.08)


def test_a_mixture_has_coefficients_of_means_and_gates_and_a_dispersion_per_component():
    x = torch.randn(N, 1)
    first = torch.rand(N) < torch.sigmoid(0.5 * x[:, 0])
    y = torch.where(first, -2 + 0.5 * x[:, 0], 2 - 0.5 * x[:, 0]) + 0.5 * torch.randn(N)
    fit = fit_linear(create("normal_mixture", components=2), x, y)
    assert fit.outputs == ("mean 1", "mean 2", "dispersion 1", "dispersion 2", "log odds 2")
    truth = torch.tensor([[-2.0, 2.0, 0.0], [0.5, -0.5, -0.5]])
    chosen = [0, 1, 4]
    assert within(fit.coefficients[:, chosen], truth, fit.standard_errors[:, chosen])
    assert fit.parameters == 8 and fit.converged
    assert list(fit.scales.values()) == pytest.approx([0.5, 0.5], rel=0.1)


@pytest.mark.parametrize("reference", [True, False])
def test_rankings_have_a_log_worth_per_item_against_the_first(reference):
    x, table = torch.randn(400, 1), torch.tensor([[0.0, 0.5, -0.5], [0.0, 0.6, -0.4]])
    gumbel = -(-torch.rand(400, 3).log()).log()
    y = (torch.cat([torch.ones(400, 1), x], 1) @ table + gumbel).argsort(1, descending=True)
    fit = fit_linear(create("plackett_luce", reference=reference), x, y)
    assert fit.converged and fit.rank == 4 and fit.outputs[-2:] == ("1", "2")
    assert within(fit.coefficients[:, -2:], table[:, 1:], fit.standard_errors[:, -2:])
    assert "Coefficients of 0:" not in str(fit.summary())
    with pytest.raises(UsageError, match="plackett_luce has no residuals"):
        residuals(fit.likelihood, fit.predict_raw(x), y, "quantile")


def test_a_prior_on_rankings_is_part_of_the_fit_and_said():
    """Item 2 never beats another one: only a prior gives it a finite score."""
    y = torch.tensor([[0, 1, 2], [1, 0, 2], [0, 1, 2]])
    none = torch.zeros(3, 0)
    bare = fit_linear(create("plackett_luce"), none, y)
    assert not bare.converged and bare.messages
    fit = fit_linear(create("plackett_luce", prior=1.0), none, y)
    assert fit.converged and "prior of 1 comparisons" in fit.messages[0]
    start = create("plackett_luce", prior=1.0)
    start.outputs(TargetSpec(classes=3, event=(3,)))
    shift, _ = start.start(y, torch.ones(3))
    assert_close(start.scores(fit.coefficients[0]), start.scores(shift), rtol=1e-6, atol=1e-6)
    assert fit.log_likelihood == pytest.approx(-start.loss(shift.expand(3, 3), y).sum().item())


def test_a_bound_likelihood_is_fitted_as_the_likelihood_inside():
    x = torch.randn(N, 1)
    y = torch.poisson((0.2 + 0.5 * x[:, 0]).exp())
    seen = y > 0
    fit = fit_linear(create("truncated", likelihood="poisson", lower=0), x[seen], y[seen])
    assert fit.converged and within(fit.coefficients[:, 0], [0.2, 0.5], fit.standard_errors[:, 0])


def test_hazards_per_interval_are_logistic_regressions_of_those_at_risk():
    x = torch.randn(N, 1)
    time = torch.distributions.Exponential((0.5 * x[:, 0]).exp()).sample()
    y = survival_outcome(time.clamp(max=1.5), (time < 1.5).double())
    fit = fit_linear(create("discrete_hazard", intervals=3, measure="interval"), x, y)
    first, second, _ = fit.likelihood.cuts
    assert fit.outputs[0] == f"hazard in (0, {first:g}]" and "exp(Est.)" in str(fit.summary())
    for j, (low, high) in enumerate([(0, first), (first, second)]):
        at_risk = time > low
        died = (time <= high).double()[at_risk]
        logit = fit_linear(create("bernoulli"), x[at_risk], died)
        assert_close(fit.coefficients[:, j], logit.coefficients[:, 0], rtol=1e-6, atol=1e-7)
        assert_close(fit.standard_errors[:, j], logit.standard_errors[:, 0], rtol=1e-6, atol=0)


def test_a_vector_with_one_covariance_is_least_squares_number_by_number():
    x, noise = torch.randn(N, 2), torch.randn(N, 3) @ torch.randn(3, 3)
    y = x @ torch.randn(2, 3) + noise
    fit = fit_linear(create("multivariate_normal", dispersion="constant"), x, y)
    design = torch.cat([torch.ones(N, 1), x], 1)
    expected = torch.linalg.lstsq(design, y).solution
    assert_close(fit.coefficients, expected, rtol=1e-7, atol=1e-8)
    residual = y - design @ expected
    covariance = residual.T @ residual / N
    inverse = torch.linalg.inv(design.T @ design).diagonal()
    errors = (inverse.unsqueeze(1) * covariance.diagonal()).sqrt()
    assert_close(fit.standard_errors, errors, rtol=1e-6, atol=0)
    assert fit.parameters == 9 + 6 and fit.scales["sd 1"] == pytest.approx(covariance[0, 0] ** 0.5)
    held = fit_linear(create("multivariate_normal"), x, y)  # a likelihood that could predict it
    assert held.log_likelihood == pytest.approx(fit.log_likelihood, rel=1e-10)
    assert held.parameters == fit.parameters
    with pytest.raises(UsageError, match="not single numbers"):
        residuals(fit.likelihood, fit.predict_raw(x), y)


@pytest.mark.parametrize("reference", [True, False])
def test_compositions_have_log_ratios_to_the_first_part(reference):
    x, table = torch.randn(N, 1), torch.tensor([[0.0, 0.3, -0.2], [0.0, 0.5, -0.4]])
    mean = (torch.cat([torch.ones(N, 1), x], 1) @ table).softmax(1)
    y = torch.distributions.Dirichlet(15 * mean).sample()
    likelihood = create("dirichlet", dispersion="constant", reference=reference)
    fit = fit_linear(likelihood, x, y, class_names=["sand", "silt", "clay"])
    assert fit.converged and fit.outputs[-2:] == ("silt", "clay") and fit.parameters == 5
    assert within(fit.coefficients[:, -2:], table[:, 1:], fit.standard_errors[:, -2:])
    assert fit.scales["phi"] == pytest.approx(15, rel=0.1)


def test_several_quantiles_grow_from_the_median_and_cover_their_share():
    x = torch.randn(N, 1)
    y = 2 + x[:, 0] + (0.5 * x[:, 0]).exp() * torch.randn(N)
    fit = fit_linear(create("quantiles", levels=[0.1, 0.5, 0.9]), x, y)
    assert fit.outputs == ("median", "0.5 to 0.9", "0.5 to 0.1") and fit.aic is None
    quantiles = fit.likelihood.quantiles(fit.predict_raw(x))
    below = (y.unsqueeze(1) < quantiles).double().mean(0)
    assert_close(below, torch.tensor([0.1, 0.5, 0.9]), rtol=0, atol=0.01)
    assert "no quantile residuals" in refusal(fit, x, y)


def refusal(fit, x, y):
    with pytest.raises(UsageError) as error:
        residuals(fit.likelihood, fit.predict_raw(x), y, "quantile")
    return str(error.value)


def test_a_censored_laplace_likelihood_has_its_kink_smoothed_away():
    x = torch.randn(N, 1)
    y = 1 + 0.5 * x[:, 0] + torch.distributions.Laplace(0.0, 0.8).sample((N,))
    outcome = right_censored(y.clamp(max=2.0), (y <= 2.0).double())
    fit = fit_linear(create("censored", likelihood="laplace", options=CONSTANT), x, outcome)
    assert fit.converged and within(fit.coefficients[:, 0], [1.0, 0.5], fit.standard_errors[:, 0])
    assert fit.scales["b"] == pytest.approx(0.8, rel=0.1)
    likelihood, design = fit.likelihood, torch.cat([torch.ones(N, 1), x], 1)
    for step in 1e-3 * torch.randn(20, 2):  # nothing near it is better
        raw = (design @ (fit.coefficients[:, 0] + step)).unsqueeze(1)
        assert -likelihood.loss(raw, outcome).sum().item() < fit.log_likelihood


def test_what_the_rows_say_nothing_of_is_named():
    """With one trial in every row beta-binomial is Bernoulli, whatever phi."""
    x, success = torch.randn(200, 1), (torch.rand(200) < 0.4).double()
    y = torch.stack([success, torch.ones(200)], 1)
    fit = fit_linear(create("beta_binomial", dispersion="constant"), x, y)
    logit = fit_linear(create("bernoulli"), x, success)
    assert_close(fit.coefficients, logit.coefficients, rtol=1e-6, atol=1e-8)
    assert "do not identify a constant of beta_binomial" in fit.messages[0]
