"""Brightness, contrast and saturation: more or less of what sets an image off from a dull one."""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ansatz.data.augmentation.augmentation import Photometric, per_example, uniform
from ansatz.data.augmentation.limits import check_between, check_shares

_LUMA = (0.299, 0.587, 0.114)  # how bright red, green and blue seem: ITU-R BT.601


def blended(x: Tensor, dull: Tensor | float, factors: Tensor, *, clip: bool = True) -> Tensor:
    r"""The image's distance from a dull one, times a factor.

    .. math:: y = d + f (x - d)

    Args:
        x: images.
        dull: :math:`d`, broadcast against x.
        factors: :math:`f` of each image: 0 gives the dull one, 1 the image.
        clip: cut at 0 and 1; without it, the factor 1/f undoes f.

    Shapes:
        - x: ``(B, C, *size)``; factors: ``(B,)``; returns: as x.

    References:
        Haeberli and Voorhies (1994), Image processing by linear interpolation and extrapolation.
    """
    y = dull + per_example(factors, x) * (x - dull)
    return y.clamp_(0, 1) if clip else y


def gray(x: Tensor) -> Tensor:
    """``(B, 1, *size)``: how bright each pixel seems; of other than three channels, their mean."""
    if x.shape[1] != 3:
        return x.mean(1, keepdim=True)
    weights = torch.tensor(_LUMA, dtype=x.dtype, device=x.device)
    return torch.einsum("bc...,c->b...", x, weights).unsqueeze(1)


@dataclass(frozen=True)
class _Enhancement(Photometric):
    """Each image blended with its dull version by a random factor."""

    strength: float = 0.2
    _: KW_ONLY
    clip: bool = True

    def __post_init__(self) -> None:
        check_between(f"strength of {type(self).__name__}", self.strength, 0, 1)

    @abstractmethod
    def dull(self, x: Tensor) -> Tensor | float:
        """The image that the factor 0 gives."""

    def adjust(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        """Blends each example by its own draw."""
        if not self.strength:
            return x
        if self.clip:
            check_shares(x, type(self).__name__)
        factors = 1 + self.strength * uniform(x, generator=generator)
        return blended(x, self.dull(x), factors, clip=self.clip)


class Brightness(_Enhancement):
    r"""Random brightness: all values times a factor.

    .. math:: y = f x, \qquad f \sim \mathrm{Uniform}(1 - s, 1 + s)

    Args:
        strength: :math:`s`, in [0, 1].
        clip: cut at 0 and 1. Without it a signal of any range may be amplified.

    Shapes:
        - x: ``(B, C, *size)`` floats; returns: the same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Brightness
        >>> y, _ = Brightness(0.5)(torch.full((9, 1, 2, 2), 0.5))
        >>> bool((y >= 0.25).all() and (y <= 0.75).all())
        True

    References:
        Haeberli and Voorhies (1994), Image processing by linear interpolation and extrapolation.
    """

    def dull(self, x: Tensor) -> Tensor | float:
        """Black."""
        return 0.0


class Contrast(_Enhancement):
    r"""Random contrast: deviations from the image's mean grey, times a factor.

    .. math:: y = m + f (x - m), \qquad f \sim \mathrm{Uniform}(1 - s, 1 + s)

    with m the mean of 0.299 red + 0.587 green + 0.114 blue over the image.

    Args:
        strength: :math:`s`, in [0, 1].
        clip: cut at 0 and 1.

    Shapes:
        - x: ``(B, C, *size)`` floats; returns: the same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Contrast
        >>> x = torch.full((2, 3, 4, 4), 0.3)  # a flat image has no contrast to change
        >>> bool((Contrast(1.0)(x)[0] - x).abs().max() < 1e-6)
        True

    References:
        Haeberli and Voorhies (1994), Image processing by linear interpolation and extrapolation.
    """

    def dull(self, x: Tensor) -> Tensor | float:
        """The image's mean grey."""
        return gray(x).mean(tuple(range(1, x.ndim)), keepdim=True)


class Saturation(_Enhancement):
    r"""Random saturation: deviations from each pixel's own grey, times a factor.

    .. math:: y_c = g + f (x_c - g), \qquad g = 0.299 x_R + 0.587 x_G + 0.114 x_B

    with :math:`f \sim \mathrm{Uniform}(1 - s, 1 + s)`.

    Args:
        strength: :math:`s`, in [0, 1].
        clip: cut at 0 and 1.

    Shapes:
        - x: ``(B, 3, *size)`` floats, red, green, blue; returns: the same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Saturation
        >>> Saturation(0.5)(torch.rand(2, 3, 4, 4))[0].shape
        torch.Size([2, 3, 4, 4])

    References:
        Haeberli and Voorhies (1994), Image processing by linear interpolation and extrapolation.
    """

    colors: ClassVar[bool] = True

    def dull(self, x: Tensor) -> Tensor | float:
        """The image in grey."""
        return gray(x)
