"""What has no maximum-likelihood estimate is said in words, with the variables' names."""

import pytest
import torch
from scipy.optimize import linprog
from torch.testing import assert_close

from ansatz.likelihoods import create
from ansatz.linear import fit_linear

N = 80


def normal():
    return create("normal", dispersion="constant")


def separated(x, y):
    """Konis's linear programme: is there b with (2y - 1) x.b >= 0 everywhere, not all 0?"""
    design = torch.cat([torch.ones(len(x), 1), x], 1) * (2 * y - 1).unsqueeze(1)
    found = linprog(
        -design.sum(0).numpy(),
        A_ub=-design.numpy(),
        b_ub=torch.zeros(len(x)).numpy(),
        bounds=(-1, 1),
    )
    return -found.fun > 1e-9


def test_complete_separation_is_named():
    x = torch.randn(N, 3)
    y = (x[:, 1] > 0.1).double()
    assert separated(x, y)
    fit = fit_linear(create("bernoulli"), x, y, feature_names=["a", "dose", "c"])
    assert not fit.converged
    (message,) = fit.messages
    assert message.startswith("separation: 'dose'")
    assert "standard errors are meaningless" in message and f"{N} rows" in message
    assert fit.coefficients.isfinite().all()  # the last iterate
    assert fit.log_likelihood > -0.1 * N  # of 0.69 N for the coin


def test_a_level_with_one_outcome_only_is_quasi_separation_and_only_its_column_is_named():
    x = torch.randn(N, 2)
    x[:, 1] = (torch.arange(N) < 9).double()
    y = (torch.rand(N) < 0.5).double()
    y[:9] = 1
    y[9:11] = torch.tensor([0.0, 1.0])
    assert separated(x, y)
    fit = fit_linear(create("bernoulli"), x, y, feature_names=["age", "rare"])
    (message,) = fit.messages
    assert message.startswith("separation: 'rare' can separate 9 rows") and "'age'" not in message
    rest = fit_linear(create("bernoulli"), x[9:, :1], y[9:])
    assert_close(fit.coefficients[1], rest.coefficients[1], rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("seed", range(20))
def test_separation_is_said_exactly_when_it_holds(seed):
    """Small random tables: about half are separated; the linear programme decides."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(12, 3, generator=generator)
    y = (torch.rand(12, generator=generator) < 0.5).double()
    y[:2] = torch.tensor([0.0, 1.0])
    fit = fit_linear(create("bernoulli"), x, y)
    assert any(m.startswith("separation") for m in fit.messages) == separated(x, y)
    assert fit.converged != separated(x, y)


def test_strong_but_overlapping_classes_are_no_separation():
    x = torch.linspace(-1, 1, 400).unsqueeze(1)
    y = (x[:, 0] > 0).double()
    y[199], y[200] = 1, 0  # a single overlap
    fit = fit_linear(create("bernoulli"), x, y)
    assert fit.converged and fit.messages == ()


def test_a_separated_class_among_three_is_named():
    x = torch.randn(N, 2)
    y = torch.randint(0, 2, (N,))
    y[x[:, 1] > 1] = 2
    fit = fit_linear(create("categorical", reference=True), x, y, feature_names=["a", "signal"])
    assert not fit.converged and fit.messages[0].startswith("separation: 'signal'")


def test_one_class_alone_has_no_estimate():
    x = torch.randn(10, 1)
    fit = fit_linear(create("bernoulli"), x, torch.ones(10))
    assert not fit.converged and "(Intercept) alone" in fit.messages[0]


def test_a_level_without_events_is_named():
    x = torch.randn(N, 2)
    x[:, 1] = (torch.arange(N) < 12).double()
    y = torch.poisson(torch.full((N,), 3.0))
    y[:12] = 0
    fit = fit_linear(create("poisson"), x, y, feature_names=["age", "closed"])
    (message,) = fit.messages
    assert message.startswith("no maximum-likelihood estimate exists: along 'closed'")
    assert "12 rows" in message and not fit.converged
    rest = fit_linear(create("poisson"), x[12:, :1], y[12:])
    assert_close(fit.coefficients[1], rest.coefficients[1], rtol=1e-3, atol=1e-4)


def test_counts_that_are_all_zero_have_no_estimate():
    fit = fit_linear(create("poisson"), torch.randn(20, 1), torch.zeros(20))
    assert not fit.converged and "no maximum-likelihood estimate exists" in fit.messages[0]


def test_an_aliased_column_is_dropped_named_and_explained():
    x = torch.randn(N, 4)
    x[:, 2] = 2 * x[:, 0] - x[:, 1] + 7
    y = x[:, 0] + x[:, 3] + torch.randn(N)
    fit = fit_linear(normal(), x, y, feature_names=["a", "b", "c", "d"])
    without = fit_linear(normal(), x[:, [0, 1, 3]], y)
    assert fit.dropped == ("c",) and "'c' (= 2 a - b)" in fit.messages[0]
    assert fit.coefficients[3].isnan().all() and fit.standard_errors[3].isnan().all()
    keep = [0, 1, 2, 4]
    assert_close(fit.coefficients[keep], without.coefficients)
    assert_close(fit.standard_errors[keep], without.standard_errors)
    assert_close(fit.predict_raw(x), without.predict_raw(x[:, [0, 1, 3]]))
    assert fit.rank == 4 and fit.converged


def test_a_constant_column_repeats_the_intercept():
    x = torch.cat([torch.full((N, 1), 1e6), torch.randn(N, 1)], 1)
    fit = fit_linear(normal(), x, torch.randn(N), feature_names=["year", "x"])
    assert fit.dropped == ("year",) and "'year' (= a constant)" in fit.messages[0]


def test_every_level_of_a_factor_with_an_intercept_drops_the_last():
    level = torch.arange(N) % 3
    x = torch.nn.functional.one_hot(level, 3).double()
    fit = fit_linear(normal(), x, torch.randn(N), feature_names=["red", "green", "blue"])
    assert fit.dropped == ("blue",)


def test_more_columns_than_rows_is_saturated_and_said():
    x, y = torch.randn(6, 10), torch.randn(6)
    fit = fit_linear(normal(), x, y)
    assert len(fit.dropped) == 5 and fit.rank == 6 and fit.df_residual == 0
    assert any("11 coefficients for 6 rows" in message for message in fit.messages)
    assert_close(fit.predict_raw(x)[:, 0], y)
    assert fit.standard_errors.isnan().all() and str(fit.summary())


def test_a_single_row_is_reproduced():
    fit = fit_linear(normal(), torch.ones(1, 2), torch.tensor([3.0]))
    assert_close(fit.predict_raw(torch.ones(1, 2)), torch.tensor([[3.0]]))
    assert fit.messages


def test_duplicated_rows_are_weights():
    x, y = torch.randn(N, 2), torch.randn(N)
    twice = fit_linear(normal(), x.repeat(2, 1), y.repeat(2))
    assert_close(twice.coefficients, fit_linear(normal(), x, y).coefficients)
    assert twice.messages == ()


def test_a_perfect_fit_says_that_the_spread_is_at_its_floor():
    x = torch.randn(N, 1)
    fit = fit_linear(normal(), x, 2 * x[:, 0] + 1)
    assert_close(fit.coefficients[:, 0], torch.tensor([1.0, 2.0]))
    assert any("went to its least value" in message for message in fit.messages)


def test_a_class_without_rows_is_no_crash():
    x, y = torch.randn(N, 1), torch.randint(0, 2, (N,))
    likelihood = create("categorical", reference=True)
    fit = fit_linear(likelihood, x, y, class_names=["a", "b", "never"])
    assert fit.outputs == ("b", "never") and fit.messages and not fit.converged


def test_quantiles_at_several_levels_have_no_standard_errors_and_a_note_why():
    x = torch.randn(N, 1)
    fit = fit_linear(create("quantiles", levels=[0.25, 0.5]), x, torch.randn(N))
    assert fit.standard_errors.isnan().all() and "quantile_regression" in fit.messages[0]
