"""Quarter turns, exact."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ansatz.data.augmentation.augmentation import Augmentation
from ansatz.errors import UsageError


@dataclass(frozen=True)
class Rotate90(Augmentation):
    r"""Quarter turns of the last two axes: 0, 90, 180 or 270 degrees, each as likely.

    .. math:: y_{i,j} = x_{j,\, N-1-i} \text{ for one of them}

    Pixels move and none is computed: four times the same turn is the identity, bit for bit. Right
    where no direction is special (cells under a microscope, pictures from above). Together with
    :class:`Flip` these are the eight symmetries of a square.

    Shapes:
        - x: ``(B, C, N, N)`` or ``(B, C, D, N, N)``, any dtype; masks: without C, or None; returns:
          the same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Rotate90
        >>> x = torch.rand(3, 1, 4, 4)
        >>> y, _ = Rotate90()(x, None, torch.Generator().manual_seed(0))
        >>> any(torch.equal(y[0], x[0].rot90(k, (-2, -1))) for k in range(4))
        True

    References:
        Ronneberger, Fischer and Brox (2015), U-Net, section 3.1. https://arxiv.org/abs/1505.04597
    """

    moves_only: ClassVar[bool] = True
    grid_axes: ClassVar[tuple[int, ...]] = (2, 3)

    def apply(
        self, x: Tensor, masks: Tensor | None, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor | None]:
        """Turns each example by its own draw."""
        if x.shape[-1] != x.shape[-2]:
            raise UsageError(f"Rotate90 needs square grids, got {tuple(x.shape[-2:])}. Try Rotate.")
        turns = torch.randint(4, (len(x),), generator=generator).to(x.device)
        return rotate_quarters(x, turns), None if masks is None else rotate_quarters(masks, turns)


def rotate_quarters(x: Tensor, turns: Tensor) -> Tensor:
    """Each example by its number of quarter turns, against the clock."""
    y = x.clone()
    for turn in (1, 2, 3):
        rows = (turns == turn).nonzero().squeeze(1)
        y[rows] = x[rows].rot90(turn, (-2, -1))
    return y
