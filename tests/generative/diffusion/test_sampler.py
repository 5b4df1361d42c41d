"""Samplers: linear on normal data, with their orders; the mixture; equalities among them."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.generative.diffusion import Moments, Process, draw, samplers

PROCESS = Process("cosine")
MEAN = torch.tensor([1.0, -2.0], dtype=torch.float64)
COVARIANCE = torch.tensor([[0.5, 0.3], [0.3, 1.2]], dtype=torch.float64)
NAMES = ["ddim", "ddpm", "dpm2m", "euler", "heun", "normal_exact", "reverse_sde"]


def normal_denoiser(process, mean=MEAN, covariance=COVARIANCE):
    """E[x_0 | x_t] of N(mean, covariance)."""

    def denoise(x, t):
        alpha, sigma = process.alpha(t), process.sigma(t)
        total = alpha**2 * covariance + sigma**2 * torch.eye(len(mean))
        return mean + alpha * (x - alpha * mean) @ torch.linalg.solve(total, covariance)

    return denoise


def exact_flow(process, x, t, s, mean=MEAN, covariance=COVARIANCE):
    """The flow of normal data keeps (x - alpha mu) / sqrt(v) along each principal axis."""
    values, axes = torch.linalg.eigh(covariance)
    old, new = (process.alpha(u) ** 2 * values + process.sigma(u) ** 2 for u in (t, s))
    z = (x - process.alpha(t) * mean) @ axes * (new / old).sqrt()
    return process.alpha(s) * mean + z @ axes.T


def make(name, process, times, **options):
    if name == "normal_exact":
        values, axes = torch.linalg.eigh(COVARIANCE)
        options = {"moments": Moments(MEAN, values, axes)} | options
    return samplers.create(name, process, times, **options)


def recursion(name, process, times, x):
    """Each sampler's rule on normal data as affine maps, written from its formula."""
    mean, eye = MEAN, torch.eye(2)
    previous = None
    levels = [(float(process.alpha(t)), float(process.sigma(t))) for t in times]
    values, axes = torch.linalg.eigh(COVARIANCE)
    for (a, s), (a2, s2) in pairwise(levels):
        D = mean + a * (x - a * mean) @ torch.linalg.solve(
            a**2 * COVARIANCE + s**2 * eye, COVARIANCE
        )
        noise = (x - a * D) / s
        if name == "ddim":
            x = a2 * D + s2 * noise
        elif name == "ddpm":  # its mean
            beta = 1 - (a / a2) ** 2
            x = a2 * beta / s**2 * D + a / a2 * s2**2 / s**2 * x
        elif name == "reverse_sde":
            total = 2 * math.log(a2 / a)
            x = x + total * (x / 2 - noise / s)
        elif name in ("euler", "heun"):
            h = math.atan2(s2, a2) - math.atan2(s, a)
            v = a * noise - s * D
            end = x + h * v
            if name == "heun" and s2 > 0:
                total = a2**2 * COVARIANCE + s2**2 * eye
                D2 = mean + a2 * (end - a2 * mean) @ torch.linalg.solve(total, COVARIANCE)
                end = x + h / 2 * (v + a2 * (end - a2 * D2) / s2 - s2 * D2)
            x = end
        elif name == "dpm2m":
            ahead, h = D, None
            if s2 > 0:
                h = math.log(a2 / s2) - math.log(a / s)
                if previous is not None:
                    ahead = D + h / (2 * previous[1]) * (D - previous[0])
                x = s2 / s * x - a2 * math.expm1(-h) * ahead
            else:
                x = D
            previous = D, h
        else:
            v, v2 = a**2 * values + s**2, a2**2 * values + s2**2
            x = a2 * mean + (((x - a * mean) @ axes) * (v2 / v).sqrt()) @ axes.T
    return x


@pytest.mark.parametrize("process", [PROCESS, Process("linear", 1000)], ids=["cosine", "steps"])
@pytest.mark.parametrize("spacing", ["time", "snr"])
@pytest.mark.parametrize("name", NAMES)
def test_on_normal_data_its_map_of_basis_vectors_is_its_own_recursion(
    name, spacing, process, monkeypatch
):
    times = process.times(12, spacing)
    sampler = make(name, process, times)
    if sampler.stochastic:
        monkeypatch.setattr(type(sampler), "noise", lambda self, x, g: torch.zeros_like(x))
    basis = torch.cat([torch.zeros(1, 2), torch.eye(2)])
    found = draw(sampler, normal_denoiser(process), basis.shape, start=basis)
    assert_close(found, recursion(name, process, times, basis), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name, order", [("ddim", 1), ("euler", 1), ("heun", 2), ("dpm2m", 2)])
def test_doubling_the_steps_divides_the_error_by_two_to_the_order(name, order):
    errors = []
    x = torch.tensor([[0.7, -1.1]])
    target = exact_flow(PROCESS, x, 0.8, 0.2)
    for count in (80, 160):
        half = torch.linspace(*(PROCESS.log_snr(t).item() for t in (0.8, 0.2)), count + 1)
        grid = torch.linspace(0.2, 0.8, 60_001)
        times = [0.8, *_invert(half[1:-1], grid), 0.2]
        found = draw(make(name, PROCESS, times), normal_denoiser(PROCESS), x.shape, start=x)
        errors.append((found - target).norm().item())
    assert errors[0] / errors[1] == pytest.approx(2**order, rel=0.05)


def _invert(levels, grid):
    known = PROCESS.log_snr(grid)
    return np.interp(-levels.numpy(), -known.numpy(), grid.numpy()).tolist()


@pytest.mark.parametrize("count", [1, 2, 7, 20])
@pytest.mark.parametrize("process", [PROCESS, Process("linear", 1000)], ids=["cosine", "steps"])
def test_normal_exact_has_no_error_on_normal_data(process, count):
    sampler = make("normal_exact", process, process.times(count, "snr"))
    x = sampler.start((50, 2), torch.Generator().manual_seed(0))
    found = draw(sampler, normal_denoiser(process), x.shape, start=x)
    assert_close(found, exact_flow(process, x, process.end, 0), rtol=1e-9, atol=1e-9)


def test_normal_exact_starts_from_the_law_of_x_at_the_first_time():
    sampler = make("normal_exact", PROCESS, [0.5, 0.0])
    x = sampler.start((200_000, 2), torch.Generator().manual_seed(0))
    alpha, sigma = PROCESS.alpha(0.5), PROCESS.sigma(0.5)
    total = alpha**2 * COVARIANCE + sigma**2 * torch.eye(2)
    standard_error = total.max() / len(x) ** 0.5
    assert (x.mean(0) - alpha * MEAN).abs().max() < 5 * standard_error
    assert (x.T.cov() - total).abs().max() < 10 * standard_error


def test_without_variance_normal_exact_is_ddim():
    moments = Moments(torch.zeros(1), torch.zeros(1))
    times, x = PROCESS.times(8), torch.randn(30, 1)
    points = lambda x, t: torch.tanh(3 * x)  # noqa: E731
    ours = draw(
        samplers.create("normal_exact", PROCESS, times, moments=moments), points, x.shape, start=x
    )
    ddim = draw(samplers.create("ddim", PROCESS, times), points, x.shape, start=x)
    assert_close(ours, ddim)


def test_ddim_with_all_noise_is_ddpm():
    times, x = PROCESS.times(10), torch.randn(40, 2)
    found = [
        draw(
            samplers.create(name, PROCESS, times, **options),
            normal_denoiser(PROCESS),
            x.shape,
            start=x,
            generator=torch.Generator().manual_seed(1),
        )
        for name, options in (("ddim", {"eta": 1.0}), ("ddpm", {"variance": 0.0}))
    ]
    assert_close(*found)


def test_the_deviation_of_normal_data_after_ddim_and_ddpm():
    """Exact score, linear schedule, sd 0.5: DDIM shrinks it, and more steps cure that."""
    process, variance = Process("linear", 1000), 0.25

    def deviation(name, count, **options):
        times = process.times(count)
        sampler = samplers.create(name, process, times, **options)
        denoise = normal_denoiser(process, torch.zeros(1), torch.tensor([[variance]]))
        total, one = 1.0, torch.ones(1, 1)  # the step is x -> gain x + fresh z
        for k in range(count):
            fresh = sampler._steps[k][2]
            sampler.noise = lambda x, g: torch.zeros_like(x)
            gain = sampler.step(k, one, denoise)[0].item()
            total = gain**2 * total + fresh**2
        return total**0.5

    assert deviation("ddim", 20) == pytest.approx(0.431, abs=0.003)
    assert deviation("ddim", 50) == pytest.approx(0.471, abs=0.003)
    assert deviation("ddim", 1000) == pytest.approx(0.4985, abs=5e-4)
    assert deviation("ddpm", 1000) == pytest.approx(0.496, abs=5e-4)
    assert deviation("ddpm", 1000, variance=1.0) == pytest.approx(0.501, abs=5e-4)


WEIGHTS, MEANS, DEVIATIONS = (
    torch.tensor(each, dtype=torch.float64)
    for each in ([0.3, 0.5, 0.2], [-2.0, 0.5, 2.5], [0.3, 0.5, 0.2])
)


def mixture_denoiser(process):
    def denoise(x, t):
        alpha, sigma = process.alpha(t), process.sigma(t)
        variance = alpha**2 * DEVIATIONS**2 + sigma**2
        gap = x.unsqueeze(-1) - alpha * MEANS
        share = (WEIGHTS.log() - variance.log() / 2 - gap**2 / variance / 2).softmax(-1)
        return (share * (MEANS + alpha * DEVIATIONS**2 / variance * gap)).sum(-1)

    return denoise


def wasserstein(name, count, process):
    """Distance of what a sampler makes of a normal start from the mixture."""
    share = (torch.arange(4_000) + 0.5) / 4_000
    z = torch.as_tensor(stats.norm.ppf(share.numpy()))
    grid = torch.linspace(-6, 6, 40_001)
    cdf = (WEIGHTS * torch.special.ndtr((grid.unsqueeze(1) - MEANS) / DEVIATIONS)).sum(1)
    quantile = grid[torch.searchsorted(cdf, share)]
    mean = (WEIGHTS * MEANS).sum()
    variance = (WEIGHTS * (DEVIATIONS**2 + MEANS**2)).sum() - mean**2
    options = {"moments": Moments(mean, variance)} if name == "normal_exact" else {}
    spacing = "time" if name == "ddim" else "snr"
    sampler = samplers.create(name, process, process.times(count, spacing), **options)
    if options:
        level = sampler.levels[0]
        z = level.alpha * mean + (level.alpha**2 * variance + level.sigma**2).sqrt() * z
    found = draw(sampler, mixture_denoiser(process), z.shape, start=z)
    return (found.sort().values - quantile).abs().mean().item()


@pytest.mark.parametrize("count", [5, 10, 20])
def test_on_a_mixture_normal_exact_beats_ddim_and_dpm2m(count):
    for process in (Process("linear"), Process("cosine")):
        ours = wasserstein("normal_exact", count, process)
        assert ours < 0.75 * wasserstein("dpm2m", count, process)
        assert ours < 0.75 * wasserstein("ddim", count, process)


def test_the_reverse_sde_restores_the_variance():
    process, denoise = Process("linear"), normal_denoiser(Process("linear"))
    sampler = make("reverse_sde", process, process.times(400))
    x = draw(sampler, denoise, (4_000, 2), generator=torch.Generator().manual_seed(0))
    error = (COVARIANCE.diag() * 2 / 4_000**0.5 * 2).max()
    assert (x.T.cov() - COVARIANCE).abs().max() < 3 * error


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: make("ddim", PROCESS, [0.5, 0.7]), "times of a sampler fall"),
        (lambda: make("ddim", PROCESS, [0.5]), "times of a sampler fall"),
        (lambda: make("ddim", PROCESS, [1.0, 0.0], eta=2.0), "eta of ddim"),
        (lambda: make("ddpm", PROCESS, [1.0, 0.0], variance=-1.0), "variance of ddpm"),
        (lambda: make("dimd", PROCESS, [1.0, 0.0]), "unknown sampler 'dimd'. Did you mean 'ddim'"),
        (lambda: make("reverse_sde", Process(zero_terminal=True), [1.0, 0.0]), "some signal"),
    ],
)
def test_wrong_settings_are_named(call, message):
    with pytest.raises(UsageError, match=message):
        call()
