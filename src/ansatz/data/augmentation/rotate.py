"""Rotations by any angle."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ansatz.data.augmentation.affine import Affine
from ansatz.data.augmentation.augmentation import Augmentation
from ansatz.data.augmentation.limits import Interpolation, Padding


@dataclass(frozen=True)
class Rotate(Augmentation):
    r"""Random rotations around the middle of the image.

    .. math:: y(R_\varphi p) = x(p), \qquad \varphi \sim \mathrm{Uniform}(-\theta, \theta)

    A volume is turned in the plane of its last two axes. For quarter turns see :class:`Rotate90`,
    and where there is more to do than to rotate, :class:`Affine` does it in one resampling.

    Args:
        degrees: :math:`\theta`.
        padding: what is read outside: ``"reflect"`` (mirrored at the edge), ``"border"`` (the
            outermost pixel) or ``"zeros"``, whose labels are -1, unknown.
        interpolation: ``"linear"`` or ``"nearest"`` between pixels; labels are the nearest's.

    Shapes:
        - x: ``(B, C, H, W)`` or ``(B, C, D, H, W)`` floats; masks: without C, or None; returns: the
          same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Rotate
        >>> Rotate(15)(torch.rand(2, 3, 8, 8))[0].shape
        torch.Size([2, 3, 8, 8])

    References:
        Simard, Steinkraus and Platt (2003), Best practices for convolutional neural networks
        applied to visual document analysis, section 2.
    """

    degrees: float = 10.0
    _: KW_ONLY
    padding: Padding = "reflect"
    interpolation: Interpolation = "linear"

    grid_axes: ClassVar[tuple[int, ...]] = (2, 3)

    def __post_init__(self) -> None:
        self._affine()  # refuses what it would refuse

    def apply(
        self, x: Tensor, masks: Tensor | None, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor | None]:
        """Rotates each example by its own draw."""
        return self._affine().apply(x, masks, generator)

    def _affine(self) -> Affine:
        return Affine(self.degrees, padding=self.padding, interpolation=self.interpolation)
