import csv
import math
import os
from pathlib import Path

import mpmath
import numpy as np
import pytest
import torch
from scipy import special
from torch.testing import assert_close

from ansatz.errors import DataError
from ansatz.likelihoods import Normal, VonMises, VonMisesDistribution
from ansatz.likelihoods.special.roots import find_root
from ansatz.likelihoods.special.von_mises import (
    concentration,
    log_von_mises_tail,
    resultant,
    resultant_gap,
)

KAPPAS = [0.0, 1e-9, 0.01, 1.0, 7.0, 21.0, 60.0, 1e4, 1e8]


def von_mises(kappa, mean=2.0):
    kappa = torch.as_tensor(kappa)
    return VonMisesDistribution(kappa * math.cos(mean), kappa * math.sin(mean))


def exact_log_tail(x, kappa):
    with mpmath.workdps(30):
        x, k = mpmath.mpf(x), mpmath.mpf(kappa)
        width = 1 / mpmath.sqrt(1 + k * mpmath.sin(x) ** 2 * k + k)
        ends = [x, *(x + width * m for m in (1, 3, 8, 20, 60) if x + width * m < mpmath.pi)]
        integral = mpmath.quad(
            lambda s: mpmath.exp(k * (mpmath.cos(s) - mpmath.cos(x))), [*ends, mpmath.pi]
        )
        norm = mpmath.log(2 * mpmath.pi * mpmath.besseli(0, k))
        return float(mpmath.log(integral) + k * mpmath.cos(x) - norm)


@pytest.mark.parametrize("kappa", KAPPAS)
def test_the_tail_is_mpmaths_for_every_concentration_and_angle(kappa):
    x = torch.tensor([0.0, 1e-3, 0.3, 1.0, 2.0, 3.0, 3.14])
    exact = torch.tensor([exact_log_tail(v, kappa) for v in x.tolist()])
    assert_close(log_von_mises_tail(x, torch.tensor(kappa)), exact, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kappa", [0.05, 1.5, 30.0, 3e4])
def test_the_tail_is_differentiable_in_angle_and_concentration(kappa):
    x = (torch.tensor([0.1, 0.5, 1.0, 3.0]) / max(1.0, kappa) ** 0.5).requires_grad_()
    k = torch.full((4,), kappa, requires_grad=True)
    step = 1e-4 * min(1.0, 1 / kappa**0.5)
    assert torch.autograd.gradcheck(log_von_mises_tail, (x, k), eps=step, atol=1e-5, rtol=1e-4)


def test_there_is_no_second_derivative_of_the_tail():
    x = torch.tensor(1.0, requires_grad=True)
    with pytest.raises(RuntimeError, match="first derivatives only"):
        torch.autograd.grad(log_von_mises_tail(x, torch.tensor(1.0)), x, create_graph=True)


def test_concentration_zero_is_uniform():
    likelihood, y = von_mises(0.0), torch.linspace(-3, 3, 7)
    assert_close(likelihood.log_prob(y), torch.full((7,), -math.log(2 * math.pi)))
    assert_close(likelihood.cdf(y), 0.5 + y / (2 * math.pi))  # cut at -pi, as the mean is called 0
    assert likelihood.variance.item() == 1
    assert likelihood.entropy.item() == pytest.approx(math.log(2 * math.pi))


def test_everything_is_periodic():
    likelihood, y = von_mises([0.5, 40.0]), torch.tensor([1.0, 2.5])
    for method in (likelihood.log_prob, likelihood.cdf, likelihood.log_survival, likelihood.crps):
        assert_close(method(y + 2 * math.pi), method(y))
        assert_close(method(y - 2 * math.pi), method(y))


def test_a_large_concentration_is_normal():
    kappa = 1e8
    distribution = VonMisesDistribution(torch.tensor([kappa]), torch.tensor([0.0]))
    normal = Normal(dispersion=1e-4).distribution(torch.zeros(1, 1))
    y = torch.tensor([2e-4])
    for method in ("log_prob", "log_cdf", "log_survival", "crps"):
        assert_close(
            getattr(distribution, method)(y), getattr(normal, method)(y), rtol=1e-6, atol=1e-9
        )
    assert_close(
        distribution.icdf(torch.tensor([0.9])), normal.icdf(torch.tensor([0.9])), rtol=1e-7, atol=0
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_loss_and_both_derivatives_are_smooth_at_zero(dtype):
    raw, y = torch.zeros(1, 2, dtype=dtype, requires_grad=True), torch.tensor([0.7], dtype=dtype)
    loss = VonMises().to(dtype).loss(raw, y).sum()
    (gradient,) = torch.autograd.grad(loss, raw, create_graph=True)
    assert_close(gradient.detach()[0], -torch.stack([y.cos(), y.sin()]).squeeze())
    hessian = torch.stack(
        [torch.autograd.grad(g, raw, retain_graph=True)[0][0] for g in gradient[0]]
    )
    assert_close(hessian, torch.eye(2, dtype=dtype) / 2)  # I0(k) = 1 + k^2/4 + ...


def test_the_tails_have_finite_gradients_at_zero():
    raw = torch.zeros(3, 2, requires_grad=True)
    distribution = VonMises().distribution(raw)
    (gradient,) = torch.autograd.grad(
        distribution.log_cdf(torch.tensor([-1.0, 0.0, 1.0])).sum(), raw
    )
    assert gradient.isfinite().all()


def test_the_loss_of_a_sharp_likelihood_keeps_its_digits_in_single_precision():
    raw, y = (
        torch.tensor([[3e5, 4e5]]),
        torch.atan2(torch.tensor([4.0]), torch.tensor([3.0])) + 1e-3,
    )
    exact = VonMises().loss(raw, y)
    single = VonMises().float().loss(raw.float(), y.float())
    # the outcome itself is known to 6e-8 rad only, which moves the loss by kappa 1e-3 6e-8
    assert single.double().item() == pytest.approx(exact.item(), abs=5e5 * 1e-3 * 3e-7)


def test_beyond_the_limit_the_concentration_grows_as_a_logarithm():
    likelihood = VonMises()
    likelihood.limit.value = torch.tensor(100.0)
    kappa = likelihood.distribution(torch.tensor([[0.0, 99.0], [0.0, 100 * math.e]])).kappa
    assert_close(kappa, torch.tensor([99.0, 200.0]))


def test_wind_directions_have_their_known_maximum_likelihood():
    folder = Path(os.environ.get("ANSATZ_DATA", "/nowhere")) / "wind-direction"
    if not folder.exists():
        pytest.skip("ANSATZ_DATA does not hold wind-direction")
    with open(folder / "col_de_la_roa_wind.csv") as file:
        y = torch.tensor([float(line[-1]) for line in list(csv.reader(file))[1:]])
    likelihood, weight = VonMises(), torch.ones(len(y))
    likelihood.check(y)
    likelihood.observe(y, weight)
    shift, _ = likelihood.start(y, weight)
    found = likelihood.distribution(shift)
    assert found.kappa.item() == pytest.approx(1.76786, abs=5e-6)
    assert found.mean.item() == pytest.approx(0.29217, abs=5e-6)


def test_a_cluster_across_the_cut_is_one_cluster():
    y = torch.remainder(torch.randn(200) * 0.05, 2 * math.pi)  # both ends of [0, 2 pi)
    likelihood, weight = VonMises(), torch.ones(200)
    likelihood.observe(y, weight)
    found = likelihood.distribution(likelihood.start(y, weight)[0])
    assert found.mean.abs() < 0.02
    assert found.kappa.item() == pytest.approx(1 / 0.05**2, rel=0.3)


def test_an_interval_is_an_arc_around_the_mean():
    likelihood = von_mises([0.3, 2.0, 500.0], mean=3.0)
    lower, upper = likelihood.interval(0.8)
    assert_close((lower + upper) / 2, likelihood.mean)
    assert (upper > lower).all()
    assert (upper > math.pi)[0]  # it goes on over the cut of [-pi, pi]
    assert_close(likelihood.log_interval(lower, upper).exp(), torch.full((3,), 0.8))
    rest = likelihood.log_interval(upper, lower + 2 * math.pi).exp()
    assert_close(rest, torch.full((3,), 0.2))
    assert_close(likelihood.log_interval(lower, lower + 2 * math.pi), torch.zeros(3))


@pytest.mark.parametrize("kappa", [0.0, 1e-300, 1e-20, 1e-6, 0.7, 2e3, 5e7, 1e15])
def test_samples_have_the_right_spread_and_never_hang(kappa):
    n = 20_000
    likelihood = von_mises(kappa)
    y = likelihood.sample((n,), torch.Generator().manual_seed(0))
    assert (y.abs() <= math.pi + 1e-12).all()
    u = likelihood.cdf(y).sort().values
    gap = (u - torch.arange(1, n + 1) / n).abs().max()
    assert gap < math.sqrt(math.log(2e9) / (2 * n)) + 1 / n  # Dvoretzky-Kiefer-Wolfowitz


def test_a_concentration_that_is_nan_gives_samples_that_are_nan():
    distribution = VonMisesDistribution(torch.tensor([math.nan, 1.0]), torch.zeros(2))
    assert distribution.sample((4,)).isnan().all(0).tolist() == [True, False]


@pytest.mark.parametrize("kappa", [0.0, 1e-3, 1.0, 30.0, 5000.0])
def test_crps_is_its_fourier_series(kappa):
    """d(u) = pi/2 - 4/pi sum over odd j of cos(j u)/j^2, and E cos(j T) = I_j / I_0."""
    t, j = np.array([0.0, 0.1, 1.0, 2.5, 3.1]), np.arange(1, 4001, 2)
    a = special.ive(j, kappa) / special.ive(0, kappa)
    series = ((a * np.cos(np.outer(t, j)) - a**2 / 2) / j**2).sum(1)
    likelihood = von_mises([kappa] * 5)
    found = likelihood.crps(likelihood.mean + torch.as_tensor(t))
    assert_close(found, torch.as_tensor(np.pi / 4 - 4 / np.pi * series), rtol=1e-10, atol=1e-12)


def test_gradient_of_crps():
    raw, y = torch.randn(5, 2).requires_grad_(), torch.randn(5)
    assert torch.autograd.gradcheck(lambda raw: VonMises().distribution(raw).crps(y), raw)


@pytest.mark.parametrize("kappa", [1e-6, 0.3, 2.0, 50.0, 999.0, 1001.0, 1e7, 1e13])
def test_the_concentration_of_a_resultant_is_found_again(kappa):
    k = torch.tensor(kappa)
    assert_close(concentration(resultant_gap(k)), k, rtol=1e-9 if kappa > 1e-3 else 1e-7, atol=0)
    with mpmath.workdps(40):
        gap = 1 - mpmath.besseli(1, kappa) / mpmath.besseli(0, kappa)
    assert resultant_gap(k).item() == pytest.approx(float(gap), rel=1e-12)
    assert resultant(k).item() == pytest.approx(1 - float(gap), rel=1e-12)


def test_the_root_of_a_function_with_a_flat_middle_is_found():
    low, high = torch.full((3,), -5.0), torch.full((3,), 5.0)
    goal = torch.tensor([-20.0, 1e-3, 30.0])
    x = find_root(lambda x, c: (x**3 - c, 3 * x**2), low, high, torch.zeros(3), goal)
    assert_close(x**3, goal, rtol=1e-12, atol=1e-14)


def test_degrees_are_refused_with_advice():
    with pytest.raises(DataError, match=r"radians.*got 270.0 at y\[1\].*deg2rad"):
        VonMises().check(torch.tensor([1.0, 270.0]))
    VonMises().check(torch.tensor([-math.pi, 0.0, 2 * math.pi]))
