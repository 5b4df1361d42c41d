"""AlexNet's colour noise: along the principal colours of the training images."""

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from ansatz.data.augmentation.augmentation import Photometric
from ansatz.data.augmentation.limits import check_between
from ansatz.errors import UsageError


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
        spread: :math:`s`.
        clip: cut at 0 and 1 afterwards.

    Shapes:
        - x: ``(B, C, *size)`` floats with as many channels as values; returns: the same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import PcaColor
        >>> images = torch.rand(10, 3, 8, 8)
        >>> augment = PcaColor.fit(images)
        >>> augment(images)[0].shape
        torch.Size([10, 3, 8, 8])

    References:
        Krizhevsky, Sutskever and Hinton (2012), ImageNet classification with deep convolutional
        neural networks, section 4.1.
    """

    values: Sequence[float]
    vectors: Sequence[Sequence[float]]
    _: KW_ONLY
    spread: float = 0.1
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
        check_between("spread of PcaColor", self.spread, 0, 1e6)

    @classmethod
    def fit(
        cls, images: Tensor | Iterable[Tensor], *, spread: float = 0.1, clip: bool = False
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
        return cls(values.clamp(min=0).tolist(), vectors.T.tolist(), spread=spread, clip=clip)

    def adjust(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        """Shifts the colour of each example by its own draw."""
        channels = len(self.values)
        if x.shape[1] != channels:
            raise UsageError(f"PcaColor was fitted to {channels} channels, got {x.shape[1]}.")
        values = torch.tensor(self.values, dtype=x.dtype)
        vectors = torch.tensor(self.vectors, dtype=x.dtype)  # (C, C), a principal colour per row
        alpha = self.spread * torch.randn(len(x), channels, generator=generator, dtype=x.dtype)
        shifts = ((alpha * values) @ vectors).to(x.device)  # (B, C)
        y = x + shifts.view(*shifts.shape, *(1,) * (x.ndim - 2))
        return y.clamp_(0, 1) if self.clip else y
