"""Shifts by whole pixels."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ansatz.data.augmentation.augmentation import Augmentation
from ansatz.data.augmentation.limits import Padding, check_padding, check_whole
from ansatz.data.augmentation.windows import random_windows


@dataclass(frozen=True)
class Shift(Augmentation):
    r"""Shifts by whole pixels, up to so many along each axis.

    .. math:: y_i = x_{i - s}, \qquad s \sim \mathrm{Uniform}\{-k, \dots, k\}

    No value is computed, so bytes stay bytes and nothing is blurred.

    Args:
        pixels: :math:`k`.
        padding: what comes in from outside: ``"reflect"`` (mirrored at the edge), ``"border"``
            (the outermost pixel) or ``"zeros"``, whose labels are -1, unknown.

    Shapes:
        - x: ``(B, C, *size)``, any dtype; masks: ``(B, *size)`` or None; returns: the same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Shift
        >>> y, _ = Shift(1, padding="zeros")(torch.ones(100, 1, 4))
        >>> sorted(set(y.sum((1, 2)).tolist()))
        [3.0, 4.0]

    References:
        LeCun et al. (1998), Gradient-based learning applied to document recognition, section III.
    """

    pixels: int = 2
    _: KW_ONLY
    padding: Padding = "reflect"

    moves_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_whole("pixels of Shift", self.pixels, 0)
        check_padding("Shift", self.padding)

    def apply(
        self, x: Tensor, masks: Tensor | None, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor | None]:
        """Shifts each example by its own draw."""
        axes = x.ndim - 2
        starts = torch.randint(2 * self.pixels + 1, (len(x), axes), generator=generator).to(
            x.device
        )
        margins = (self.pixels,) * axes
        return random_windows(x, masks, starts, x.shape[2:], margins, self.padding)
