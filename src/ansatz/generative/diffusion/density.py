"""How likely data are under a diffusion: the evidence bound, and the density by its flow."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.generative.diffusion.normal_exact import Moments
from ansatz.generative.diffusion.process import Process, checked_times
from ansatz.generative.diffusion.sampler import Denoiser


@torch.no_grad()
def continuous_bound(
    denoise: Denoiser,
    process: Process,
    x: Tensor,
    count: int = 20,
    *,
    first: float = 1e-3,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""Estimates the bound on log p(x) of a chain of infinitely many times, in nats per row.

    .. math:: E \log N\bigl(x_0; D(x_1), \tfrac{\sigma_1^2}{\alpha_1^2}\bigr)
              - \tfrac12 \int E \|\varepsilon - \hat\varepsilon\|^2\, d \log \mathrm{SNR}
              - \mathrm{KL}\bigl(q(x_T \mid x_0) \,\|\, N(0, I)\bigr)

    The integral is estimated without bias at ``count`` places, one at random in each of equal
    intervals of the log signal-to-noise ratio.

    Args:
        denoise: ``(x, t) -> E[x_0 | x_t = x]``.
        process: the noising, in continuous time.
        x: rows ``(B, ...)``.
        count: evaluations, one more for the first term.
        first: the time of the first term.
        generator: of noise and places.

    Returns:
        ``(B,)``: its expectation is at most log p(x).

    Example:
        >>> import torch
        >>> from ansatz.generative.diffusion import Process, continuous_bound
        >>> process = Process("linear")
        >>> denoise = lambda x, t: process.alpha(t) * x  # of N(0, 1), whose log density is -0.92
        >>> x, draws = torch.zeros(2_000, 1), torch.Generator().manual_seed(0)
        >>> round(continuous_bound(denoise, process, x, generator=draws).mean().item(), 1)
        -0.9

    References:
        Kingma et al. (2021), Variational diffusion models, eq. 17.
        https://arxiv.org/abs/2107.00630
    """
    if process.steps is not None:
        raise UsageError("continuous_bound needs a process in continuous time (steps=None).")
    bound = evidence_bound(denoise, process, x, [1.0, first], generator=generator, ends=True)
    low, high = (float(process.log_snr(t)) for t in (1.0, first))
    if not math.isfinite(low):
        low = float(process.log_snr(1 - 1e-4))
    draws = torch.rand(count, generator=generator, dtype=torch.float64)
    levels = low + (high - low) * (torch.arange(count - 1, -1, -1) + draws) / count
    for t in process.times_at(levels.tolist()):
        alpha, sigma = float(process.alpha(t)), float(process.sigma(t))
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype).to(x.device)
        error = _square(x - denoise(alpha * x + sigma * noise, t)) * (alpha / sigma) ** 2
        bound = bound - (high - low) / (2 * count) * error
    return bound


@torch.no_grad()
def evidence_bound(
    denoise: Denoiser,
    process: Process,
    x: Tensor,
    times: Sequence[float],
    *,
    draws: int = 1,
    generator: torch.Generator | None = None,
    ends: bool = False,
) -> Tensor:
    r"""Estimates the bound of a diffusion on log p(x), in nats per row.

    .. math:: E \log N\bigl(x_0; D(x_1), \tfrac{\sigma_1^2}{\alpha_1^2}\bigr)
              - \sum_{k} \tfrac12 (\mathrm{SNR}_{k} - \mathrm{SNR}_{k+1}) E \|x_0 - D(x_{k+1})\|^2
              - \mathrm{KL}\bigl(q(x_T \mid x_0) \,\|\, N(0, I)\bigr)

    for the chain over ``times``, whose steps back have the posterior's variance. The more times,
    the tighter. For bits per pixel see :func:`bits_per_dimension`.

    Args:
        denoise: ``(x, t) -> E[x_0 | x_t = x]``.
        process: the noising.
        x: rows of data ``(B, ...)``.
        times: falling times down to the first above 0; an entry 0 at the end is ignored.
        draws: of the noise at each time.
        generator: of the noise.
        ends: the first and the last term alone.

    Returns:
        ``(B,)``: its expectation is at most log p(x).

    Example:
        >>> import torch
        >>> from ansatz.generative.diffusion import Process, evidence_bound
        >>> process = Process("linear")
        >>> def denoise(x, t):  # of N(0, 1)
        ...     return process.alpha(t) * x
        >>> x, draws = torch.zeros(500, 1), torch.Generator().manual_seed(0)
        >>> times = process.times(500, "snr")
        >>> bound = evidence_bound(denoise, process, x, times, generator=draws)
        >>> -1.2 < bound.mean().item() < -0.919  # the log density is -0.919
        True

    References:
        Kingma et al. (2021), Variational diffusion models, eqs. 11 to 13.
        https://arxiv.org/abs/2107.00630
    """
    falling = checked_times(process, times)
    if falling[-1] == 0:
        falling = falling[:-1]
    every = torch.tensor(falling, dtype=torch.float64)
    alpha, sigma = process.alpha(every).tolist(), process.sigma(every).tolist()
    snr = process.snr(every).tolist()
    size = x[0].numel()
    first = alpha[0] ** 2 * _square(x) - size * (alpha[0] ** 2 + math.log(sigma[0] ** 2))
    bound: Tensor = -first / 2  # minus the KL divergence of the end from noise
    deviation = sigma[-1] / alpha[-1]
    for k, t in enumerate(falling):
        if ends and k + 1 < len(falling):
            continue
        error = torch.zeros_like(bound)
        for _ in range(draws):
            noise = torch.randn(x.shape, generator=generator, dtype=x.dtype).to(x.device)
            error += _square(x - denoise(alpha[k] * x + sigma[k] * noise, t)) / draws
        if k + 1 < len(falling):
            bound = bound - (snr[k + 1] - snr[k]) / 2 * error
        else:
            constant = size * math.log(2 * math.pi * deviation**2)
            bound = bound - (error / deviation**2 + constant) / 2
    return bound


def log_density(
    denoise: Denoiser,
    process: Process,
    x: Tensor,
    *,
    steps: int = 50,
    probes: int | None = None,
    moments: Moments | None = None,
    first: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""Computes log p(x) under the flow that makes data of noise, in nats per row.

    .. math:: \log p(x_0) = \log N(x_T) + \int \operatorname{div} v(x_\varphi, \varphi)\, d\varphi

    along the flow from the data to noise, in the angle of :class:`Euler`, by the classical
    Runge-Kutta method. The divergence is exact (one derivative per coordinate), or Hutchinson's
    estimate with ``probes`` random signs, which has no bias but a standard error.

    Args:
        denoise: ``(x, t) -> E[x_0 | x_t = x]``, differentiable in x.
        process: the noising, in continuous time.
        x: rows ``(B, ...)``.
        steps: of the integration, four evaluations each.
        probes: random directions; None for the exact divergence.
        moments: mean and variances of the data, for the density at the end; N(0, I) when not given.
        first: the time at which the flow begins; 0.00001 by default.
        generator: of the directions.

    Returns:
        ``(B,)``.

    Example:
        >>> import torch
        >>> from ansatz.generative.diffusion import Process, log_density
        >>> process = Process("cosine")
        >>> denoise = lambda x, t: process.alpha(t) * x  # of N(0, I)
        >>> round(log_density(denoise, process, torch.zeros(1, 2)).item(), 4)
        -1.8379

    References:
        Song et al. (2021), Score-based generative modeling through stochastic differential
        equations, eq. 39. https://arxiv.org/abs/2011.13456
    """
    if process.steps is not None:
        raise UsageError("log_density needs a process in continuous time (steps=None).")
    low = 1e-5 if first is None else first
    share = torch.linspace(0, 1, 2 * steps + 1, dtype=torch.float64)  # both ends and middles
    ends = _angle(process, torch.tensor([low, 1.0], dtype=torch.float64))
    angle = ends[0] + (ends[1] - ends[0]) * share**2  # closer near the data, where it bends most
    rate = 2 * (ends[1] - ends[0]) * share / (2 * steps)
    alpha, sigma, grid = angle.cos(), angle.sin(), _times_at(process, angle, low)
    signs = None
    if probes is not None:
        signs = torch.randint(0, 2, (probes, *x.shape), generator=generator).to(x) * 2 - 1

    def slope(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
        level = float(grid[k]), float(alpha[k]), float(sigma[k])
        velocity, divergence = _velocity_and_divergence(denoise, x, *level, signs)
        return velocity * float(rate[k]), divergence * float(rate[k])

    # The density of x at the first time, at alpha x, in units of x.
    total = x.new_full((len(x),), float(process.log_alpha(low)) * x[0].numel())
    z = float(alpha[0]) * x
    for k in range(0, 2 * steps, 2):
        z, gain = _runge_kutta(slope, z, k)
        total = total + gain
    mean, variance = torch.zeros(()).to(x), torch.ones(()).to(x)
    if moments is not None:
        mean = float(alpha[-1]) * moments.mean.to(x)
        variance = float(alpha[-1]) ** 2 * moments.variance.to(x) + float(sigma[-1]) ** 2
        z = moments.rotate(z - mean)
        mean = torch.zeros(()).to(x)
    terms = (z - mean) ** 2 / variance + (2 * math.pi * variance).log()
    return total - terms.flatten(1).sum(1) / 2


def bits_per_dimension(log_likelihood: Tensor, size: int, width: float) -> Tensor:
    r"""Turns nats per row into bits per coordinate of data in bins of a width.

    .. math:: -\frac{\log p(x)}{D \log 2} - \log_2 \text{width}

    Args:
        log_likelihood: log density (or a bound on it) of dequantised rows, in nats.
        size: coordinates per row, :math:`D`.
        width: of a bin, in the units of the density: 2/255 for 8-bit pixels in [-1, 1].

    Example:
        >>> import torch
        >>> from ansatz.generative.diffusion import bits_per_dimension
        >>> uniform = 784 * -torch.tensor(2.0).log()  # on [-1, 1]
        >>> round(bits_per_dimension(uniform, 784, 2 / 256).item(), 6)
        8.0
    """
    return -log_likelihood / (size * math.log(2)) - math.log2(width)


def _square(x: Tensor) -> Tensor:
    return x.flatten(1).square().sum(1)


def _velocity_and_divergence(
    denoise: Denoiser, x: Tensor, t: float, alpha: float, sigma: float, signs: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The velocity (cos x - D) / sin and its divergence."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        start = denoise(x, t)
        size = x[0].numel()
        trace = torch.zeros(len(x), dtype=x.dtype, device=x.device)
        if signs is None:
            flat = start.flatten(1)
            for i in range(size):
                (slope,) = torch.autograd.grad(flat[:, i].sum(), x, retain_graph=i + 1 < size)
                trace = trace + slope.flatten(1)[:, i]
        else:
            for n, sign in enumerate(signs):
                (slope,) = torch.autograd.grad(
                    (start * sign).sum(), x, retain_graph=n + 1 < len(signs)
                )
                trace = trace + (slope * sign).flatten(1).sum(1) / len(signs)
    velocity = (alpha * x - start).detach() / sigma
    return velocity, (alpha * size - trace) / sigma


def _runge_kutta(
    slope: Callable[[Tensor, int], tuple[Tensor, Tensor]], x: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    """From grid point k to k + 2, with slopes per interval of the grid."""
    v1, d1 = slope(x, k)
    v2, d2 = slope(x + v1, k + 1)
    v3, d3 = slope(x + v2, k + 1)
    v4, d4 = slope(x + 2 * v3, k + 2)
    return x + (v1 + 2 * v2 + 2 * v3 + v4) / 3, (d1 + 2 * d2 + 2 * d3 + d4) / 3


def _angle(process: Process, t: Tensor) -> Tensor:
    return torch.atan2(process.sigma(t), process.alpha(t))


def _times_at(process: Process, angle: Tensor, low: float) -> Tensor:
    """The times of angles, by bisection."""
    below, above = torch.full_like(angle, low), torch.ones_like(angle)
    for _ in range(60):
        middle = (below + above) / 2
        is_later = _angle(process, middle) > angle
        below, above = torch.where(is_later, below, middle), torch.where(is_later, middle, above)
    found = (below + above) / 2
    found[0], found[-1] = low, 1.0
    return found
