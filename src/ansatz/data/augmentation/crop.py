"""Random crops."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ansatz.data.augmentation.augmentation import Augmentation
from ansatz.data.augmentation.limits import Padding, check_padding, check_whole
from ansatz.data.augmentation.windows import random_windows
from ansatz.errors import UsageError


@dataclass(frozen=True)
class Crop(Augmentation):
    r"""A window at a random place of the grid, which may be padded before.

    .. math:: y_i = x_{s + i}, \quad s \sim \mathrm{Uniform}\{-m, \dots, N + m - n\}

    with N pixels and a window of n pixels along an axis. A margin of 4 and windows of the image's
    own size are the usual augmentation of 32 x 32 photographs; windows smaller than the image are
    AlexNet's 224 of 256.

    Args:
        size: pixels of the window, :math:`n`: one number for all axes, or one each. None keeps the
            size of the grid, with a margin.
        margin: pixels of padding before and after, :math:`m`.
        padding: ``"reflect"`` (mirrored at the edge), ``"border"`` (the outermost pixel) or
            ``"zeros"``, whose labels are -1, unknown.

    Shapes:
        - x: ``(B, C, *size)``, any dtype; masks: without C, or None.
        - returns: ``(B, C, *n)`` and ``(B, *n)``.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Crop
        >>> x = torch.rand(2, 3, 32, 32)
        >>> Crop(24)(x)[0].shape, Crop(margin=4)(x)[0].shape
        (torch.Size([2, 3, 24, 24]), torch.Size([2, 3, 32, 32]))

    References:
        Krizhevsky, Sutskever and Hinton (2012), section 4.1; He et al. (2016), Deep residual
        learning for image recognition, section 4.2. https://arxiv.org/abs/1512.03385
    """

    size: int | Sequence[int] | None = None
    _: KW_ONLY
    margin: int = 0
    padding: Padding = "reflect"

    moves_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.size is not None and not isinstance(self.size, int):
            object.__setattr__(self, "size", tuple(self.size))
        for pixels in self.size if isinstance(self.size, tuple) else (self.size or 1,):
            check_whole("size of Crop", pixels, 1)
        check_whole("margin of Crop", self.margin, 0)
        check_padding("Crop", self.padding)

    def apply(
        self, x: Tensor, masks: Tensor | None, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor | None]:
        """A window of each example, by its own draw."""
        size = self._size(x)
        last = torch.tensor(x.shape[2:]) + 2 * self.margin - torch.tensor(size)
        if (last < 0).any():
            raise UsageError(
                f"Crop of {size} pixels with margin {self.margin} does not fit "
                f"a grid of {tuple(x.shape[2:])}."
            )
        # floor(u (last + 1)) is uniform on 0 ... last, for another last on each axis
        drawn = torch.rand(len(x), len(size), generator=generator, dtype=torch.float64)
        starts = (drawn * (last + 1)).long().to(x.device)
        margins = (self.margin,) * len(size)
        return random_windows(x, masks, starts, size, margins, self.padding)

    def _size(self, x: Tensor) -> tuple[int, ...]:
        if self.size is None:
            return tuple(x.shape[2:])
        size = (self.size,) * (x.ndim - 2) if isinstance(self.size, int) else tuple(self.size)
        if len(size) != x.ndim - 2:
            raise UsageError(f"size of Crop has {len(size)} axes, the grid has {x.ndim - 2}.")
        return size
