import copy
import math
from itertools import pairwise

import pytest
import torch
from scipy import integrate, stats
from torch.testing import assert_close

from ansatz.errors import DataError, UsageError
from ansatz.likelihoods import DiscreteHazard, create, survival_outcome
from ansatz.metrics import aalen_johansen, kaplan_meier

INF = math.inf
both = pytest.mark.parametrize("measure", ["density", "interval"])


def outcomes(n, *, causes=1, entries=True, whole=True):
    time = torch.randint(2, 12, (n,)).double() if whole else 10 * torch.rand(n) + 0.1
    event = torch.randint(0, causes + 1, (n,))
    entry = (time * torch.rand(n)).floor().clamp(max=time - 0.05) if entries else None
    return survival_outcome(time, event, entry)


def fitted(y, weight=None, **options):
    likelihood = DiscreteHazard(**options)
    weight = torch.ones(len(y)) if weight is None else weight
    likelihood.check(y)
    likelihood.observe(y, weight)
    return likelihood, *likelihood.start(y, weight)


@pytest.mark.parametrize("entries", [False, True])
def test_without_x_the_intervals_are_kaplan_meier_at_the_cuts(entries):
    y = outcomes(300, entries=entries)
    y[0] = torch.tensor([30.0, 0.0, -INF])  # someone outlives the last event
    weight = torch.randint(0, 3, (300,)).double()
    weight[0] = 1
    likelihood, shift, _ = fitted(y, weight, measure="interval")
    exact = kaplan_meier(y[:, 0], y[:, 1], weight, y[:, 2])
    assert_close(likelihood.cuts, exact.times)
    assert_close(likelihood.distribution(shift).survival, exact.values)


@pytest.mark.parametrize("entries", [False, True])
def test_without_x_the_incidence_is_aalen_johansens(entries):
    y = outcomes(400, causes=2, entries=entries)
    y[0] = torch.tensor([30.0, 0.0, -INF])
    likelihood, shift, _ = fitted(y, causes=2, measure="interval")
    times = torch.linspace(0.5, 20, 40)
    for cause in (1, 2):
        exact = aalen_johansen(y[:, 0], y[:, 1], cause, None, y[:, 2])
        assert_close(likelihood.incidence(shift, times, cause), exact.at(times))


def test_without_x_the_rates_are_events_over_time_at_risk():
    y = outcomes(200, whole=False)
    weight = torch.randint(0, 4, (200,)).double()
    likelihood, shift, _ = fitted(y, weight, intervals=5)
    time, event, entry = y.unbind(-1)
    edges = [0.0, *likelihood.cuts.tolist()]
    edges[-1] = INF
    hazard = torch.nn.functional.softplus(shift)
    for j in range(5):
        a, b = edges[j], edges[j + 1]
        at_risk = (time.clamp(max=b) - torch.maximum(entry, torch.tensor(a))).clamp(min=0)
        died = weight[(event > 0) & (time > a) & (time <= b)].sum()
        rate = hazard[j] / (likelihood.cuts[j] - a)
        assert_close(rate, died / (weight * at_risk).sum())


def test_cuts_are_quantiles_of_the_event_times():
    y = outcomes(400, whole=False, entries=False)
    likelihood, _, _ = fitted(y, intervals=8)
    events = y[y[:, 1] > 0, 0]
    share = (events.unsqueeze(1) <= likelihood.cuts).double().mean(0)
    assert_close(share, torch.arange(1, 9) / 8, atol=1 / len(events), rtol=0)
    assert likelihood.cuts[-1] == events.max()


def test_fewer_event_times_than_intervals_leave_raw_numbers_unused():
    y = outcomes(100)
    likelihood, shift, scale = fitted(y, intervals=50)
    assert len(likelihood.cuts) == 10
    assert shift.shape == scale.shape == (50,)
    raw = shift.expand(100, 50).clone().requires_grad_()
    (gradient,) = torch.autograd.grad(likelihood.loss(raw, y).sum(), raw)
    assert (gradient[:, 10:] == 0).all()


@both
@pytest.mark.parametrize("causes", [1, 3])
def test_start_is_the_maximum_likelihood_constant(measure, causes):
    y = outcomes(500, causes=causes, whole=measure == "interval")
    y[0] = torch.tensor([30.0, 0.0, -INF])
    weight = torch.randint(1, 4, (500,)).double()
    likelihood, shift, _ = fitted(y, weight, causes=causes, intervals=6, measure=measure)
    shift.requires_grad_()
    loss = (weight * likelihood.loss(shift.expand(500, -1), y)).sum() / weight.sum()
    (gradient,) = torch.autograd.grad(loss, shift)
    assert_close(gradient, torch.zeros_like(gradient), atol=1e-12, rtol=0)


def test_one_interval_is_the_exponential_likelihood():
    y = survival_outcome(
        torch.tensor([1.0, 2.0, 4.0, 9.0]), torch.tensor([1, 0, 1, 1]), torch.tensor([0, 1.0, 0, 3])
    )
    likelihood, _, _ = fitted(y, intervals=1)
    raw = torch.full((4, 1), 0.3)
    rate = math.log1p(math.exp(0.3)) / 9
    exact = stats.expon(scale=1 / rate)
    time, event, entry = (v.numpy() for v in y.unbind(-1))
    loss = -(event * exact.logpdf(time) + (1 - event) * exact.logsf(time) - exact.logsf(entry))
    assert_close(likelihood.loss(raw, y), torch.tensor(loss))


def test_the_density_is_a_density_over_times_and_causes():
    likelihood, _, _ = fitted(
        outcomes(200, causes=2, whole=False, entries=False), intervals=4, causes=2
    )
    raw = torch.randn(1, 8)
    total = 0.0
    for cause in (1, 2):

        def density(t, cause=cause):
            y = torch.tensor([[t, cause, -INF]])
            return (-likelihood.loss(raw, y)).exp().item()

        edges = [0.0, *likelihood.cuts.tolist(), 60.0]
        for a, b in pairwise(edges):
            total += integrate.quad(density, a + 1e-12, b)[0]
        at = torch.tensor([edges[2]])
        first = sum(integrate.quad(density, a + 1e-12, b)[0] for a, b in pairwise(edges[:3]))
        assert likelihood.incidence(raw[0], at, cause).item() == pytest.approx(first, rel=1e-6)
    beyond = likelihood.distribution(raw).log_survival(torch.tensor([60.0])).exp().item()
    assert total + beyond == pytest.approx(1, abs=1e-6)


def test_loss_and_curve_agree():
    likelihood, _, _ = fitted(outcomes(100, whole=False), intervals=6)
    raw, t = torch.randn(5, 6), torch.tensor([0.3, 1.0, 4.0, 8.0, 40.0])
    curve = likelihood.distribution(raw)
    event, censored = (survival_outcome(t, torch.full((5,), e)) for e in (1, 0))
    assert_close(likelihood.loss(raw, event), -curve.log_prob(t))
    assert_close(likelihood.loss(raw, censored), -curve.log_survival(t))
    late = survival_outcome(t + 1, torch.zeros(5), t)
    assert_close(likelihood.loss(raw, late), curve.log_survival(t) - curve.log_survival(t + 1))


@both
def test_incidences_add_up_to_the_dead(measure):
    y = outcomes(200, causes=3)
    likelihood, _, _ = fitted(y, causes=3, intervals=5, measure=measure)
    raw, times = torch.randn(7, 15), torch.tensor([0.0, 1.0, 3.5, 11.0, 25.0])
    total = sum(likelihood.incidence(raw, times, cause) for cause in (1, 2, 3))
    dead = likelihood.distribution(raw.unsqueeze(1)).cdf(times.expand(7, 5))
    assert_close(total, dead)


def test_score_has_mean_zero_on_censored_samples():
    likelihood, _, _ = fitted(outcomes(200, whole=False), intervals=5)
    raw = torch.randn(1, 5).repeat(20_000, 1).requires_grad_()
    curve, generator = likelihood.distribution(raw.detach()), torch.Generator().manual_seed(1)
    time, end = curve.sample((), generator), 12 * torch.rand(20_000, generator=generator)
    entry = 3 * torch.rand(20_000, generator=generator)
    kept = (torch.minimum(time, end) > entry).nonzero().squeeze(1)
    y = survival_outcome(torch.minimum(time, end), (time <= end).double(), entry)[kept]
    (score,) = torch.autograd.grad(likelihood.loss(raw[kept], y).sum(), raw)
    score = score[kept]
    assert (score.mean(0).abs() < 5 * score.std(0) / len(score) ** 0.5).all()


@both
def test_gradient(measure):
    y = outcomes(20, causes=2)
    likelihood, shift, _ = fitted(y, causes=2, intervals=4, measure=measure)
    raw = (shift + torch.randn(20, 8)).requires_grad_()
    assert torch.autograd.gradcheck(lambda raw: likelihood.loss(raw, y), raw)
    assert torch.autograd.gradgradcheck(lambda raw: likelihood.loss(raw, y), raw)


@both
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_extreme_raw_numbers_give_finite_losses_and_gradients(measure, dtype):
    y = outcomes(60, causes=2)
    likelihood, _, _ = fitted(y, causes=2, intervals=3, measure=measure)
    likelihood = likelihood.to(dtype)
    for value in (0.0, 50.0, -50.0, 1e4, -1e4):
        raw = torch.full((60, 6), value, dtype=dtype).requires_grad_()
        loss = likelihood.loss(raw, y.to(dtype))
        (gradient,) = torch.autograd.grad(loss.sum(), raw)
        assert loss.dtype == dtype
        assert loss.isfinite().all() and gradient.isfinite().all()
        assert likelihood.distribution(raw).survival.isfinite().all()


@both
def test_weights_are_repetitions(measure):
    y, weight = outcomes(80, causes=2, whole=False), torch.randint(0, 4, (80,))
    y[weight == 0] = math.nan
    options = {"causes": 2, "intervals": 5, "measure": measure}
    likelihood = DiscreteHazard(**options)
    likelihood.observe(y, weight.double())
    again = y.repeat_interleave(weight, 0)
    repeated, shift, _ = fitted(again, **options)
    assert_close(likelihood.cuts, repeated.cuts)
    assert_close(likelihood.start(y, weight.double())[0], shift)


def test_name_options_and_state_remake_it():
    y = outcomes(50, causes=2)
    likelihood, shift, _ = fitted(y, causes=2, intervals=7, measure="interval")
    fresh = create("discrete_hazard", **likelihood.options)
    fresh.load_state_dict(likelihood.state_dict())
    raw = shift.expand(50, -1)
    assert torch.equal(fresh.double().loss(raw, y), likelihood.loss(raw, y))
    assert torch.equal(copy.deepcopy(likelihood).loss(raw, y), likelihood.loss(raw, y))


def test_given_knows_the_times_of_events_only():
    y = outcomes(20)
    likelihood, shift, _ = fitted(y)
    _, time = likelihood.given(shift.expand(20, -1), y)
    assert_close(time.isnan(), y[:, 1] == 0)


def test_wrong_use_is_named():
    y, one = outcomes(10), torch.ones(10)
    with pytest.raises(UsageError, match="no intervals yet"):
        DiscreteHazard().loss(torch.zeros(10, 20), y)
    with pytest.raises(UsageError, match="intervals of discrete_hazard must be a number >= 1"):
        DiscreteHazard(intervals=0)
    with pytest.raises(UsageError, match="measure must be"):
        DiscreteHazard(measure="both")
    with pytest.raises(DataError, match=r"codes 0 \(censored\) to 2, got 3.0 at y\[0\]"):
        DiscreteHazard(causes=2).check(survival_outcome(torch.ones(1), torch.tensor([3])))
    y[:, 1] = 0
    with pytest.raises(DataError, match="every row is censored"):
        DiscreteHazard().observe(y, one)
    with pytest.raises(UsageError, match="cause must be 1 to 1, got 2"):
        fitted(outcomes(30))[0].incidence(torch.zeros(20), torch.ones(1), 2)
