import copy

import numpy as np
import pytest
import torch
from sklearn.metrics import mean_pinball_loss
from torch.testing import assert_close

from ansatz.likelihoods import MAE, Quantiles
from ansatz.likelihoods.quantiles import weighted_quantiles

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def fitted(y, weight=None, **options):
    likelihood, weight = Quantiles(**options), torch.ones(len(y)) if weight is None else weight
    likelihood.check(y)
    likelihood.observe(y, weight)
    return likelihood, *likelihood.start(y, weight)


def test_the_loss_is_the_sum_of_sklearns_pinball_losses():
    likelihood, raw, y = Quantiles(), torch.randn(20, 5), torch.randn(20)
    q = likelihood.quantiles(raw)
    exact = sum(mean_pinball_loss(y, q[:, i], alpha=a) for i, a in enumerate(LEVELS))
    assert likelihood.loss(raw, y).mean().item() == pytest.approx(exact)
    assert (likelihood.loss(raw, y) >= 0).all()  # with the wrong sign it is not


def test_the_median_alone_is_half_the_absolute_error():
    likelihood, raw, y = Quantiles(levels=[0.5]), torch.randn(9, 1), torch.randn(9)
    assert_close(likelihood.loss(raw, y), MAE().loss(raw, y) / 2)
    assert_close(likelihood.point(raw), raw[:, 0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_quantiles_never_cross(dtype):
    raw = (100 * torch.randn(500, 5)).to(dtype)
    q = Quantiles(levels=[0.01, 0.5, 0.6, 0.9, 0.99]).to(dtype).quantiles(raw)
    assert (q.diff(dim=-1) >= 0).all()
    assert_close(q[:, 1], raw[:, 0])


def test_the_start_is_the_empirical_quantiles():
    y = torch.randn(100).exp()
    likelihood, shift, scale = fitted(y)
    q = likelihood.quantiles(shift)
    exact = np.quantile(y, LEVELS, method="averaged_inverted_cdf")
    assert_close(q, torch.as_tensor(exact))
    assert (scale > 0).all()
    # between two outcomes, where the loss is flat: a minimum
    leaf = shift.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(likelihood.loss(leaf.expand(100, -1), y).mean(), leaf)
    assert_close(gradient, torch.zeros(5), atol=1e-12, rtol=0)


def test_the_minimiser_covers_its_level_in_new_data():
    y = torch.randn(20_000)
    likelihood, shift, _ = fitted(y[:10_000])
    q = likelihood.quantiles(shift)
    share = (y[10_000:, None] <= q).double().mean(0)
    sd = (torch.tensor(LEVELS) * (1 - torch.tensor(LEVELS)) * 2 / 10_000).sqrt()
    assert ((share - torch.tensor(LEVELS)).abs() < 5 * sd).all()


def test_weights_are_repetitions_and_unobserved_rows_may_be_nan():
    y, weight = torch.randn(40), torch.randint(0, 4, (40,)).double()
    again = y.repeat_interleave(weight.long())
    _, *repeated = fitted(again)
    y[weight == 0] = torch.nan
    likelihood = Quantiles()
    likelihood.observe(y, weight)
    assert_close(likelihood.start(y, weight), tuple(repeated))


def test_several_targets_are_several_models_and_survive_saving():
    y = torch.stack([torch.randn(50), 9 + 5 * torch.rand(50)], 1)
    likelihood, shift, scale = fitted(y)
    assert shift.shape == scale.shape == (2, 5)
    for k in range(2):
        one, one_shift, one_scale = fitted(y[:, k])
        assert_close((shift[k], scale[k]), (one_shift, one_scale))
        raw = shift.expand(50, 2, 5)
        assert_close(likelihood.loss(raw, y)[:, k], one.loss(raw[:, k], y[:, k]))
        assert_close(likelihood.training_loss(raw, y)[:, k], one.training_loss(raw[:, k], y[:, k]))
    fresh = Quantiles(**likelihood.options)
    fresh.load_state_dict(likelihood.state_dict())
    assert torch.equal(fresh.loss(raw, y), likelihood.loss(raw, y))
    assert torch.equal(copy.deepcopy(likelihood).loss(raw, y), likelihood.loss(raw, y))


@pytest.mark.parametrize("rows", [1, 2, 20])
def test_equal_outcomes_do_not_break_it(rows):
    y = torch.full((rows,), 3.0)
    likelihood, shift, scale = fitted(y)
    assert shift.isfinite().all() and (scale > 0).all()
    assert_close(likelihood.quantiles(shift), torch.full((5,), 3.0), atol=1e-5, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_extreme_raw_numbers_give_finite_losses_and_gradients(dtype):
    sizes = torch.tensor([0.0, 50.0, -50.0, 1e4, -1e4])
    raw = torch.cartesian_prod(sizes, sizes)
    raw = torch.cat([raw, raw.flip(-1), raw[:, :1]], 1).to(dtype).requires_grad_()
    terms = Quantiles().to(dtype).loss(raw, torch.full((len(raw),), 1e6, dtype=dtype))
    (gradient,) = torch.autograd.grad(terms.sum(), raw)
    assert terms.isfinite().all() and gradient.isfinite().all()


def test_gradient_of_the_loss():
    raw, y = torch.randn(6, 5).requires_grad_(), torch.randn(6)
    assert torch.autograd.gradcheck(lambda raw: Quantiles().loss(raw, y), raw)


def test_an_interval_takes_its_ends_from_the_levels_only():
    likelihood, raw = Quantiles(), torch.randn(4, 5)
    q = likelihood.quantiles(raw)
    for level, i, j in ((0.9, 0, 4), (0.5, 1, 3)):
        lower, upper = likelihood.interval(raw, level)
        assert torch.equal(lower, q[:, i]) and torch.equal(upper, q[:, j])
    with pytest.raises(ValueError, match=r"got level 0.8. Available: 0.9, 0.5"):
        likelihood.interval(raw, 0.8)


def test_it_has_no_density():
    assert not Quantiles().has_distribution
    with pytest.raises(TypeError, match="is a loss, not a likelihood"):
        Quantiles().distribution(torch.zeros(1, 5))


@pytest.mark.parametrize("levels", [[], [0.5, 0.1], [0.1, 0.5, 0.5], [0.0, 0.5], [0.2, 0.8]])
def test_levels_are_ascending_and_hold_the_median(levels):
    with pytest.raises(ValueError, match="levels must"):
        Quantiles(levels=levels)


def test_levels_are_remembered_as_a_json_value():
    assert Quantiles(levels=(0.5, 0.9)).options == {"levels": [0.5, 0.9]}
    assert Quantiles().options == {}


def test_weighted_quantiles_are_numpys_of_repeated_rows():
    y, weight = torch.randn(30, 2), torch.randint(1, 5, (30,)).double()
    again = y.repeat_interleave(weight.long(), 0)
    exact = np.quantile(again, LEVELS, axis=0, method="averaged_inverted_cdf")
    assert_close(weighted_quantiles(y, weight, LEVELS), torch.as_tensor(exact.T.copy()))
