"""Flips and quarter turns of grids: they move cells onto cells, so nothing is interpolated."""

import itertools

import torch
from torch import Tensor

from ansatz.symmetry.group import Group, grid_axes, whole


class Flip(Group):
    r"""Mirror images: each axis is reversed or left, :math:`(\mathbb{Z}_2)^k`.

    .. math:: (g x)_i = x_{n - 1 - i} \quad \text{if } g = 1

    Args:
        axes: that may be reversed; the default, the last one, is left and right of an image.

    Shapes:
        - x: ``(B, C, *size)``.
        - element: a tuple of 0 or 1, one per axis.

    Example:
        >>> import torch
        >>> from ansatz.symmetry import Flip
        >>> Flip().act((1,), torch.tensor([[[1, 2, 3]]]))
        tensor([[[3, 2, 1]]])

    References:
        Cohen and Welling (2016), Group equivariant convolutional networks, section 4.
    """

    name = "flip"

    def __init__(self, *, axes: tuple[int, ...] = (-1,)) -> None:
        self.axes = axes

    def identity(self, x: Tensor) -> tuple[int, ...]:
        return (0,) * len(self.axes)

    def sample(self, x: Tensor, generator: torch.Generator | None = None) -> tuple[int, ...]:
        return tuple(whole(2, len(self.axes), generator))

    def others(self, x: Tensor) -> list[tuple[int, ...]]:
        return list(itertools.product((0, 1), repeat=len(self.axes)))[1:]

    def act(self, element: tuple[int, ...], x: Tensor) -> Tensor:
        cells = grid_axes(self.name, x)
        turned = [axis for g, axis in zip(element, self.axes, strict=True) if g]
        if any(axis % x.ndim not in cells for axis in turned):
            raise ValueError(f"axes of flip must be among {cells} of x, got {self.axes}.")
        return x.flip(turned)

    def inverse(self, element: tuple[int, ...]) -> tuple[int, ...]:
        return element

    def compose(self, first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(g ^ h for g, h in zip(first, second, strict=True))


class Rotation90(Group):
    r"""Quarter turns of an image, anticlockwise: the cyclic group :math:`C_4`.

    .. math:: g \in \{0, 1, 2, 3\}, \qquad g h = (g + h) \bmod 4

    Args:
        axes: the plane that turns, from the first axis towards the second; the default is that of
            images, and the last two axes of volumes.

    Shapes:
        - x: ``(B, C, H, W)`` or ``(B, C, D, H, W)``; a plane that is not square changes its shape.
        - element: a whole number.

    Example:
        >>> import torch
        >>> from ansatz.symmetry import Rotation90
        >>> Rotation90().act(1, torch.tensor([[[[1, 2], [3, 4]]]]))
        tensor([[[[2, 4],
                  [1, 3]]]])

    References:
        Cohen and Welling (2016), Group equivariant convolutional networks, section 4.1.
    """

    name = "rotation90"

    def __init__(self, *, axes: tuple[int, int] = (-2, -1)) -> None:
        self.axes = axes

    def identity(self, x: Tensor) -> int:
        return 0

    def sample(self, x: Tensor, generator: torch.Generator | None = None) -> int:
        return whole(4, 1, generator)[0]

    def others(self, x: Tensor) -> list[int]:
        return [1, 2, 3]

    def act(self, element: int, x: Tensor) -> Tensor:
        grid_axes(self.name, x, 2)
        return x.rot90(element, self.axes)

    def inverse(self, element: int) -> int:
        return -element % 4

    def compose(self, first: int, second: int) -> int:
        return (first + second) % 4


class Dihedral(Group):
    r"""Quarter turns and mirror images of a square: the dihedral group :math:`D_4` of eight.

    .. math:: r^k s^f \cdot r^l s^m = r^{k + (-1)^f l}\, s^{f + m}

    with :math:`r` a quarter turn anticlockwise and :math:`s` left for right, applied first.

    Args:
        axes: the plane.

    Shapes:
        - x: ``(B, C, H, W)`` or ``(B, C, D, H, W)``.
        - element: (k, f), quarter turns and whether it is mirrored before.

    Example:
        >>> import torch
        >>> from ansatz.symmetry import Dihedral
        >>> Dihedral().act((1, 1), torch.tensor([[[[1, 2], [3, 4]]]]))
        tensor([[[[1, 3],
                  [2, 4]]]])

    References:
        Cohen and Welling (2016), Group equivariant convolutional networks, section 4.2.
    """

    name = "dihedral"

    def __init__(self, *, axes: tuple[int, int] = (-2, -1)) -> None:
        self.axes = axes

    def identity(self, x: Tensor) -> tuple[int, int]:
        return 0, 0

    def sample(self, x: Tensor, generator: torch.Generator | None = None) -> tuple[int, int]:
        return whole(4, 1, generator)[0], whole(2, 1, generator)[0]

    def others(self, x: Tensor) -> list[tuple[int, int]]:
        return [(turns, mirrored) for turns in range(4) for mirrored in range(2)][1:]

    def act(self, element: tuple[int, int], x: Tensor) -> Tensor:
        grid_axes(self.name, x, 2)
        turns, mirrored = element
        return (x.flip(self.axes[1]) if mirrored else x).rot90(turns, self.axes)

    def inverse(self, element: tuple[int, int]) -> tuple[int, int]:
        turns, mirrored = element
        return (turns if mirrored else -turns % 4), mirrored

    def compose(self, first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
        (k, f), (turns, m) = first, second
        return (k + (-turns if f else turns)) % 4, f ^ m
