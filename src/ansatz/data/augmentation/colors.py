"""Changes of colour: brightness, contrast, saturation, hue, principal colours."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from ansatz.data.augmentation.augmentation import (
    Photometric,
    check_between,
    check_shares,
    per_example,
    uniform,
)
from ansatz.errors import UsageError

_LUMA = (0.299, 0.587, 0.114)  # how bright red, green and blue seem: ITU-R BT.601


def blended(x: Tensor, reference: Tensor | float, factors: Tensor, *, clip: bool = True) -> Tensor:
    r"""Scales the difference between images and a reference.

    .. math:: y = d + f (x - d)

    Args:
        x: images.
        reference: :math:`d`, broadcast against x.
        factors: :math:`f` of each image: 0 gives the reference, 1 the image.
        clip: cut at 0 and 1; without it, the factor 1/f undoes f.

    Shapes:
        - x: ``(B, C, *size)``; factors: ``(B,)``; returns: as x.

    References:
        Haeberli and Voorhies (1994), Image processing by linear interpolation and extrapolation.
    """
    y = reference + per_example(factors, x) * (x - reference)
    return y.clamp_(0, 1) if clip else y


def gray(x: Tensor) -> Tensor:
    """``(B, 1, *size)``: how bright each pixel seems; of other than three channels, their mean."""
    if x.shape[1] != 3:
        return x.mean(1, keepdim=True)
    weights = torch.tensor(_LUMA, dtype=x.dtype, device=x.device)
    return torch.einsum("bc...,c->b...", x, weights).unsqueeze(1)


@dataclass(frozen=True)
class _Enhancement(Photometric):
    """Blends each image with a reference image by a random factor."""

    strength: float = 0.2
    _: KW_ONLY
    clip: bool = True

    def __post_init__(self) -> None:
        check_between(f"strength of {type(self).__name__}", self.strength, 0, 1)

    @abstractmethod
    def reference(self, x: Tensor) -> Tensor | float:
        """The image that the factor 0 gives."""

    def adjust(self, x: Tensor, generator: Generator | None) -> Tensor:
        """Blends each example by its own draw."""
        if not self.strength:
            return x
        if self.clip:
            check_shares(x, type(self).__name__)
        factors = 1 + self.strength * uniform(x, generator=generator)
        return blended(x, self.reference(x), factors, clip=self.clip)


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
        >>> y = Brightness(0.5)(torch.full((9, 1, 2, 2), 0.5))
        >>> bool((y >= 0.25).all() and (y <= 0.75).all())
        True

    References:
        Haeberli and Voorhies (1994), Image processing by linear interpolation and extrapolation.
    """

    def reference(self, x: Tensor) -> Tensor | float:
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
        >>> bool((Contrast(1.0)(x) - x).abs().max() < 1e-6)
        True

    References:
        Haeberli and Voorhies (1994), Image processing by linear interpolation and extrapolation.
    """

    def reference(self, x: Tensor) -> Tensor | float:
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
        >>> Saturation(0.5)(torch.rand(2, 3, 4, 4)).shape
        torch.Size([2, 3, 4, 4])

    References:
        Haeberli and Voorhies (1994), Image processing by linear interpolation and extrapolation.
    """

    colors: ClassVar[bool] = True

    def reference(self, x: Tensor) -> Tensor | float:
        """The image in grey."""
        return gray(x)


@dataclass(frozen=True)
class Hue(Photometric):
    r"""Random hue: every colour of an image moved by one angle around the circle of colours.

    .. math:: h' = h + \delta \bmod 1, \qquad \delta \sim \mathrm{Uniform}(-s, s)

    Saturation and value of the HSV colours stay as they are, and so does what is grey.

    Args:
        strength: :math:`s`, as a part of the whole circle, in [0, 0.5].

    Shapes:
        - x: ``(B, 3, *size)`` floats in [0, 1], red, green, blue; returns: the same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Hue
        >>> Hue(0.1)(torch.rand(2, 3, 4, 4)).shape
        torch.Size([2, 3, 4, 4])

    References:
        Smith (1978), Color gamut transform pairs.
    """

    strength: float = 0.05

    colors: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_between("strength of Hue", self.strength, 0, 0.5)

    def adjust(self, x: Tensor, generator: Generator | None) -> Tensor:
        """Moves the colours of each example by its own draw."""
        if not self.strength:
            return x
        return hue_turned(x, self.strength * uniform(x, generator=generator))


def hue_turned(x: Tensor, turns: Tensor) -> Tensor:
    """Each image's hues moved by a part of the circle; 1 is all the way round."""
    red, green, blue = x.unbind(1)
    value, top = x.max(1)  # (B, *size)
    chroma = value - x.amin(1)
    safe = torch.where(chroma > 0, chroma, 1)  # grey has no hue: any will do
    sixths = torch.where(
        top == 0,
        (green - blue) / safe,
        torch.where(top == 1, (blue - red) / safe + 2, (red - green) / safe + 4),
    )
    sixths = sixths + 6 * per_example(turns, sixths)
    # Each channel stands at value and falls to value - chroma over one sixth of the circle.
    channels = []
    for start in (5, 3, 1):
        k = (start + sixths).remainder(6)
        channels.append(value - chroma * torch.minimum(k, 4 - k).clamp(0, 1))
    return torch.stack(channels, 1)


@dataclass(frozen=True)
class PcaColor(Photometric):
    r"""One shift of colour per image, along the principal colours of the training set.

    .. math:: y = x + \sum_i \alpha_i \lambda_i p_i, \qquad \alpha_i \sim N(0, s^2)

    with the eigenvalues :math:`\lambda_i` and eigenvectors :math:`p_i` of the covariance
    :math:`\Sigma` of the channels over all pixels. The shift has mean 0 and covariance
    :math:`s^2 \Sigma^2`: colours go where lighting makes them differ. Eigenvalues are those of
    pixels in [0, 1]; another unit would shift by another amount, since they grow with its square.

    Args:
        values: :math:`\lambda_i`; from :meth:`fit`.
        vectors: :math:`p_i`, one after another.
        scale: :math:`s`.
        clip: cut at 0 and 1 afterwards.

    Shapes:
        - x: ``(B, C, *size)`` floats with as many channels as values; returns: the same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import PcaColor
        >>> images = torch.rand(10, 3, 8, 8)
        >>> augment = PcaColor.fit(images)
        >>> augment(images).shape
        torch.Size([10, 3, 8, 8])

    References:
        Krizhevsky, Sutskever and Hinton (2012), ImageNet classification with deep convolutional
        neural networks, section 4.1.
    """

    values: Sequence[float]
    vectors: Sequence[Sequence[float]]
    _: KW_ONLY
    scale: float = 0.1
    clip: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(map(float, self.values)))
        object.__setattr__(self, "vectors", tuple(tuple(map(float, p)) for p in self.vectors))
        count = len(self.values)
        if not count or [len(p) for p in self.vectors] != [count] * count:
            raise UsageError(
                f"PcaColor needs as many vectors, each as long, as values ({count}); "
                "PcaColor.fit(images) finds them."
            )
        check_between("scale of PcaColor", self.scale, 0, 1e6)

    @classmethod
    def fit(
        cls, images: Tensor | Iterable[Tensor], *, scale: float = 0.1, clip: bool = False
    ) -> "PcaColor":
        """The principal colours of images ``(N, C, *size)``, bytes or in [0, 1], or of batches.

        Example:
            >>> import torch
            >>> from ansatz.data.augmentation import PcaColor
            >>> gray = torch.rand(20, 1, 4, 4).expand(-1, 3, -1, -1)
            >>> [round(abs(p), 3) for p in PcaColor.fit(gray).vectors[-1]]
            [0.577, 0.577, 0.577]
        """
        count, total, square = 0, torch.zeros(()), torch.zeros(())
        for batch in [images] if isinstance(images, Tensor) else images:
            pixels = batch.movedim(1, -1).flatten(0, -2).to(torch.float64)  # (pixels, C)
            pixels = pixels - 127.5 if batch.dtype == torch.uint8 else 255 * pixels - 127.5
            count, total = count + len(pixels), total + pixels.sum(0)
            square = square + pixels.T @ pixels
        if count < 2:
            raise UsageError("PcaColor.fit needs at least two pixels, got none to speak of.")
        mean = total / count
        covariance = (square / count - mean.outer(mean)) * (count / (count - 1)) / 255**2
        values, vectors = torch.linalg.eigh(covariance.cpu())
        return cls(values.clamp(min=0).tolist(), vectors.T.tolist(), scale=scale, clip=clip)

    def adjust(self, x: Tensor, generator: Generator | None) -> Tensor:
        """Shifts the colour of each example by its own draw."""
        channels = len(self.values)
        if x.shape[1] != channels:
            raise UsageError(f"PcaColor was fitted to {channels} channels, got {x.shape[1]}.")
        values = torch.tensor(self.values, dtype=x.dtype)
        vectors = torch.tensor(self.vectors, dtype=x.dtype)  # (C, C), a principal colour per row
        alpha = self.scale * torch.randn(len(x), channels, generator=generator, dtype=x.dtype)
        shifts = ((alpha * values) @ vectors).to(x.device)  # (B, C)
        y = x + shifts.view(*shifts.shape, *(1,) * (x.ndim - 2))
        return y.clamp_(0, 1) if self.clip else y
