import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import stats
from torch.testing import assert_close

from ansatz.errors import ModelError
from ansatz.likelihoods import (
    Censored,
    Cox,
    CurveDistribution,
    DiscreteHazard,
    GammaDistribution,
    interval_censored,
    right_censored,
    survival_outcome,
)
from ansatz.outcomes import survival_metrics as survival_evidence
from ansatz.outcomes.survival_metrics import (
    Followed,
    evaluate_survival,
    log_survival_at,
    restricted_mean,
    risk_of,
)


def rows(n=40):
    """Log means, and exponential times of which some are censored."""
    eta = torch.randn(n)
    life, end = (torch.empty(n).exponential_() for _ in range(2))
    life = life * eta.exp()
    return eta, torch.minimum(life, 2 * end), (life <= 2 * end).double()


def concordance(time, event, score, entry=None):
    won = total = 0.0
    for i in range(len(time)):
        for j in range(len(time)):
            later = time[i] < time[j] or (time[i] == time[j] and not event[j])
            if event[i] and i != j and later and (entry is None or entry[j] < time[i]):
                won += float(score[i] > score[j]) + 0.5 * float(score[i] == score[j])
                total += 1
    return won / total


def test_rows_are_followed_up_to_the_last_event():
    _, time, event = rows()
    followed = Followed.of(Cox(), survival_outcome(time, event), torch.ones(40))
    assert followed.horizon == time[event > 0].max().item()
    assert_close(followed.time, time)
    same = Followed.of(Censored("weibull"), right_censored(time, event), torch.ones(40))
    assert same.horizon == followed.horizon
    assert_close(same.event, event)


def test_intervals_and_late_entries_tell_no_chance_of_being_followed():
    _, time, event = rows()
    ends = interval_censored(time, time + 1)
    assert Followed.of(Censored("weibull"), ends, torch.ones(40)).time.numel() == 0
    assert Followed.of(Censored("weibull"), ends, torch.ones(40)).horizon == (time + 1).max()
    late = Followed.of(Cox(), survival_outcome(time, event, time / 2), torch.ones(40))
    assert late.time.numel() == 0 and late.horizon == time[event > 0].max().item()
    begin = Followed.of(Cox(), survival_outcome(time, event, 0 * time), torch.ones(40))
    assert begin.time.numel() == 40  # watched from the beginning


def test_it_survives_a_file_and_refuses_another():
    _, time, event = rows()
    followed = Followed.of(Cox(), survival_outcome(time, event), torch.ones(40))
    again = Followed.of_tensors(followed.tensors())
    assert again.horizon == followed.horizon
    assert_close(again[1:], followed[1:])
    with pytest.raises(ModelError, match="horizon, time, event and weight"):
        Followed.of_tensors({"time": time})
    with pytest.raises(ModelError, match="horizon, time, event and weight"):
        Followed.of_tensors({**followed.tensors(), "time": time[:3]})


def test_scores_are_the_naive_ones():
    eta, time, event = rows()
    likelihood, y = Censored("exponential"), right_censored(time, event)
    followed = Followed.of(likelihood, y, torch.ones(40))
    found = evaluate_survival(likelihood, eta.unsqueeze(1), y, None, followed)
    nll = (event * eta + time / eta.exp()).mean()
    assert found["nll"] == pytest.approx(nll.item())
    assert found["c_index"] == pytest.approx(concordance(time, event, -eta))
    assert set(found) == {"nll", "c_index", "uno_c", "integrated_brier"}
    assert found["integrated_brier"] == pytest.approx(brier(eta, time, event), rel=1e-6)


def brier(eta, time, event):
    """Without an own sense of censoring: weights by the product-limit estimate, time by time."""

    def uncensored(t, before):
        chance = 1.0
        for c in time[event == 0].unique():
            if c < t or (c == t and not before):
                chance *= 1 - ((time == c) & (event == 0)).sum() / (time >= c).sum()
        return chance

    first, last = time[event > 0].min(), time[event > 0].max()
    grid = torch.linspace(first, last, 101)[:-1]
    scores = []
    for t in grid:
        survival, terms = (-t / eta.exp()).exp(), 0.0
        for i in range(len(time)):
            if time[i] > t:
                terms += (1 - survival[i]) ** 2 / uncensored(t, before=False)
            elif event[i]:
                terms += survival[i] ** 2 / uncensored(time[i], before=True)
        scores.append(terms / len(time))
    return float(torch.trapezoid(torch.stack(scores), grid) / (grid[-1] - grid[0]))


def test_a_partial_likelihood_is_not_shown_beside_others():
    eta, time, event = rows()
    likelihood, y = Cox(), survival_outcome(time, event)
    likelihood.set_baseline(eta, y)
    found = evaluate_survival(
        likelihood, eta.unsqueeze(1), y, None, Followed.of(likelihood, y, torch.ones(40))
    )
    assert set(found) == {"c_index", "uno_c", "integrated_brier"}


def test_late_entries_are_compared_with_those_at_risk_and_have_no_weights():
    eta, time, event = rows()
    entry = torch.rand(40) * time
    likelihood, y = Censored("exponential"), right_censored(time, event, entry)
    followed = Followed.of(likelihood, y, torch.ones(40))
    found = evaluate_survival(likelihood, eta.unsqueeze(1), y, None, followed)
    assert set(found) == {"nll", "c_index"}
    assert found["c_index"] == pytest.approx(concordance(time, event, -eta, entry))


def test_who_had_another_event_first_will_never_have_this_one():
    """Wolbers' concordance: other causes stay partners for ever, and the censored do not."""
    _, time, event = rows()
    cause = event * (1 + (torch.rand(40) < 0.4).double())
    y = survival_outcome(time, cause)
    likelihood = DiscreteHazard(intervals=3, causes=2)
    likelihood.observe(y, torch.ones(40))
    raw = torch.randn(40, 6)
    followed = Followed.of(likelihood, y, torch.ones(40))
    found = evaluate_survival(likelihood, raw, y, None, followed)
    for k in (1, 2):
        until = torch.where((cause > 0) & (cause != k), math.inf, time)
        risk = likelihood.incidence(raw, torch.tensor([followed.horizon]), k)[:, 0]
        expected = concordance(until, cause == k, risk)
        assert found[f"c_index_{k}"] == pytest.approx(expected)


def test_what_is_undefined_is_none():
    y = right_censored(torch.ones(3), torch.tensor([1.0, 0.0, 0.0]))
    likelihood = Censored("exponential")
    followed = Followed.of(likelihood, y, torch.ones(3))
    found = evaluate_survival(likelihood, torch.zeros(2, 1), y[1:], None, followed)
    assert found["c_index"] is None and found["integrated_brier"] is None


@pytest.mark.parametrize("horizon", [0.01, 1.0, 50.0])
def test_restricted_means_are_those_of_scipy(horizon):
    mean, phi = torch.tensor([0.1, 1.0, 30.0]), torch.tensor([0.002, 0.5, 4.0])
    found = restricted_mean(GammaDistribution(mean.log(), phi), horizon)
    exact = stats.gamma(1 / phi.numpy(), scale=(mean * phi).numpy())
    inside = stats.gamma(1 / phi.numpy() + 1, scale=(mean * phi).numpy())  # E[T; T <= h] = mean F
    expected = mean.numpy() * inside.cdf(horizon) + horizon * exact.sf(horizon)
    assert_allclose(found, expected, rtol=1e-6)


def test_a_curve_gives_its_own_restricted_mean_and_risk_orders_by_it():
    curve = CurveDistribution(torch.tensor([1.0, 3.0]), torch.tensor([[0.8, 0.4]]))
    assert restricted_mean(curve, 4.0).item() == pytest.approx(1 + 2 * 0.8 + 0.4)
    risk = risk_of(Censored("exponential"), torch.tensor([[0.0], [1.0]]), 2.0)
    assert_close(risk, -torch.tensor([1 - math.exp(-2), math.e * (1 - math.exp(-2 / math.e))]))


def test_curves_come_in_blocks_that_fit(monkeypatch):
    distribution = GammaDistribution(torch.randn(5), torch.ones(5))
    times = np.linspace(0.1, 3, 7)
    whole = log_survival_at(distribution, times.tolist())
    monkeypatch.setattr(survival_evidence, "BLOCK", 11)
    assert_close(log_survival_at(distribution, times.tolist()), whole, rtol=0, atol=0)
    assert_close(whole, -torch.from_numpy(times) / distribution.mean.unsqueeze(1))
