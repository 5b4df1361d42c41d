"""Corruptions of values: noise, blur, erased boxes."""

import math
import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import torch
from torch import Generator, Tensor

from ansatz.data.augmentation.augmentation import (
    Photometric,
    chances,
    check_between,
    check_shares,
    check_whole,
    per_example,
    uniform,
)
from ansatz.data.augmentation.moves import padded
from ansatz.errors import UsageError


@dataclass(frozen=True)
class Noise(Photometric):
    r"""Independent normal noise on every pixel.

    .. math:: y_i = x_i + \sigma \epsilon_i, \qquad \epsilon_i \sim N(0, 1)

    To first order in :math:`\sigma^2` a penalty on the size of the network's derivative.

    Args:
        sigma: :math:`\sigma`.
        relative: :math:`\sigma` is a share of each example's own standard deviation, as suits a
            signal in any unit.
        clip: cut at 0 and 1 afterwards; the noise then has no mean of zero at the ends.

    Shapes:
        - x: ``(B, C, *size)`` floats; returns: the same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Noise
        >>> y = Noise(0.1)(torch.zeros(1, 1, 100, 100))
        >>> round(float(y.std()), 2)
        0.1

    References:
        Bishop (1995), Training with noise is equivalent to Tikhonov regularization.
    """

    sigma: float = 0.05
    _: KW_ONLY
    relative: bool = False
    clip: bool = False

    def __post_init__(self) -> None:
        check_between("sigma of Noise", self.sigma, 0, 1e30)

    def adjust(self, x: Tensor, generator: Generator | None) -> Tensor:
        """Adds the noise."""
        if not self.sigma:
            return x
        if self.clip:
            check_shares(x, "Noise")
        if not self.relative:
            self._warn_of_drowning(x)
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype).to(x.device)
        noise *= self.sigma
        if self.relative:
            noise *= per_example(x.flatten(1).std(1, correction=0), x)
        noise += x
        return noise.clamp_(0, 1) if self.clip else noise

    def _warn_of_drowning(self, x: Tensor) -> None:
        deviation = float(x[:8].std(correction=0))
        if 0 < deviation < self.sigma / 10:
            warnings.warn(
                f"Noise of sigma {self.sigma:g} drowns x, whose standard deviation is "
                f"{deviation:.2g}: relative=True makes sigma a share of it.",
                stacklevel=5,
            )


@dataclass(frozen=True)
class Blur(Photometric):
    r"""Convolution with a Gaussian whose width each example draws for itself.

    .. math:: y = g_\sigma * x, \qquad g_\sigma(i) \propto e^{-i^2 / 2\sigma^2}, \quad
        \sigma \sim \mathrm{Uniform}(\text{low}, \text{high})

    along every axis, with the grid mirrored at its edge. The kernel reaches 3 high pixels far.

    Args:
        low: least width, in pixels; 0 leaves the image as it is.
        high: largest width.

    Shapes:
        - x: ``(B, C, *size)`` floats; returns: the same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Blur
        >>> x = torch.rand(2, 1, 9, 9)
        >>> Blur(1.0, 2.0)(x).std() < x.std()
        tensor(True)

    References:
        Lindeberg (1990), Scale-space for discrete signals.
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        check_between("low of Blur", self.low, 0, 1000)
        check_between("high of Blur", self.high, 0, 1000)
        if self.low > self.high:
            raise UsageError(f"low of Blur must be at most high, got {self.low} > {self.high}.")

    def adjust(self, x: Tensor, generator: Generator | None) -> Tensor:
        """Blurs each example with its own width."""
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        sigma = middle + half * uniform(x, generator=generator)
        return blurred(x, sigma, math.ceil(3 * self.high))


def blurred(x: Tensor, sigma: Tensor, radius: int) -> Tensor:
    """Each grid convolved with its Gaussian, cut at ``radius`` pixels, along every axis."""
    places = torch.arange(-radius, radius + 1, dtype=x.dtype, device=x.device)
    tiny = torch.finfo(x.dtype).tiny ** 0.25  # a width of 0 is the unit pulse, not 0/0
    weights = (-0.5 * (places / sigma.clamp(min=tiny).unsqueeze(1)) ** 2).softmax(1)  # (B, 2r + 1)
    for axis in range(2, x.ndim):
        margins = [radius if a == axis else 0 for a in range(2, x.ndim)]
        wide, count = padded(x, margins, "reflect"), x.shape[axis]
        x = torch.zeros_like(x)
        for k, weight in enumerate(weights.unbind(1)):
            x.addcmul_(wide.narrow(axis, k, count), per_example(weight, x))
    return x


@dataclass(frozen=True)
class RandomErasing(Photometric):
    r"""Cutout: a box at a random place of each grid, overwritten.

    .. math:: y_i = v \text{ where } c - k/2 \le i < c + k/2 \text{ on every axis}, \quad
        c \sim \mathrm{Uniform}\{0, \dots, N - 1\}

    The network may not lean on one part of the picture. The box may reach over the edge, so that
    less is taken away there. Labels stay: what is hidden is still there.

    Args:
        pixels: side of the box, :math:`k`.
        value: :math:`v`: a number, or ``"mean"`` of each channel of the example.
        p: probability that an example loses a box at all.

    Shapes:
        - x: ``(B, C, *size)`` floats; returns: the same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import RandomErasing
        >>> y = RandomErasing(2, value=0.0)(torch.ones(3, 1, 8, 8))
        >>> bool((y.sum((1, 2, 3)) >= 60).all() and (y.sum((1, 2, 3)) < 64).all())
        True

    References:
        DeVries and Taylor (2017), Improved regularization of convolutional neural networks with
        cutout. https://arxiv.org/abs/1708.04552
    """

    pixels: int = 8
    _: KW_ONLY
    value: float | Literal["mean"] = "mean"
    p: float = 1.0

    def __post_init__(self) -> None:
        check_whole("pixels of RandomErasing", self.pixels, 0)
        if self.value != "mean":
            check_between("value of RandomErasing", self.value, -1e30, 1e30)
        check_between("p of RandomErasing", self.p, 0, 1)

    def adjust(self, x: Tensor, generator: Generator | None) -> Tensor:
        """Overwrites each example's own box."""
        axes = x.ndim - 2
        drawn = torch.rand(len(x), axes, generator=generator, dtype=torch.float64).to(x.device)
        inside = per_example(chances(x, self.p, generator=generator), x[:, 0])  # (B, 1, ...)
        for axis, count in enumerate(x.shape[2:]):
            start = (drawn[:, axis] * count).long() - self.pixels // 2
            place = torch.arange(count, device=x.device) - start.unsqueeze(1)  # (B, N)
            here = (place >= 0) & (place < self.pixels)
            inside = inside & here.view(len(x), *(1,) * axis, count, *(1,) * (axes - 1 - axis))
        if self.value == "mean":
            return torch.where(inside.unsqueeze(1), x.flatten(2).mean(2)[(..., *(None,) * axes)], x)
        return x.masked_fill(inside.unsqueeze(1), self.value)
