import math
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch.testing import assert_close

from ansatz.likelihoods.partial_likelihood import RiskSets, no_entry, partial_likelihood, tie_term


def naive(eta, time, event, entry, ties):
    """-log partial likelihood, transcribed sum by sum."""
    total = eta.new_zeros(())
    for t in time[event > 0].unique():
        dead = (time == t) & (event > 0)
        at_risk = (entry < t) & (time >= t)
        risk, tied, d = eta[at_risk].exp().sum(), eta[dead].exp().sum(), int(dead.sum())
        total = total - eta[dead].sum()
        for order in range(d):
            total = total + (risk - (order / d if ties == "efron" else 0) * tied).log()
    return total


def rows(n, *, entries=True, seed=0):
    generator = torch.Generator().manual_seed(seed)
    time = torch.randint(2, 12, (n,), generator=generator).double()  # many ties
    event = (torch.rand(n, generator=generator) < 0.6).double()
    entry = no_entry(time)
    if entries:
        late = (time * torch.rand(n, generator=generator)).floor().clamp(max=time - 1)
        entry = torch.where(torch.rand(n, generator=generator) < 0.7, late, entry)
    return time, event, entry


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("entries", [False, True], ids=["plain", "entries"])
def test_value_gradient_and_information_are_those_of_the_double_loop(ties, entries):
    time, event, entry = rows(60, entries=entries)
    X, beta, offset = torch.randn(60, 3) + 5, torch.randn(3), torch.randn(60)

    def loss(beta):
        return naive(X @ beta + offset, time, event, entry, ties)

    value, gradient, information = partial_likelihood(
        X, beta, time, event, entry, None, ties, offset
    )
    assert_close(value, -loss(beta))
    assert_close(gradient, -torch.autograd.functional.jacobian(loss, beta))
    assert_close(information, torch.autograd.functional.hessian(loss, beta), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_weights_are_repetitions(ties):
    time, event, entry = rows(40)
    X, beta, weight = torch.randn(40, 2), torch.randn(2), torch.randint(0, 4, (40,))
    time[weight == 0] = X[weight == 0] = math.nan  # an absent row may hold anything
    found = partial_likelihood(X, beta, time, event, entry, weight, ties)
    again = [v.repeat_interleave(weight, 0) for v in (time, event, entry)]
    assert_close(
        found, partial_likelihood(X.repeat_interleave(weight, 0), beta, *again, None, ties)
    )


def test_rossi_is_the_published_fit():
    folder = os.environ.get("ANSATZ_DATA")
    if folder is None:
        pytest.skip("ANSATZ_DATA is not set")
    table = pd.read_csv(Path(folder) / "survival" / "rossi.csv").astype(float)
    names = ["fin", "age", "race", "wexp", "mar", "paro", "prio"]
    X, time, event = (torch.tensor(table[c].to_numpy()) for c in (names, "week", "arrest"))
    beta = torch.zeros(7)
    for _ in range(8):
        value, gradient, information = partial_likelihood(X, beta, time, event)
        beta = beta + torch.linalg.solve(information, gradient)
    assert value.item() == pytest.approx(-658.7477, abs=5e-5)
    fit = dict(zip(names, beta.tolist(), strict=True))
    assert fit["fin"] == pytest.approx(-0.3794, abs=5e-5)
    assert fit["age"] == pytest.approx(-0.0574, abs=5e-5)
    assert fit["prio"] == pytest.approx(0.0915, abs=5e-5)
    # standard errors of R's coxph: fin 0.1914, age 0.0220, prio 0.0286
    error = information.inverse().diagonal().sqrt()
    assert_close(error[[0, 1, 6]], torch.tensor([0.1914, 0.0220, 0.0286]), atol=6e-5, rtol=0)


def test_the_start_stop_rows_of_the_heart_data_agree_with_statsmodels():
    phreg = pytest.importorskip("statsmodels.duration.hazard_regression").PHReg
    folder = os.environ.get("ANSATZ_DATA")
    if folder is None:
        pytest.skip("ANSATZ_DATA is not set")
    table = pd.read_csv(Path(folder) / "survival" / "stanford_heart.csv").astype(float)
    X = table[["age", "year", "surgery", "transplant"]].to_numpy()
    stop = table["stop"].to_numpy()
    start = table["start"].to_numpy() + 1e-6  # statsmodels counts a row at its entry; we after it
    model = phreg(stop, X, table["event"].to_numpy(), entry=start)
    beta = np.array([0.03, -0.1, -0.6, 0.1])
    columns = [torch.tensor(table[c].to_numpy()) for c in ("stop", "event", "start")]
    value, gradient, information = partial_likelihood(
        torch.tensor(X), torch.tensor(beta), *columns, None, "breslow"
    )
    assert value.item() == pytest.approx(model.loglike(beta))
    assert_close(gradient, torch.tensor(model.score(beta)))
    assert_close(information, torch.tensor(-model.hessian(beta)))
    for _ in range(8):  # the fit of R's coxph(Surv(start, stop, event) ~ ...), Efron's ties
        beta = beta + torch.linalg.solve(information, gradient).numpy()
        value, gradient, information = partial_likelihood(
            torch.tensor(X), torch.tensor(beta), *columns
        )
    assert_close(beta, np.array([0.0272, -0.1463, -0.6372, -0.0103]), atol=6e-5, rtol=0)


def test_rows_cut_at_any_time_say_the_same():
    time, event, entry = rows(50)
    X, beta = torch.randn(50, 2), torch.randn(2)
    cut = time - 0.5
    inside = cut > entry
    parts = [
        torch.cat([X[inside], X]),
        torch.cat([cut[inside], time]),
        torch.cat([torch.zeros(int(inside.sum())), event]),
        torch.cat([entry[inside], torch.where(inside, cut, entry)]),
    ]
    whole = partial_likelihood(X, beta, time, event, entry)
    split = partial_likelihood(parts[0], beta, *parts[1:])
    assert_close(split, whole)


@pytest.mark.parametrize("W", [1.0, 2.0, 7.0, 40.0])
@pytest.mark.parametrize("u", [-800.0, -3.0, 0.0, 2.5, 15.0, 35.9, 36.1, 800.0])
def test_efrons_term_is_the_sum_over_the_order_of_deaths(W, u):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(400):
        ratio = mpmath.exp(u)
        exact = sum(mpmath.log(1 + ratio - mpmath.mpf(rank) / int(W)) for rank in range(int(W)))
        slope = sum(ratio / (1 + ratio - mpmath.mpf(rank) / int(W)) for rank in range(int(W)))
    x = torch.tensor([u], requires_grad=True)
    term = tie_term(torch.tensor([W]), x, "efron")
    (found,) = torch.autograd.grad(term.sum(), x)
    assert term.item() == pytest.approx(float(exact), rel=1e-12, abs=1e-13)
    assert found.item() == pytest.approx(float(slope), rel=1e-10, abs=1e-13)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 17])
def test_blocks_are_the_sets_themselves(n):
    """Every number of event times, so that each shape of the tree is met."""
    time = torch.arange(1.0, n + 1).repeat_interleave(2)
    event, entry = torch.ones(2 * n), (time - 1 - torch.arange(2 * n) % 5).clamp(min=0) - 0.5
    value, weight = 30 * torch.randn(2 * n), torch.ones(2 * n)
    sets = RiskSets.of(time, event, entry, weight)
    others, dead = sets.log_sums(value)
    for k, t in enumerate(sets.times):
        at_risk = (entry < t) & (time > t)
        if at_risk.any():
            assert_close(others[k], value[at_risk].logsumexp(0))
        assert_close(dead[k], value[time == t].logsumexp(0))


def test_no_event_says_nothing():
    X, time = torch.randn(4, 2), torch.arange(1.0, 5)
    value, gradient, information = partial_likelihood(X, torch.ones(2), time, torch.zeros(4))
    assert value == 0
    assert_close((gradient, information), (torch.zeros(2), torch.zeros(2, 2)))
