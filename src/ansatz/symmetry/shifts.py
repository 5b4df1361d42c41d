"""Shifts of grids and sequences: around the edge exactly, over it approximately."""

from typing import Literal

import torch
from torch import Tensor

from ansatz.symmetry.group import Group, grid_axes, whole


class CyclicShift(Group):
    r"""Shifts of a grid that leave on one side and come back on the other: the torus.

    .. math:: (g x)_{c,i} = x_{c,\,(i - g) \bmod n}

    with the shift :math:`g` = an element and the size :math:`n` of each axis. Convolutions with
    circular padding commute with it exactly; strides do for multiples of the stride.

    Args:
        stride: shifts are multiples of this many pixels.
        axes: that are shifted; by default all spatial axes of ``(B, C, *size)``.

    Shapes:
        - x: ``(B, C, *size)``.
        - element: a tuple of whole numbers, one per axis.

    Example:
        >>> import torch
        >>> from ansatz.symmetry import CyclicShift
        >>> CyclicShift().act((1,), torch.tensor([[[1, 2, 3]]]))
        tensor([[[3, 1, 2]]])

    References:
        Cohen and Welling (2016), Group equivariant convolutional networks, section 3.
    """

    name = "cyclic_shift"

    def __init__(self, *, stride: int = 1, axes: tuple[int, ...] | None = None) -> None:
        if stride < 1:
            raise ValueError(f"stride of {self.name} must be 1 or more, got {stride}.")
        self.stride, self.axes = stride, axes

    def identity(self, x: Tensor) -> tuple[int, ...]:
        return (0,) * len(self._axes(x))

    def sample(self, x: Tensor, generator: torch.Generator | None = None) -> tuple[int, ...]:
        counts = [-(-x.shape[axis] // self.stride) for axis in self._axes(x)]
        return tuple(self.stride * whole(count, 1, generator)[0] for count in counts)

    def act(self, element: tuple[int, ...], x: Tensor) -> Tensor:
        return x.roll(element, self._axes(x))

    def inverse(self, element: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(-g for g in element)

    def compose(self, first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(g + h for g, h in zip(first, second, strict=True))

    def _axes(self, x: Tensor) -> tuple[int, ...]:
        return grid_axes(self.name, x) if self.axes is None else self.axes


class TimeShift(CyclicShift):
    r"""Circular shifts of sequences along time.

    .. math:: (g x)_t = x_{(t - g) \bmod T}

    Args:
        stride: shifts are multiples of this many steps.

    Shapes:
        - x: ``(B, T, ...)``.
        - element: a tuple of one whole number.

    Example:
        >>> import torch
        >>> from ansatz.symmetry import TimeShift
        >>> TimeShift().act((1,), torch.tensor([[1, 2, 3]]))
        tensor([[3, 1, 2]])

    References:
        Oppenheim and Schafer (2009), Discrete-time signal processing, section 8.6.2.
    """

    name = "time_shift"

    def __init__(self, *, stride: int = 1) -> None:
        super().__init__(stride=stride, axes=(1,))


class Shift(CyclicShift):
    r"""Shifts of a grid within its frame: approximate, as some pixels leave and others are made up.

    .. math:: (g x)_{c,i} = x_{c,\, i - g}, \qquad |g| \le r

    with :math:`r` = ``reach``. What comes in is the nearest pixel of the edge, or zero.
    Dense outputs are compared without a ``margin`` on every side, where the frame has no say: it
    should be at least the reach plus the radius of the network's receptive field.

    Args:
        reach: pixels that a shift may go each way.
        fill: what comes in: ``"edge"``, the nearest pixel, or ``"zero"``.
        margin: pixels left out on each side of dense outputs; by default ``reach``.

    Shapes:
        - x: ``(B, C, *size)``.
        - element: a tuple of whole numbers, one per spatial axis.

    Example:
        >>> import torch
        >>> from ansatz.symmetry import Shift
        >>> Shift(fill="zero").act((1,), torch.tensor([[[1, 2, 3]]]))
        tensor([[[0, 1, 2]]])

    References:
        Zhang (2019), Making convolutional networks shift-invariant again, section 3.
    """

    name = "shift"
    exact = False

    def __init__(
        self, *, reach: int = 2, fill: Literal["edge", "zero"] = "edge", margin: int | None = None
    ) -> None:
        super().__init__()
        if reach < 1:
            raise ValueError(f"reach of shift must be 1 or more, got {reach}.")
        if fill not in ("edge", "zero"):
            raise ValueError(f"fill of shift must be edge or zero, got {fill!r}.")
        self.reach, self.fill = reach, fill
        self.margin = reach if margin is None else margin

    def sample(self, x: Tensor, generator: torch.Generator | None = None) -> tuple[int, ...]:
        drawn = whole(2 * self.reach + 1, len(self._axes(x)), generator)
        return tuple(g - self.reach for g in drawn)

    def act(self, element: tuple[int, ...], x: Tensor) -> Tensor:
        for g, axis in zip(element, self._axes(x), strict=True):
            size = x.shape[axis]
            source = torch.arange(size, device=x.device) - g
            x = x.index_select(axis, source.clamp(0, size - 1))
            if self.fill == "zero":
                there = (source >= 0) & (source < size)
                x = x * there.reshape(-1, *(1,) * (x.ndim - 1 - axis))
        return x

    def inside(self, y: Tensor) -> Tensor | None:
        if y.ndim < 3:
            return None
        kept = torch.ones(y.shape[2:], dtype=torch.bool, device=y.device)
        for axis, size in enumerate(kept.shape):
            if size <= 2 * self.margin:
                raise ValueError(
                    f"shift leaves {self.margin} pixels out on each side, and the outputs have "
                    f"{size}; give a smaller margin or reach."
                )
            place = torch.arange(size, device=y.device)
            within = (place >= self.margin) & (place < size - self.margin)
            kept &= within.reshape(-1, *(1,) * (kept.ndim - 1 - axis))
        return kept
