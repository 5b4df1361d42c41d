import math

import numpy as np
import pytest
import torch
from scipy import integrate, optimize, special, stats
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.likelihoods import Barron, BarronDistribution, Huber, Tukey, create
from ansatz.likelihoods.special.general_loss import log_partition, shaped_loss

ALPHAS = [0.0, 0.05, 0.7, 1.0, 1.5, 1.99, 2.0]


def general_loss(z, alpha):
    return shaped_loss(z, alpha, 2 - alpha)


def rho(x, alpha):
    """Equation 8 of Barron (2019), as printed."""
    z = x**2
    if alpha == 2:
        return z / 2
    if alpha == 0:
        return np.log1p(z / 2)
    if alpha == -math.inf:
        return 1 - np.exp(-z / 2)
    return abs(alpha - 2) / alpha * ((z / abs(alpha - 2) + 1) ** (alpha / 2) - 1)


# Tukey


def test_tukey_is_statsmodels():
    """M110."""
    norms = pytest.importorskip("statsmodels.robust.norms")
    y = torch.linspace(-8, 8, 33)
    theirs = norms.TukeyBiweight(c=4.685).rho(y.numpy())
    assert_close(Tukey().loss(torch.zeros(33, 1), y), torch.as_tensor(theirs))


def test_tukey_is_half_the_square_near_zero_and_flat_beyond_c():
    """M110: psi(r) = 0 for |r| > c."""
    y = torch.tensor([1e-5, 5.0, 1e6]).requires_grad_()
    loss = Tukey().loss(torch.zeros(3, 1), y)
    assert loss[0].item() == pytest.approx(0.5e-10, rel=1e-8)
    assert_close(loss[1:], torch.full((2,), 4.685**2 / 6))
    (slope,) = torch.autograd.grad(loss.sum(), y)
    assert slope[1:].tolist() == [0.0, 0.0]


def test_tukeys_location_is_the_nearest_minimum_to_hubers():
    y = torch.cat([torch.randn(80), 50 + torch.randn(30)])
    likelihood, weight = Tukey(), torch.ones(110)
    likelihood.observe(y, weight)
    (location,), _ = likelihood.start(y, weight)
    s = likelihood.huber.unit.value
    near = optimize.minimize_scalar(
        lambda m: Tukey(scale=s.item()).loss(torch.full((110, 1), m), y).sum().item(),
        bounds=(-1, 3),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert location.item() == pytest.approx(near.x, abs=1e-6)
    shift = location.clone().requires_grad_()
    loss = likelihood.loss(shift.expand(110, 1), y).sum()
    assert torch.autograd.grad(loss, shift)[0].abs() < 1e-9


def test_tukeys_constant_counts_in_median_absolute_deviations():
    y = torch.cat([torch.randn(999), torch.tensor([1e9])])
    likelihood = Tukey()
    likelihood.observe(y, torch.ones(1000))
    exact = 1.4826 * (y - y.median()).abs().median()
    assert likelihood.huber.unit.value.item() == pytest.approx(exact.item(), rel=1e-2)


def group_effect(warm_up):
    """What gradient descent finds where a group's mean lies far beyond c of the constant model."""
    generator = torch.Generator().manual_seed(3)
    group = (torch.arange(100) % 5 < 2).double()
    y = 10 * group + 0.1 * torch.randn(100, generator=generator)
    y[::7] += 40  # outliers
    likelihood = Tukey(scale=0.1, warm_up=warm_up)
    shift, _ = likelihood.start(y, torch.ones(100))
    likelihood.relax_shapes()
    beta = torch.zeros(2, requires_grad=True)
    step = torch.optim.Adam([beta], lr=0.05)
    for _ in range(400):
        step.zero_grad()
        raw = (shift + beta[0] + beta[1] * group).unsqueeze(1)
        likelihood.training_loss(raw, y).mean().backward()
        step.step()
    return beta[1].item()


def test_a_network_that_starts_from_huber_finds_what_tukey_alone_does_not():
    assert group_effect(warm_up=350) == pytest.approx(10, abs=0.1)
    assert abs(group_effect(warm_up=0)) < 1  # no gradient points there


def test_the_warm_up_ends_in_tukey_and_is_saved():
    likelihood, raw, y = Tukey(warm_up=2), torch.zeros(5, 1), torch.randn(5) * 5
    assert_close(
        likelihood.training_loss(raw, y), likelihood.loss(raw, y)
    )  # nobody asked for a warm-up
    likelihood.relax_shapes()
    assert_close(likelihood.training_loss(raw, y), Huber().loss(raw, y))
    again = Tukey(warm_up=2)
    again.load_state_dict(likelihood.state_dict())
    half = (Huber().loss(raw, y) + likelihood.loss(raw, y)) / 2
    assert_close(again.training_loss(raw, y), half)
    assert_close(again.training_loss(raw, y), likelihood.loss(raw, y))
    with torch.no_grad():
        likelihood.training_loss(raw, y)  # a look does not count
    assert_close(likelihood.training_loss(raw, y), half)


# Barron


@pytest.mark.parametrize("alpha", [*ALPHAS, -0.3, -2.0, -50.0, -math.inf])
def test_barron_is_equation_8(alpha):
    """M112."""
    y = torch.linspace(-30, 30, 61)
    loss = Barron(alpha=alpha, dispersion=2.0).loss(torch.zeros(61, 1), y)
    assert_close(loss, torch.as_tensor(rho(y.numpy() / 2, alpha)), rtol=1e-11, atol=1e-13)


def test_named_special_cases():
    """M113: squares, Charbonnier, Cauchy, Geman and McClure, Welsch."""
    z = torch.linspace(0, 9, 10)
    named = {
        2.0: z / 2,
        1.0: (z + 1).sqrt() - 1,
        0.0: torch.log1p(z / 2),
        -2.0: 2 * z / (z + 4),
        -math.inf: 1 - torch.exp(-z / 2),
    }
    for alpha, exact in named.items():
        assert_close(general_loss(z, torch.tensor(alpha)), exact)


def test_scipys_losses_are_members():
    y = np.linspace(-3, 3, 13)
    z = torch.as_tensor(y**2)
    cost = {
        name: optimize.least_squares(lambda _: y, [0.0], loss=name, max_nfev=1).cost
        for name in ("soft_l1", "cauchy")
    }
    assert general_loss(z, torch.tensor(1.0)).sum().item() == pytest.approx(cost["soft_l1"])
    half = general_loss(2 * z, torch.tensor(0.0)).sum().item() / 2
    assert half == pytest.approx(cost["cauchy"])


@pytest.mark.parametrize("at", [0.0, 1.0])
def test_value_and_derivatives_are_continuous_in_alpha(at):
    z = torch.tensor([1e-6, 0.3, 2.0, 100.0, 1e6])

    def everything(alpha):
        z_, alpha = z.clone().requires_grad_(), torch.full((5,), alpha, requires_grad=True)
        value = general_loss(z_, alpha)
        first = torch.autograd.grad(value.sum(), (z_, alpha), create_graph=True)
        second = torch.autograd.grad(first[1].sum(), alpha)
        return [v.detach() for v in (value, *first, *second)]

    here = everything(at)
    for step in (-1e-9, 1e-9, -1e-13, 1e-13):
        for one, other in zip(here, everything(at + step), strict=True):
            assert_close(other, one, rtol=1e-6, atol=1e-9)


def test_the_limit_at_two_is_the_square():
    z = torch.tensor([1e-6, 0.3, 2.0, 100.0])
    for gap in (1e-6, 1e-9, 1e-15):
        value = general_loss(z, torch.tensor(2 - gap))
        assert_close(value, z / 2, rtol=40 * gap, atol=0)


def test_gradient_in_residual_and_alpha():
    z, alpha = torch.rand(6) * 9, torch.tensor([-3.0, -0.1, 0.0, 0.4, 1.3, 1.95])
    inputs = (z.requires_grad_(), alpha.requires_grad_())
    assert torch.autograd.gradcheck(general_loss, inputs)
    assert torch.autograd.gradgradcheck(general_loss, inputs)


def test_the_partition_function_has_its_closed_values():
    alpha = torch.tensor([2.0, 1.0, 0.0])
    exact = [math.sqrt(2 * math.pi), 2 * math.e * special.k1(1.0), math.pi * math.sqrt(2)]
    assert_close(log_partition(alpha, 2 - alpha).exp(), torch.tensor(exact), rtol=1e-14, atol=0)


@pytest.mark.parametrize("alpha", ALPHAS[1:])
def test_the_partition_function_is_scipys_integral(alpha):
    """In w = log x, where no tail is long."""
    mass, _ = integrate.quad(lambda w: np.exp(w - rho(np.exp(w), alpha)), -40, 60, limit=500)
    a = torch.tensor(alpha)
    assert log_partition(a, 2 - a).exp().item() == pytest.approx(2 * mass, rel=1e-9)


def test_gradient_of_the_partition_function():
    a = torch.tensor([-3.0, 0.0, 2.0], requires_grad=True)

    def log_z(a):
        return log_partition(2 * torch.sigmoid(a), 2 * torch.sigmoid(-a))

    assert torch.autograd.gradcheck(log_z, a)
    assert torch.autograd.gradgradcheck(log_z, a)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 1.7, 2.0])
def test_the_learned_likelihood_normalises_to_one(alpha):
    """M114."""
    distribution = BarronDistribution(torch.tensor(1.0), torch.tensor(0.7), torch.tensor(alpha))
    s = torch.linspace(-40, 40, 2001)  # y = 1 + sinh(s), by the trapezoidal rule
    p = distribution.log_prob(1 + torch.sinh(s)).exp() * torch.cosh(s)
    assert 0.04 * p.sum().item() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("alpha, scipy", [(2.0, stats.norm(1, 2)), (0.0, stats.cauchy(1, 8**0.5))])
def test_its_ends_are_the_normal_and_the_cauchy_likelihood(alpha, scipy):
    y = torch.tensor([-60.0, -30.0, -1.0, 0.9, 1.0, 1.1, 3.5, 40.0])
    distribution = BarronDistribution(torch.ones(8), torch.full((8,), 2.0), torch.tensor(alpha))
    for ours, theirs in (
        (distribution.log_prob, scipy.logpdf),
        (distribution.cdf, scipy.cdf),
        (distribution.log_cdf, scipy.logcdf),
        (distribution.log_survival, scipy.logsf),
    ):
        assert_close(ours(y), torch.as_tensor(theirs(y.numpy())), rtol=1e-10, atol=1e-12)
    q = torch.tensor([1e-10, 1e-3, 0.3, 0.5, 0.6, 0.9, 0.999, 1 - 1e-9])
    assert_close(distribution.icdf(q), torch.as_tensor(scipy.ppf(q.numpy())), rtol=1e-7, atol=1e-10)
    assert distribution.entropy[0].item() == pytest.approx(scipy.entropy())
    if alpha == 2:
        assert distribution.variance[0].item() == pytest.approx(4)


@pytest.mark.parametrize("alpha", [0.05, 0.8, 1.0, 1.9])
def test_cdf_tails_and_quantiles_are_integrals_of_the_density(alpha):
    distribution = BarronDistribution(torch.zeros(6), torch.ones(6), torch.tensor(alpha))
    y = torch.tensor([-25.0, -3.0, -0.4, 0.0, 0.8, 1.2])
    a = torch.tensor(alpha)
    z = log_partition(a, 2 - a).exp().item()
    below = []
    for value in y.abs().tolist():
        ends = (math.log(value) if value else -60.0, 80.0)
        mass, _ = integrate.quad(
            lambda w: np.exp(w - rho(np.exp(w), alpha)), *ends, epsabs=0, limit=800
        )
        below.append(mass / z)
    below = torch.tensor(below)
    exact = torch.where(y <= 0, below, 1 - below)
    assert_close(distribution.cdf(y), exact, rtol=1e-7, atol=1e-12)
    assert_close(distribution.log_survival(-y), exact.log(), rtol=1e-7, atol=1e-12)
    assert_close(distribution.icdf(distribution.cdf(y)), y, rtol=1e-7, atol=1e-9)


def test_variance_is_the_second_moment():
    distribution = BarronDistribution(torch.zeros(()), torch.tensor(2.0), torch.tensor(0.6))
    moment, _ = integrate.quad(lambda w: np.exp(3 * w - rho(np.exp(w), 0.6)), -40, 30, limit=500)
    z = log_partition(distribution.alpha, distribution.b).exp().item()
    assert distribution.variance.item() == pytest.approx(4 * 2 * moment / z, rel=1e-9)


def test_gradients_of_the_likelihood_in_everything():
    location, scale = torch.randn(4), torch.rand(4) + 0.5
    alpha, y = torch.tensor([0.3, 0.9, 1.2, 1.8]), torch.tensor([-7.0, -0.2, 0.5, 6.0])
    inputs = [v.requires_grad_() for v in (location, scale, alpha, y)]
    for method in ("log_prob", "cdf", "log_cdf", "log_survival"):

        def function(location, scale, alpha, y, method=method):
            return getattr(BarronDistribution(location, scale, alpha), method)(y)

        assert torch.autograd.gradcheck(function, inputs, atol=1e-6)
    at_centre = torch.zeros(1, requires_grad=True)
    distribution = BarronDistribution(torch.zeros(1), torch.ones(1), torch.tensor(1.0))
    (slope,) = torch.autograd.grad(distribution.cdf(at_centre), at_centre)
    assert_close(slope, distribution.log_prob(torch.zeros(1)).exp())


@pytest.mark.parametrize("alpha", [0.0, 0.9, 2.0])
def test_samples_follow_the_cdf(alpha):
    """Dvoretzky-Kiefer-Wolfowitz: P(sup |F_n - F| > e) <= 2 exp(-2 n e^2) = 1e-9."""
    n = 4000
    distribution = BarronDistribution(torch.zeros(()), torch.ones(()), torch.tensor(alpha))
    y = distribution.sample((n,), torch.Generator().manual_seed(0)).sort().values
    gap = (torch.arange(1, n + 1) / n - distribution.cdf(y)).abs().max()
    assert gap < math.sqrt(math.log(2e9) / (2 * n)) + 1 / n


@pytest.mark.parametrize("dispersion", ["constant", "predicted"])
def test_the_score_of_shape_and_scale_has_mean_zero(dispersion):
    likelihood = Barron(dispersion=dispersion)
    raw = torch.tensor([[0.3, 0.6]])[:, : 1 + (dispersion == "predicted")]
    y = likelihood.distribution(raw.detach()).sample((20_000,), torch.Generator().manual_seed(1))
    rows = raw.expand(20_000, -1).clone().requires_grad_()

    def loss(a, raw):
        alpha, b = 2 * torch.sigmoid(a), 2 * torch.sigmoid(-a)
        distribution = BarronDistribution(raw[:, 0], likelihood.dispersion(raw), alpha, b)
        return -distribution.log_prob(y[:, 0])

    a = likelihood.shape.detach().expand(20_000).clone().requires_grad_()
    for score in torch.autograd.grad(loss(a, rows).sum(), (a, rows)):
        score = score.reshape(20_000, -1)
        assert (score.mean(0).abs() < 5 * score.std(0) / 20_000**0.5).all()


def test_learned_shape_and_scale_start_at_the_maximum_of_the_likelihood():
    y = torch.as_tensor(stats.t(3, 5, 2).rvs(300, random_state=0))
    likelihood, weight = Barron(), torch.ones(300)
    likelihood.observe(y, weight)
    shift, scale = likelihood.start(y, weight)
    best = likelihood.loss(shift.expand(300, 1), y).mean().item()

    def total(theta):
        m, log_c, a = torch.as_tensor(theta)
        other = BarronDistribution(m, log_c.exp(), 2 * a.sigmoid(), 2 * (-a).sigmoid())
        return -other.log_prob(y).mean().item()

    found = optimize.minimize(total, [5.0, 0.5, 0.0], method="Nelder-Mead", options={"fatol": 1e-9})
    assert best == pytest.approx(found.fun, abs=1e-7)
    assert scale.item() == likelihood.dispersion.unit.item()


def test_tails_no_heavier_than_normal_start_close_to_the_normal_likelihood():
    y = torch.linspace(-1, 1, 50)
    likelihood = Barron()
    likelihood.observe(y, torch.ones(50))
    likelihood.start(y, torch.ones(50))
    assert likelihood.alpha(y)[0].item() == pytest.approx(2 / (1 + math.exp(-6.0)))
    likelihood.relax_shapes()
    assert likelihood.alpha(y)[0].item() == pytest.approx(1.5)


def test_options_decide_whether_it_is_a_likelihood():
    assert Barron().has_distribution and Barron(alpha=1.0).has_distribution
    assert Barron(alpha="learned", dispersion=1.0).has_distribution
    assert not Barron(alpha=-1.0, dispersion="mad").has_distribution
    with pytest.raises(TypeError, match="is a loss, not a likelihood"):
        Barron(alpha=1.0, dispersion="mad").distribution(torch.zeros(1, 1))
    with pytest.raises(ValueError, match="for alpha >= 0 only, got alpha=-1"):
        Barron(alpha=-1.0)
    with pytest.raises(ValueError, match="at most 2, got 3"):
        Barron(alpha=3.0)
    with pytest.raises(ValueError, match="must be 'learned' or a number <= 2, got 'free'"):
        Barron(alpha="free")


@pytest.mark.parametrize("options", [{"scale": "sd"}, {"scale": 0.0}, {"constant": -1.0}])
def test_tukeys_options_are_checked(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} of Tukey must be"):
        Tukey(**options)


SHAPES = {"charbonnier": 1.0, "cauchy": 0.0, "geman_mcclure": -2.0, "welsch": -math.inf}


@pytest.mark.parametrize("name, alpha", SHAPES.items())
def test_named_losses_are_barrons_at_their_shape(name, alpha):
    """M113."""
    y = torch.linspace(-30, 30, 61)
    found = create(name, scale=2.5).loss(torch.zeros(61, 1), y)
    assert_close(found, torch.as_tensor(rho(y.numpy() / 2.5, alpha)))
    measured, same = create(name), Barron(alpha=alpha, dispersion="mad")
    for likelihood in (measured, same):
        likelihood.observe(y, torch.ones(61))
    assert_close(measured.loss(torch.zeros(61, 1), y), same.loss(torch.zeros(61, 1), y))


@pytest.mark.parametrize(
    "name, theirs, factor", [("charbonnier", "soft_l1", 1.0), ("cauchy", "cauchy", math.sqrt(0.5))]
)
def test_the_line_is_that_of_scipys_least_squares(name, theirs, factor):
    """M113: cost = C^2 / 2 sum rho((residual / C)^2), C = scale * factor."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    y = 1 + 2 * x + 0.3 * rng.normal(size=60) + 20 * (rng.random(60) < 0.1)
    fit = optimize.least_squares(
        lambda w: w[0] + w[1] * x - y, [0.0, 0.0], loss=theirs, f_scale=0.5 / factor, xtol=1e-14
    )
    loss, rows = create(name, scale=0.5), torch.as_tensor(np.stack([np.ones(60), x], 1))
    w = torch.tensor(fit.x, requires_grad=True)
    total = loss.loss((rows @ w).unsqueeze(-1), torch.as_tensor(y)).sum()
    assert torch.autograd.grad(total, w)[0].abs().max() < 1e-5


def test_with_scale_1_hubers_delta_is_in_the_unit_of_y():
    y, raw = 100 * torch.randn(200), torch.zeros(200, 1)
    likelihood = Huber(delta=2.0, scale=1)
    likelihood.observe(y, torch.ones(200))
    assert_close(
        likelihood.loss(raw, y), torch.nn.HuberLoss(reduction="none", delta=2.0)(raw[:, 0], y)
    )
    measured = Huber(delta=2.0)
    measured.observe(y, torch.ones(200))
    assert measured.unit.value > 50


@pytest.mark.parametrize("name", ["huber", "tukey", *SHAPES])
@pytest.mark.parametrize("scale", ["sd", 0.0, True])
def test_every_robust_loss_takes_a_scale_and_checks_it(name, scale):
    create(name, scale=2.0)
    with pytest.raises(UsageError, match=r"scale of .* must be"):
        create(name, scale=scale)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    "options", [{}, {"dispersion": "predicted"}, {"alpha": -math.inf, "dispersion": "mad"}]
)
def test_extreme_numbers_give_finite_losses_and_gradients(options, dtype):
    likelihood = create("barron", **options).to(dtype)
    P = 2 if options.get("dispersion") == "predicted" else 1
    raw = torch.cartesian_prod(*[torch.tensor([0.0, 50.0, -50.0, 1e4, -1e4])] * P).reshape(-1, P)
    for a in (0.0, 50.0, -50.0):
        if likelihood.shape is not None:
            likelihood.shape.data.fill_(a)
        for y in (-1e6, 0.0, 1e6):
            leaf = raw.to(dtype).requires_grad_()
            terms = likelihood.loss(leaf, torch.full((len(raw),), y, dtype=dtype))
            gradients = torch.autograd.grad(terms.sum(), [leaf, *likelihood.parameters()])
            assert terms.dtype == dtype
            assert terms.isfinite().all()
            assert all(g.isfinite().all() for g in gradients)
