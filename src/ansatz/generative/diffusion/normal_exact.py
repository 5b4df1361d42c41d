"""A sampler that solves the flow of normal data in closed form, and only the rest numerically."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.generative.diffusion.process import Process
from ansatz.generative.diffusion.sampler import Denoiser, Memory, _step_ratio, _Walk

_EXTRAPOLATE_ABOVE = 10  # evaluations: fewer leave steps too long for a straight line


class Moments(NamedTuple):
    """Mean and variances of data, along their coordinates or along principal axes.

    Args:
        mean: like one x.
        variance: like one x; with ``axes``, ``(D,)`` along them.
        axes: ``(D, D)``, a principal axis of the flattened x in each column; None for coordinates.

    Example:
        >>> import torch
        >>> from ansatz.generative.diffusion import Moments
        >>> x = torch.tensor([[1.0, 1.0], [3.0, 3.0]])
        >>> Moments.of(x, axes=True).variance
        tensor([0., 2.])
    """

    mean: Tensor
    variance: Tensor
    axes: Tensor | None = None

    @classmethod
    def of(cls, x: Tensor, *, axes: bool = False) -> "Moments":
        """Estimates both from rows of data, with divisor N (0 variance for a single row)."""
        mean = x.double().mean(0)
        centred = (x.double() - mean).flatten(1)
        if not axes:
            return cls(mean.to(x), (centred**2).mean(0).reshape(mean.shape).to(x))
        values, vectors = torch.linalg.eigh(centred.T @ centred / len(x))
        return cls(mean.to(x), values.clamp(min=0).to(x), vectors.to(x))

    def rotate(self, x: Tensor) -> Tensor:
        """Gives the coordinates of x along the axes."""
        return x if self.axes is None else (x.flatten(1) @ self.axes)

    def back(self, z: Tensor, like: Tensor) -> Tensor:
        """Undoes :meth:`rotate`."""
        return z if self.axes is None else (z @ self.axes.T).reshape(like.shape)


class NormalExact(_Walk):
    r"""Follows the probability flow, exactly wherever the data are normal.

    With the data's mean :math:`\mu` and variances :math:`s^2`, the variance of a coordinate of x is
    :math:`v = \alpha^2 s^2 + \sigma^2`. Normal data would have
    :math:`E[x_0 \mid x] = \mu + \tfrac{\alpha s^2}{v} (x - \alpha \mu)`; let r be what the
    estimate D has beyond that. For :math:`y = (x - \alpha\mu) / \sqrt v` and
    :math:`\lambda = \log(\alpha / \sigma)` the flow is

    .. math:: \frac{dy}{d\lambda} = \frac{\alpha}{\sqrt v}\, r, \qquad
              \int \frac{\alpha}{\sqrt v}\, d\lambda = \frac{\operatorname{asinh}(s e^\lambda)}{s}

    since :math:`\alpha / \sqrt v = (s^2 + e^{-2\lambda})^{-1/2}`. Each step keeps r constant, or
    extrapolates it by the step before where there are more than 10. With s = 0 the integral is
    :math:`e^\lambda`, and the step is DDIM's. It starts from :math:`N(\alpha\mu, v)`, the
    distribution of x at the first time if the data are normal, and ends with
    :math:`x = \mu + s y + r`. Normal data leave no error, however few the steps.

    Args:
        process: the noising.
        times: falling times; equal distances in log SNR (``Process.times(count, "snr")``) suit it.
        moments: mean and variances of the data.
        extrapolate: whether r is extrapolated; by the number of steps when not given.

    Example:
        >>> import torch
        >>> from ansatz.generative.diffusion import NormalExact, Moments, Process, draw
        >>> process, moments = Process("linear"), Moments(torch.tensor(3.0), torch.tensor(4.0))
        >>> def denoise(x, t):  # of N(3, 4)
        ...     alpha, sigma = process.alpha(t), process.sigma(t)
        ...     return 3 + alpha * 4 / (alpha**2 * 4 + sigma**2) * (x - alpha * 3)
        >>> sampler = NormalExact(process, [1.0, 0.0], moments)  # a single evaluation
        >>> x = draw(sampler, denoise, (10_000,), generator=torch.Generator().manual_seed(0))
        >>> round(x.mean().item(), 1), round(x.std().item(), 1)
        (3.0, 2.0)
    """

    def __init__(
        self,
        process: Process,
        times: Sequence[float],
        moments: Moments,
        *,
        extrapolate: bool | None = None,
    ) -> None:
        super().__init__(process, times)
        if self.levels[-1].alpha == 0:
            raise UsageError("normal_exact needs some signal at its last time.")
        self.moments = moments
        self.extrapolate = len(self) > _EXTRAPOLATE_ABOVE if extrapolate is None else extrapolate
        variance = moments.variance.double()
        self._deviation = variance.sqrt()
        self._plans: list[tuple[Tensor, ...]] = []
        for k, (_, alpha, sigma, half) in enumerate(self.levels[:-1]):
            total = alpha**2 * variance + sigma**2
            scale = total.sqrt()
            gain = alpha * variance / total
            clock = _clock(self._deviation, half)
            later = self.levels[k + 1]
            if later.t == 0:
                to, move = self._deviation, torch.ones_like(scale)
            else:
                to = (later.alpha**2 * variance + later.sigma**2).sqrt()
                move = to * (_clock(self._deviation, later.half_log_snr) - clock)
            # x_s - alpha_s mu = (to / scale) (x - alpha mu) + move r, r = D - mu - gain (x - ...)
            plan = (to / scale, gain, move)
            self._plans.append(tuple(each.to(moments.mean) for each in plan))

    def start(self, shape: Sequence[int], generator: torch.Generator | None = None) -> Tensor:
        """Draws from the normal distribution of x at the first time."""
        _, alpha, sigma, _ = self.levels[0]
        noise = torch.randn(tuple(shape), generator=generator, dtype=self.moments.mean.dtype)
        spread = (alpha**2 * self._deviation**2 + sigma**2).sqrt().to(noise)
        return alpha * self.moments.mean + self.moments.back(
            spread * self.moments.rotate(noise), noise
        )

    def step(
        self,
        k: int,
        x: Tensor,
        denoise: Denoiser,
        memory: Memory = (),
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Memory]:
        """One step: the normal part in closed form, the rest by its last values."""
        scale, gain, move = self._plans[k]
        mean = self.moments.mean
        z = self.moments.rotate(x - self.levels[k].alpha * mean)
        rest = torch.addcmul(
            self.moments.rotate(denoise(x, self.times[k]) - mean), gain, z, value=-1
        )
        ahead = rest
        if self.extrapolate and memory:
            ahead = rest + _step_ratio(self.levels, k) * (rest - memory[0])
        found = torch.addcmul(scale * z, move, ahead)
        return self.moments.back(found, x) + self.levels[k + 1].alpha * mean, (rest,)


def _clock(deviation: Tensor, half_log_snr: float) -> Tensor:
    r"""The integral of alpha / sqrt(v) over lambda: asinh(s e^lambda) / s, e^lambda at s = 0."""
    if math.isinf(half_log_snr):
        return torch.zeros_like(deviation)  # of pure noise; time 0 is not reached this way
    rate = math.exp(half_log_snr)
    small = deviation * rate < 1e-4
    safe = torch.where(small, 1.0, deviation)
    return torch.where(
        small, rate * (1 - (deviation * rate) ** 2 / 6), (safe * rate).asinh() / safe
    )
