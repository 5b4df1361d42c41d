"""Objectives of diffusion, guidance, and log densities."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.data import Batch
from ansatz.errors import UsageError
from ansatz.generative.diffusion import (
    Denoising,
    Moments,
    NetworkDenoiser,
    Process,
    ScoreMatching,
    bits_per_dimension,
    continuous_bound,
    evidence_bound,
    log_density,
)

PROCESS = Process("cosine")
MEAN, VARIANCE = torch.tensor([[0.5, -1.0], [0.3, 2.0]], dtype=torch.float64)
PREDICT = ["noise", "start", "velocity", "score"]


def denoise(x, t, process=PROCESS):
    alpha, sigma = process.alpha(t), process.sigma(t)
    gain = alpha * VARIANCE / (alpha**2 * VARIANCE + sigma**2)
    return MEAN + gain * (x - alpha * MEAN)


def log_prob(x):
    return torch.distributions.Normal(MEAN, VARIANCE.sqrt()).log_prob(x).sum(1)


class Exact(nn.Module):
    """What a perfect network predicts for N(MEAN, VARIANCE)."""

    def __init__(self, predict, error=0.0):
        super().__init__()
        self.predict, self.error = predict, error

    def forward(self, x, clock):
        t = clock / 1000
        alpha, sigma = (f(t).unsqueeze(1) for f in (PROCESS.alpha, PROCESS.sigma))
        total = alpha**2 * VARIANCE + sigma**2
        start = MEAN + alpha * VARIANCE / total * (x - alpha * MEAN)
        noise = (x - alpha * start) / sigma + self.error
        start = (x - sigma * noise) / alpha
        outputs = {"noise": noise, "start": start, "score": -noise / sigma}
        outputs["velocity"] = alpha * noise - sigma * start
        return outputs[self.predict]


@pytest.mark.parametrize("predict", PREDICT)
def test_every_prediction_gives_the_same_start(predict):
    found = NetworkDenoiser(Exact(predict), PROCESS, predict)
    x = torch.randn(5, 2)
    for t in (0.01, 0.5, 0.9):
        assert_close(found(x, t), denoise(x, t))


@pytest.mark.parametrize("weight", ["evidence", "snr"])
def test_a_weight_of_the_noise_error_is_the_same_for_every_prediction(weight):
    x, noise, t = torch.randn(20, 2), torch.randn(20, 2), torch.rand(20) * 0.8 + 0.1
    found = [
        Denoising(PROCESS, predict, weight).errors(Exact(predict, 0.3), x, noise, t)
        for predict in PREDICT
    ]
    for other in found[1:]:
        assert_close(other, found[0])
    alpha, sigma = PROCESS.alpha(t).unsqueeze(1), PROCESS.sigma(t).unsqueeze(1)
    estimate = (
        alpha * x + sigma * noise - alpha * denoise_rows(alpha * x + sigma * noise, t)
    ) / sigma
    by_hand = (estimate + 0.3 - noise).square().mean(1) * PROCESS.weight(t, weight)
    assert_close(found[0], by_hand)


def denoise_rows(x, t):
    return torch.cat([denoise(row.unsqueeze(0), each) for row, each in zip(x, t, strict=True)])


@pytest.mark.parametrize("weight", ["simple", "evidence", "snr"])
@pytest.mark.parametrize("predict", PREDICT)
def test_the_expectation_of_the_noise_minimises_it(predict, weight):
    """Any constant added to E[noise | x_t] raises the loss, beyond its standard error."""
    objective = Denoising(Process("cosine"), predict, weight).eval()
    x = torch.randn(3_000, 2, generator=torch.Generator().manual_seed(0)) * VARIANCE.sqrt() + MEAN
    _, noise = objective._fixed(torch.arange(3_000), x)
    t = torch.full((3_000,), 0.4)
    best, worse = (objective.errors(Exact(predict, e), x, noise, t) for e in (0.0, 0.3))
    gain = worse - best
    assert gain.mean() > 3 * gain.std() / len(gain) ** 0.5


def test_evaluation_is_a_function_of_seed_and_row():
    objective, x = Denoising(PROCESS).eval(), torch.randn(6, 2)
    network, batch = Exact("velocity", 0.1), Batch.of(x, x)
    first = objective(network, batch)
    rows = [
        objective(
            network,
            batch._replace(inputs=(x[i : i + 1],), weight=torch.ones(1), index=torch.tensor([i])),
        )
        for i in reversed(range(6))
    ]
    assert_close(sum(each.total for each in rows), first.total)
    other = Denoising(PROCESS, seed=1).eval()(network, batch)
    assert other.total != first.total


def test_training_times_are_stratified_and_steps_are_whole():
    objective = Denoising(PROCESS)
    t = objective._times(torch.tensor(0.35), 10, torch.zeros(1)).sort().values
    assert_close(t.diff(), torch.full((9,), 0.1))
    steps = Denoising(Process("cosine", 10))._times(torch.tensor(0.35), 10, torch.zeros(1))
    assert_close(steps.sort().values, torch.arange(1.0, 11))


def test_conditions_are_hidden_in_training_alone():
    seen = []

    def network(x, t, given):
        seen.append((given == 0).all(1).double().mean().item())
        return x

    x, given = torch.randn(2_000, 2), torch.ones(2_000, 3)
    objective = Denoising(PROCESS, drop=0.25)
    objective(network, Batch.of((x, given), x))
    objective.eval()(network, Batch.of((x[:10], given[:10]), x[:10]))
    assert seen[0] == pytest.approx(0.25, abs=5 * (0.25 * 0.75 / 2_000) ** 0.5) and seen[1] == 0


def test_guidance_goes_from_the_unconditional_to_the_conditional_and_beyond():
    def network(x, t, given):
        return x + given.sum(1, keepdim=True)

    x, given = torch.randn(4, 2), torch.full((4, 1), 2.0)
    for w in (0.0, 1.0, 2.5):
        found = NetworkDenoiser(network, PROCESS, "start", given=given, guidance=w)(x, 0.5)
        assert_close(found, x + 2 * w)
    with pytest.raises(UsageError, match="guidance=2 needs a condition"):
        NetworkDenoiser(network, PROCESS, guidance=2.0)


def test_bounds_hold_the_start():
    found = NetworkDenoiser(lambda x, t: 5 * x, PROCESS, "start", bounds=(-1, 1))
    assert_close(found(torch.tensor([[1.0, -0.1]]), 0.5), torch.tensor([[1.0, -0.5]]))


def test_the_evidence_bound_is_below_the_density_and_reaches_it():
    x = torch.randn(400, 2, generator=torch.Generator().manual_seed(1)) * VARIANCE.sqrt() + MEAN
    gaps = []
    for count in (8, 64, 512):
        bound = evidence_bound(
            denoise, PROCESS, x, PROCESS.times(count, "snr"), draws=2,
            generator=torch.Generator().manual_seed(2),
        )  # fmt: skip
        gap = log_prob(x) - bound
        assert gap.mean() > -3 * gap.std() / len(gap) ** 0.5
        gaps.append(gap.mean().item())
    assert gaps[0] > 3 * gaps[1] > 0 and gaps[2] < 0.2


def test_the_continuous_bound_is_unbiased_for_the_density_of_normal_data():
    x = torch.randn(300, 2, generator=torch.Generator().manual_seed(1)) * VARIANCE.sqrt() + MEAN
    draws = torch.Generator().manual_seed(2)  # places are the same for all rows of a call
    bounds = [continuous_bound(denoise, PROCESS, x, 10, generator=draws) for _ in range(60)]
    gap = torch.stack([(log_prob(x) - bound).mean() for bound in bounds])
    assert -4 * gap.std() / 60**0.5 < gap.mean() < 0.15


def test_the_density_by_the_flow_is_that_of_normal_data():
    x = torch.randn(5, 2)
    moments = Moments(MEAN, VARIANCE)
    assert_close(log_density(denoise, PROCESS, x, moments=moments), log_prob(x), rtol=0, atol=1e-4)


def test_hutchinsons_divergence_is_exact_for_a_diagonal_one_and_unbiased_else():
    x, moments = torch.randn(5, 2), Moments(MEAN, VARIANCE)
    found = log_density(denoise, PROCESS, x, moments=moments, probes=1, steps=30)
    assert_close(found, log_prob(x), rtol=0, atol=1e-4)
    turn = torch.tensor([[0.6, -0.8], [0.8, 0.6]])

    def turned(x, t):
        return denoise(x @ turn, t) @ turn.T

    y = x[:1] @ turn.T
    draws = torch.cat([
        log_density(turned, PROCESS, y, probes=1, steps=6,
                    generator=torch.Generator().manual_seed(i))
        for i in range(30)
    ])  # fmt: skip
    exact = log_density(turned, PROCESS, y, steps=6)
    assert (draws.mean() - exact).abs() < 4 * draws.std() / 30**0.5


def test_score_matching_is_the_fisher_divergence_up_to_a_constant():
    """Of N(0, s^2) and the score -b x: half the Fisher divergence is (b - 1/s^2)^2 s^2 / 2."""
    s = 0.7
    x = s * torch.randn(200_000, 1, generator=torch.Generator().manual_seed(0))
    x = (x - x.mean()) / x.std(correction=0) * s
    found = []
    for b in (1.0, 1 / s**2, 4.0):
        network = nn.Linear(1, 1, bias=False)
        nn.init.constant_(network.weight, -b)
        loss = ScoreMatching().eval()(network, Batch.of(x, x))
        found.append((loss.total / loss.count).item() - (b - 1 / s**2) ** 2 * s**2 / 2)
    assert_close(torch.tensor(found), torch.full((3,), -1 / s**2 / 2), rtol=1e-9, atol=1e-9)


def test_random_directions_agree_with_the_exact_divergence():
    network, x = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 3)), torch.randn(50, 3)
    exact = ScoreMatching().eval()(network, Batch.of(x, x)).total
    sliced = ScoreMatching(400).eval()(network, Batch.of(x, x)).total
    assert_close(sliced, exact, rtol=0.05, atol=0.5)


def test_score_matching_trains():
    torch.manual_seed(0)
    network, x = nn.Linear(1, 1), 2 + 0.5 * torch.randn(5_000, 1)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.1)
    for _ in range(400):
        optimizer.zero_grad()
        loss = ScoreMatching(1)(network, Batch.of(x, x))
        (loss.total / loss.count).backward()
        optimizer.step()
    slope = -1 / x.var().item()
    assert network.weight.item() == pytest.approx(slope, rel=0.05)
    assert network.bias.item() == pytest.approx(-slope * x.mean().item(), rel=0.05)


def test_bits_of_a_uniform_law_are_those_of_its_bins():
    found = bits_per_dimension(torch.tensor(-10 * math.log(2.0)), 10, 2 / 256)
    assert found.item() == pytest.approx(8.0)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: Denoising(PROCESS, "x0"), "noise, start, velocity, score, got 'x0'"),
        (lambda: Denoising(PROCESS, weight="flat"), "simple, evidence, snr"),
        (lambda: Denoising(Process(zero_terminal=True), "noise"), "predict velocity or start"),
        (lambda: log_density(denoise, Process(steps=10), torch.zeros(1, 2)), "continuous time"),
        (lambda: ScoreMatching(0), "draws of ScoreMatching"),
    ],
)
def test_wrong_settings_are_named(call, message):
    with pytest.raises(UsageError, match=message):
        call()
