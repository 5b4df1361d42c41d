"""Blur: a Gaussian of random width."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ansatz.data.augmentation.augmentation import Photometric, per_example, uniform
from ansatz.data.augmentation.limits import check_between
from ansatz.data.augmentation.windows import padded
from ansatz.errors import UsageError


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
        >>> Blur(1.0, 2.0)(x)[0].std() < x.std()
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

    def adjust(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
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
