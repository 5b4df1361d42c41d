"""The noising process: closed forms, Bayes' rule, and times."""

import math
from itertools import pairwise

import pytest
import torch
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.generative.diffusion import Process

PROCESSES = {
    "linear steps": Process("linear", 40, beta=(0.01, 0.3)),
    "cosine steps": Process("cosine", 40),
    "linear": Process("linear"),
    "cosine": Process("cosine"),
    "zero": Process("cosine", zero_terminal=True),
    "zero steps": Process("linear", 1000, zero_terminal=True),
}
every_process = pytest.mark.parametrize("process", PROCESSES.values(), ids=PROCESSES)


@every_process
def test_signal_falls_from_one_and_variance_is_preserved(process):
    t = torch.linspace(0, process.end, 41, dtype=torch.float64)
    alpha, sigma = process.alpha(t), process.sigma(t)
    assert alpha[0] == 1 and sigma[0] == 0 and (alpha.diff() < 0).all()
    assert_close(alpha**2 + sigma**2, torch.ones_like(t))
    assert_close(process.log_snr(t[1:-1]), (alpha**2 / sigma**2).log()[1:-1], rtol=1e-9, atol=1e-9)


def test_steps_multiply_to_the_closed_form():
    process = PROCESSES["linear steps"]
    beta = torch.linspace(0.01, 0.3, 40)
    assert_close(process.alpha(40) ** 2, (1 - beta).prod())
    assert_close(process.step_variance(torch.arange(1, 41)), beta)


def test_the_posterior_is_bayes_rule():
    """q(x_s | x_t, x_0) by conditioning the joint normal distribution of x_s and x_t given x_0."""
    process, x0, xt = PROCESSES["linear steps"], torch.tensor(1.3), torch.tensor(-0.4)
    for t, s in ((7, 6), (30, 11), (40, 1)):
        a_t, a_s = process.alpha(t), process.alpha(s)
        ratio, v_s, v_t = a_t / a_s, process.sigma(s) ** 2, process.sigma(t) ** 2
        gain = ratio * v_s / v_t
        found = process.posterior(xt, x0, t, s)
        assert_close(found.mean, a_s * x0 + gain * (xt - a_t * x0))
        assert_close(found.variance, v_s - gain * ratio * v_s)
    noise = torch.tensor(0.7)
    x = process.add_noise(x0, noise, 9)
    assert_close(process.start_from_noise(x, noise, 9), x0)
    assert_close(process.mean_from_noise(x, noise, 9), process.posterior(x, x0, 9).mean)
    assert_close(process.score(noise, 9), -(x - process.alpha(9) * x0) / process.sigma(9) ** 2)


def test_the_weight_of_the_evidence_is_that_of_the_papers():
    process, t = PROCESSES["linear steps"], torch.arange(2, 41)
    beta, small = process.step_variance(t), process.posterior_variance(t)
    by_paper = beta**2 / (2 * small * (1 - beta) * process.sigma(t) ** 2)
    assert_close(process.weight(t, "evidence"), by_paper)
    continuous, h = PROCESSES["linear"], 1e-5
    slope = (continuous.log_snr(0.4 + h) - continuous.log_snr(0.4 - h)) / (2 * h)
    assert_close(continuous.weight(0.4, "evidence"), -slope / 2, rtol=1e-6, atol=0)
    assert_close(
        process.weight(t, "snr"), torch.minimum(process.snr(t), torch.tensor(5.0)) / process.snr(t)
    )


def test_terminal_signal_is_reported_and_can_be_zero():
    assert Process("linear", 1000).terminal_snr == pytest.approx(4.04e-5, rel=1e-3)
    assert Process("linear").terminal_snr == pytest.approx(math.exp(-10.05), rel=1e-3)
    assert PROCESSES["zero"].terminal_snr == 0 and PROCESSES["zero steps"].terminal_snr == 0
    plain, shifted = Process("linear", 1000), PROCESSES["zero steps"]
    assert_close(plain.alpha(1), shifted.alpha(1), rtol=1e-4, atol=0)


@every_process
@pytest.mark.parametrize("spacing", ["time", "snr"])
@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_times_fall_from_the_end_to_zero(process, spacing, count):
    times = process.times(count, spacing)
    assert len(times) == count + 1 and times[0] == process.end and times[-1] == 0
    assert all(a > b for a, b in pairwise(times))
    if process.steps is not None:
        assert all(t == round(t) for t in times)


def test_equal_distances_in_snr():
    process = PROCESSES["cosine"]
    gaps = process.log_snr(torch.tensor(process.times(20, "snr")[:-1])).diff()
    assert_close(gaps, gaps.mean().expand_as(gaps), rtol=1e-3, atol=0)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: Process("sigmoid"), "must be 'linear' or 'cosine', got 'sigmoid'"),
        (lambda: Process(steps=0), "whole number >= 1, or None"),
        (lambda: Process(beta=(0.3, 0.1)), "0 < first <= last < 1"),
        (lambda: Process(steps=10).times(11), "at most those of the process, 10, got 11"),
        (lambda: Process().times(0), "steps must be a whole number >= 1, got 0"),
        (lambda: Process().alpha(1.5), "between 0 and 1.0, got 1.5"),
        (lambda: Process(steps=10).alpha(2.5), "has whole times, got 2.5"),
        (lambda: Process().posterior_variance(0.5), "give the time s"),
        (lambda: Process().weight(0.5, "flat"), "simple, evidence, snr, got 'flat'"),
    ],
)
def test_wrong_settings_are_named(call, message):
    with pytest.raises(UsageError, match=message):
        call()
