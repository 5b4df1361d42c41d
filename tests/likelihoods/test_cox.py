import copy
import math

import pytest
import torch
from torch.testing import assert_close

from ansatz.errors import DataError, UsageError
from ansatz.likelihoods import Cox, create, survival_outcome
from ansatz.likelihoods.cox import out_of_fold_log_risks


def naive(eta, y, ties):
    """-log partial likelihood, sum by sum."""
    time, event, entry = y.unbind(-1)
    total = eta.new_zeros(())
    for t in time[event > 0].unique():
        dead, at_risk = (time == t) & (event > 0), (entry < t) & (time >= t)
        risk, tied, d = eta[at_risk].exp().sum(), eta[dead].exp().sum(), int(dead.sum())
        ranks = [order / d if ties == "efron" else 0.0 for order in range(d)]
        total = total - eta[dead].sum() + sum((risk - rank * tied).log() for rank in ranks)
    return total


def outcomes(n, entries=True):
    time = torch.randint(2, 15, (n,)).double()
    entry = (time * torch.rand(n)).floor().clamp(max=time - 1) if entries else None
    return survival_outcome(time, torch.rand(n) < 0.6, entry)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("entries", [False, True], ids=["plain", "entries"])
def test_shares_add_up_to_the_double_loop(ties, entries):
    y, raw = outcomes(70, entries), torch.randn(70, 1).requires_grad_()
    shares = Cox(ties=ties).loss(raw, y)
    exact = naive(raw[:, 0], y, ties)
    assert shares.shape == (70,)
    assert (shares[y[:, 1] == 0] == 0).all()
    assert_close(shares.sum(), exact)
    gradients = [torch.autograd.grad(v, raw, retain_graph=True)[0] for v in (shares.sum(), exact)]
    assert_close(*gradients)


@pytest.mark.parametrize("entries", [False, True], ids=["plain", "entries"])
def test_gradients_to_second_order(entries):
    y, raw = outcomes(12, entries), torch.randn(12, 1).requires_grad_()
    assert torch.autograd.gradcheck(lambda raw: Cox().loss(raw, y).sum(), raw)
    assert torch.autograd.gradgradcheck(lambda raw: Cox().loss(raw, y).sum(), raw)


def test_a_weight_of_two_is_the_row_twice():
    y, raw, weight = outcomes(40), torch.randn(40, 1), torch.randint(0, 4, (40,))
    y[weight == 0] = math.nan
    found = Cox().joint_loss(raw, y, weight.double()).sum()
    again = [v.repeat_interleave(weight, 0) for v in (raw, y)]
    assert_close(found, Cox().loss(*again).sum())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("entries", [False, True], ids=["plain", "entries"])
@pytest.mark.parametrize("size", [50.0, 1e4])
def test_log_risks_far_apart_keep_their_digits(dtype, entries, size):
    y = outcomes(200, entries)
    raw = (size * (2 * torch.rand(200, 1) - 1)).to(dtype).requires_grad_()
    shares = Cox().to(dtype).loss(raw, y.to(dtype))
    (gradient,) = torch.autograd.grad(shares.sum(), raw)
    assert shares.dtype == dtype
    assert shares.isfinite().all() and gradient.isfinite().all()
    # of a risk set only the largest log-risk counts, up to its size and the share of ties
    time, event, entry = y.unbind(-1)
    eta = raw.detach().double()[:, 0]
    gap = torch.stack([eta[(entry < t) & (time >= t)].max() for t in time]) - eta
    total, least = shares.double().sum(), (gap * event).sum()
    assert (total - least).abs() <= 200 * math.log(200)


def test_a_late_giant_does_not_blur_those_before_it():
    """With entries a difference of running sums would leave e^60 - e^60 at the early times."""
    y = survival_outcome(
        torch.tensor([1.0, 2.0, 3.0, 9.0]),
        torch.tensor([1.0, 1.0, 1.0, 1.0]),
        torch.tensor([-torch.inf, 0.0, 0.0, 5.0]),
    )
    raw = torch.tensor([[0.0], [0.3], [-0.2], [60.0]])
    early = Cox().loss(raw[:3], y[:3])
    assert_close(Cox().loss(raw, y)[:3], early, rtol=1e-14, atol=0)


def test_breslows_baseline_without_covariates_is_nelson_aalen():
    y = survival_outcome(
        torch.tensor([1.0, 2.0, 2.0, 3.0, 5.0]), torch.tensor([1.0, 1.0, 0.0, 0.0, 1.0])
    )
    likelihood = Cox()
    likelihood.set_baseline(torch.zeros(5), y)
    assert_close(likelihood.baseline_times, torch.tensor([1.0, 2.0, 5.0]))
    assert_close(likelihood.baseline_hazard, torch.tensor([1 / 5, 1 / 4, 1.0]).cumsum(0))


def test_breslows_baseline_is_the_formula():
    y, eta, weight = outcomes(30), torch.randn(30), torch.randint(1, 4, (30,)).double()
    likelihood = Cox()
    likelihood.set_baseline(eta, y, weight)
    time, event, entry = y.unbind(-1)
    total = 0.0
    for t, found in zip(likelihood.baseline_times, likelihood.baseline_hazard, strict=True):
        risk = (weight * eta.exp())[(entry < t) & (time >= t)].sum()
        total += weight[(time == t) & (event > 0)].sum() / risk
        assert_close(found, total)
    curve = likelihood.distribution(torch.tensor([[0.7]]))
    expected = (-likelihood.baseline_hazard * math.exp(0.7)).exp()
    assert_close(curve.survival[0], expected)
    assert_close(
        curve.log_survival(time[:1]), expected[likelihood.baseline_times <= time[0]][-1:].log()
    )


def test_a_baseline_survives_saving():
    y, raw = outcomes(30), torch.randn(30, 1)
    likelihood = Cox(ties="breslow")
    likelihood.set_baseline(raw[:, 0], y)
    fresh = create("cox", **likelihood.options)
    fresh.load_state_dict(likelihood.state_dict())
    assert fresh.ties == "breslow"
    assert torch.equal(fresh.distribution(raw).survival, likelihood.distribution(raw).survival)
    assert torch.equal(
        copy.deepcopy(likelihood).distribution(raw).survival, likelihood.distribution(raw).survival
    )
    empty = Cox()
    likelihood.load_state_dict(empty.state_dict())
    assert len(likelihood.baseline_times) == 0


def test_extreme_log_risks_have_curves():
    likelihood = Cox()
    likelihood.set_baseline(torch.zeros(20), outcomes(20))
    curve = likelihood.float().distribution(torch.tensor([[1e4], [-1e4]], dtype=torch.float32))
    assert curve.survival.isfinite().all()
    assert_close(curve.survival[0], torch.zeros_like(curve.survival[0]))
    assert_close(curve.survival[1], torch.ones_like(curve.survival[1]))
    assert_close(curve.median[1], torch.tensor(torch.inf, dtype=torch.float32))


def test_start_is_zero_and_one_and_wants_an_event():
    y = outcomes(10)
    assert_close(Cox().start(y, torch.ones(10)), (torch.zeros(1), torch.ones(1)))
    y[:, 1] = 0
    with pytest.raises(DataError, match="no row has an event"):
        Cox().start(y, torch.ones(10))


def test_given_knows_the_times_of_events_only():
    likelihood, y = Cox(), outcomes(10)
    likelihood.set_baseline(torch.zeros(10), y)
    _, time = likelihood.given(torch.zeros(10, 1), y)
    assert_close(time.isnan(), y[:, 1] == 0)


def test_wrong_use_is_named():
    likelihood, one = Cox(), torch.ones(2)
    with pytest.raises(UsageError, match="no times yet"):
        likelihood.distribution(torch.zeros(1, 1))
    with pytest.raises(UsageError, match="ties must be"):
        Cox(ties="exact")
    with pytest.raises(DataError, match=r"shape \(B, 3\), got \(2,\)"):
        likelihood.check(one)
    with pytest.raises(DataError, match=r"times >= 0, got -1.0 at y\[1\]"):
        likelihood.check(survival_outcome(torch.tensor([1.0, -1.0]), one))
    with pytest.raises(DataError, match=r"codes 0 \(censored\) or 1, got 2.0 at y\[1\].*causes"):
        likelihood.check(survival_outcome(one, torch.tensor([1, 2])))
    with pytest.raises(DataError, match=r"entry < time, got 1.0 at y\[0\].*never at risk"):
        likelihood.check(survival_outcome(one, one, one))
    with pytest.raises(ValueError, match="one entry per row"):
        survival_outcome(one, torch.ones(3))
    with pytest.raises(ValueError, match=r"raw \(2, 1\) goes with y \(2, 3\)"):
        likelihood.loss(torch.zeros(2, 1), one)


def test_other_rows_are_never_taken_for_those_of_the_last_call():
    """Risk sets are kept from step to step; a change in place of times or weights is noticed."""
    raw, weight = torch.randn(30, 1), torch.ones(30)
    y = survival_outcome(torch.rand(30), (torch.rand(30) < 0.7).double())
    likelihood = Cox()
    before = likelihood.joint_loss(raw, y, weight).sum()
    assert_close(likelihood.joint_loss(raw, y, weight).sum(), before)
    y[:, 0] = y[:, 0].flip(0)
    assert_close(likelihood.joint_loss(raw, y, weight), Cox().joint_loss(raw, y, weight))
    weight[3] = 2.0
    assert_close(likelihood.joint_loss(raw, y, weight), Cox().joint_loss(raw, y, weight))
    few = raw[:9], y[:9], weight[:9]
    assert_close(likelihood.joint_loss(*few), Cox().joint_loss(*few))


def test_log_risks_of_folds_are_put_on_the_level_of_the_whole_fit():
    own, other = torch.tensor([0.0, 1.0, 2.0]), torch.tensor([5.0, 6.0, 6.5])
    fair = out_of_fold_log_risks(own, [(torch.tensor([0, 1]), torch.tensor([2]), other)])
    assert_close(fair, torch.tensor([0.0, 1.0, 1.5]))
