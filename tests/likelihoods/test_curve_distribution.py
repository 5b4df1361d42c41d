import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch.testing import assert_close

from ansatz.likelihoods import CurveDistribution, Distribution

TIMES = torch.tensor([0.5, 1.0, 2.5, 4.0])


def curves(interpolation):
    survival = torch.tensor([[0.9, 0.7, 0.4, 0.1], [1.0, 0.95, 0.9, 0.6], [0.5, 0.5, 0.2, 0.2]])
    return CurveDistribution(TIMES, survival, interpolation=interpolation)


def by_hand(curve, row, t):
    """S(t) of one row."""
    knots, values = [0.0, *TIMES.tolist()], [1.0, *curve.survival[row].tolist()]
    if curve.interpolation == "step":
        return values[np.searchsorted(knots, t, side="right") - 1]
    if t <= knots[-1]:
        return math.exp(np.interp(t, knots, np.log(values)))
    rate = (math.log(values[-2]) - math.log(values[-1])) / (knots[-1] - knots[-2])
    return values[-1] * math.exp(-rate * (t - knots[-1]))


both = pytest.mark.parametrize("interpolation", ["step", "linear"])


@both
def test_survival_is_the_interpolated_curve(interpolation):
    curve = curves(interpolation)
    for t in (-1.0, 0.0, 0.2, 0.5, 0.7, 1.0, 3.0, 4.0, 6.0):
        exact = torch.tensor([by_hand(curve, row, max(t, 0.0)) for row in range(3)])
        y = torch.full((3,), t)
        assert_close(curve.log_survival(y).exp(), exact)
        assert_close(curve.cdf(y), 1 - exact)
        assert_close(curve.log_cdf(y).exp(), 1 - exact)


def integral(f, end, *kinks):
    cuts = sorted({0.0, *(t for t in [*TIMES.tolist(), *kinks] if t < end), end})
    return sum(integrate.quad(f, a, b - 1e-12)[0] for a, b in pairwise(cuts))


@both
def test_areas_are_integrals(interpolation):
    curve = curves(interpolation)
    y = torch.tensor([0.7, 3.0, 5.0])
    for row in range(3):

        def survival(t, row=row):
            return by_hand(curve, row, t)

        at = y[row].item()
        for horizon in (0.3, 1.0, 3.3, 4.0, 5.5):
            assert curve.restricted_mean(horizon)[row].item() == pytest.approx(
                integral(survival, horizon, at), abs=1e-8
            )
        mean = integral(survival, 4.0, at)
        second = integral(lambda t, row=row: 2 * t * by_hand(curve, row, t), 4.0, at)
        score = integral(
            lambda t, at=at, row=row: (1 - by_hand(curve, row, t) - (t >= at)) ** 2, 4.0, at
        )
        assert curve.mean[row].item() == pytest.approx(mean, abs=1e-8)
        assert curve.variance[row].item() == pytest.approx(second - mean**2, abs=1e-7)
        assert curve.crps(y)[row].item() == pytest.approx(score, abs=1e-8)


@both
def test_icdf_is_the_first_time_that_reaches_the_level(interpolation):
    curve = curves(interpolation)
    q = torch.tensor([[0.0, 0.0, 0.0], [0.3, 0.1, 0.4], [0.65, 0.2, 0.7]])
    y = curve.icdf(q)
    assert (curve.cdf(y) >= q - 1e-12).all()
    before = curve.cdf(y - 1e-9)
    assert ((before < q) | (y == 0)).all()
    if interpolation == "linear":
        assert_close(curve.cdf(y), q)
    else:
        assert_close(curve.median, torch.tensor([2.5, torch.inf, 0.5]))


def test_a_flat_end_is_never_left():
    curve = curves("linear")
    assert curve.icdf(torch.full((3,), 0.9))[2].isinf()
    assert curve.icdf(torch.full((3,), 0.9))[1].isfinite()
    assert curve.icdf(torch.full((3,), 1.5)).isnan().all()


def test_a_grid_of_an_exponential_is_the_exponential():
    times = torch.linspace(0.25, 5, 20)
    distribution = CurveDistribution(
        times, (-0.7 * times).exp().expand(5, -1), interpolation="linear"
    )
    exact = stats.expon(scale=1 / 0.7)
    y = torch.tensor([0.1, 0.25, 3.3, 5.0, 11.0])
    assert_close(distribution.log_prob(y), torch.as_tensor(exact.logpdf(y)))
    assert_close(distribution.log_survival(y), torch.as_tensor(exact.logsf(y)))
    assert_close(distribution.icdf(distribution.cdf(y)), y)
    assert_close(distribution.median, torch.full((5,), exact.median()))


def test_the_density_of_a_linear_hazard_integrates_to_the_cdf():
    curve = curves("linear")
    t = torch.linspace(0, 3.9, 40001)[1:] - 3.9 / 80000
    density = curve.log_prob(t.unsqueeze(1).expand(-1, 3)).exp()
    assert_close(density.sum(0) * 3.9 / 40000, curve.cdf(torch.full((3,), 3.9)), rtol=0, atol=1e-4)


def test_steps_have_no_density():
    with pytest.raises(TypeError, match="no density"):
        curves("step").log_prob(torch.ones(3))


@both
def test_samples_follow_the_curve(interpolation):
    curve = curves(interpolation)
    y = curve.sample((20_000,), torch.Generator().manual_seed(0))
    for t in (0.5, 0.8, 2.5, 3.9):
        share = (y > t).double().mean(0)
        exact = curve.log_survival(torch.full((3,), t)).exp()
        assert ((share - exact).abs() < 5 * (0.25 / 20_000) ** 0.5).all()


def test_gradients_reach_the_curve():
    hazard = torch.rand(3, 4).cumsum(-1).requires_grad_()
    y = torch.tensor([0.3, 2.0, 6.0])
    for method in ("log_survival", "log_prob", "crps"):

        def function(hazard, method=method):
            likelihood = CurveDistribution.of_hazard(TIMES, hazard, interpolation="linear")
            return getattr(likelihood, method)(y)

        assert torch.autograd.gradcheck(function, hazard)
    q = torch.tensor([0.2, 0.5, 0.3])
    assert torch.autograd.gradcheck(
        lambda h: CurveDistribution.of_hazard(TIMES, h, interpolation="linear").icdf(q), hazard
    )


def test_is_a_distribution_with_intervals():
    low, high = curves("linear").interval(0.5)
    assert isinstance(curves("step"), Distribution)
    assert (low < high).all()


def test_wrong_shapes_are_named():
    with pytest.raises(ValueError, match=r"got \(4,\) and \(2, 3\)"):
        CurveDistribution(TIMES, torch.ones(2, 3))
    with pytest.raises(ValueError, match="interpolation must be"):
        CurveDistribution(TIMES, torch.ones(4), interpolation="cubic")
