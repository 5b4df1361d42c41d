"""Noise on every pixel."""

import warnings
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from ansatz.data.augmentation.augmentation import Photometric, per_example
from ansatz.data.augmentation.limits import check_between, check_shares


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
        >>> y, _ = Noise(0.1)(torch.zeros(1, 1, 100, 100))
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

    def adjust(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
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
        spread = float(x[:8].std(correction=0))
        if 0 < spread < self.sigma / 10:
            warnings.warn(
                f"Noise of sigma {self.sigma:g} drowns x, whose spread is {spread:.2g}: "
                "relative=True makes sigma a share of it.",
                stacklevel=5,
            )
