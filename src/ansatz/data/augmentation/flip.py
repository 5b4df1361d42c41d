"""Mirror images."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ansatz.data.augmentation.augmentation import Augmentation, chances, per_example
from ansatz.data.augmentation.limits import check_between
from ansatz.errors import UsageError


@dataclass(frozen=True)
class Flip(Augmentation):
    r"""Mirror images: each axis of a grid reversed with probability p.

    .. math:: y_i = x_{N - 1 - i} \text{ with probability } p, \quad x_i \text{ otherwise}

    Right where left and right mean the same (photographs, cells), wrong for digits and letters.
    Flipping twice gives the image back, bit for bit.

    Args:
        axes: which axes of the grid, counted from the last one: -1 is left and right, -2 top and
            bottom, -3 front and back. Each is drawn on its own.
        p: probability.

    Shapes:
        - x: ``(B, C, *size)``, any dtype; masks: ``(B, *size)`` or None; returns: the same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Flip
        >>> Flip(p=1.0)(torch.arange(3.0).view(1, 1, 3))[0]
        tensor([[[2., 1., 0.]]])

    References:
        Krizhevsky, Sutskever and Hinton (2012), ImageNet classification with deep convolutional
        neural networks, section 4.1.
    """

    axes: Sequence[int] = (-1,)
    _: KW_ONLY
    p: float = 0.5

    moves_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", tuple(self.axes))  # from a JSON list, too
        if not set(self.axes) <= {-1, -2, -3} or len(set(self.axes)) < len(self.axes):
            raise UsageError(f"axes of Flip must be some of -1, -2, -3, got {self.axes!r:.40}.")
        check_between("p of Flip", self.p, 0, 1)

    def apply(
        self, x: Tensor, masks: Tensor | None, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor | None]:
        """Flips what the draw says."""
        if min(self.axes, default=-1) < 2 - x.ndim:
            raise UsageError(f"Flip along axis {min(self.axes)} needs a grid that has it.")
        flipped = chances(x, self.p, len(self.axes), generator=generator)
        for axis, chosen in zip(self.axes, flipped.unbind(1), strict=True):
            x = torch.where(per_example(chosen, x), x.flip(axis), x)
            if masks is not None:
                masks = torch.where(per_example(chosen, masks), masks.flip(axis), masks)
        return x, masks
