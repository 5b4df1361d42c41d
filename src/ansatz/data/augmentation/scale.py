"""Enlarging and shrinking."""

from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from ansatz.data.augmentation.affine import Affine
from ansatz.data.augmentation.augmentation import Augmentation
from ansatz.data.augmentation.limits import Interpolation, Padding


@dataclass(frozen=True)
class Scale(Augmentation):
    r"""Random enlarging and shrinking around the middle of the grid.

    .. math:: y(z p) = x(p), \qquad \log z \sim \mathrm{Uniform}(-\log(1 + s), \log(1 + s))

    A factor and its inverse are as likely as each other. Of a signal it is a change of tempo.

    Args:
        scale: :math:`s`: 0.1 gives factors from 1/1.1 to 1.1.
        padding: what is read outside: ``"reflect"`` (mirrored at the edge), ``"border"`` (the
            outermost pixel) or ``"zeros"``, whose labels are -1, unknown.
        interpolation: ``"linear"`` or ``"nearest"`` between pixels; labels are the nearest's.

    Shapes:
        - x: ``(B, C, *size)`` floats; masks: ``(B, *size)`` or None; returns: the same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Scale
        >>> Scale(0.2)(torch.rand(2, 1, 100))[0].shape
        torch.Size([2, 1, 100])

    References:
        Simard, Steinkraus and Platt (2003), Best practices for convolutional neural networks
        applied to visual document analysis, section 2.
    """

    scale: float = 0.1
    _: KW_ONLY
    padding: Padding = "reflect"
    interpolation: Interpolation = "linear"

    def __post_init__(self) -> None:
        self._affine()  # refuses what it would refuse

    def apply(
        self, x: Tensor, masks: Tensor | None, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor | None]:
        """Scales each example by its own draw."""
        return self._affine().apply(x, masks, generator)

    def _affine(self) -> Affine:
        return Affine(scale=self.scale, padding=self.padding, interpolation=self.interpolation)
