"""Rotations and reflections of images: by 90 degrees, and by any angle."""

import itertools
import math

import torch
from torch import Tensor
from torch.nn import functional

from ansatz.symmetry.group import Group, grid_axes, uniform, whole


class Flip(Group):
    r"""Flips: each axis is reversed or left, :math:`(\mathbb{Z}_2)^k`.

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
        spatial = grid_axes(self.name, x)
        flipped = [axis for g, axis in zip(element, self.axes, strict=True) if g]
        if any(axis % x.ndim not in spatial for axis in flipped):
            raise ValueError(f"axes of flip must be among {spatial} of x, got {self.axes}.")
        return x.flip(flipped)

    def inverse(self, element: tuple[int, ...]) -> tuple[int, ...]:
        return element

    def compose(self, first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(g ^ h for g, h in zip(first, second, strict=True))


class Rotation90(Group):
    r"""Rotations of an image by 90 degrees, anticlockwise: the cyclic group :math:`C_4`.

    .. math:: g \in \{0, 1, 2, 3\}, \qquad g h = (g + h) \bmod 4

    Args:
        axes: the plane of rotation, from the first axis towards the second; the default is that of
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
    r"""Rotations by 90 degrees and flips of a square: the dihedral group :math:`D_4` of eight.

    .. math:: r^k s^f \cdot r^l s^m = r^{k + (-1)^f l}\, s^{f + m}

    with :math:`r` a rotation by 90 degrees anticlockwise and :math:`s` a flip, applied first.

    Args:
        axes: the plane.

    Shapes:
        - x: ``(B, C, H, W)`` or ``(B, C, D, H, W)``.
        - element: (k, f), rotations by 90 degrees and whether it is flipped before.

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


class Rotation(Group):
    r"""Rotations of images about their centre, :math:`SO(2)`, anticlockwise: approximate.

    .. math:: (g x)(p) = x(R_\theta^{-1} p), \qquad R_\theta =
        \begin{pmatrix} \cos\theta & -\sin\theta \\ \sin\theta & \cos\theta \end{pmatrix}

    with the angle :math:`\theta` = an element, in radians. Between pixels the image is interpolated
    bilinearly, an error of second order in the width of a pixel; outside the frame it is zero, so
    corners are lost. What certifies to rounding under ``rotation90`` shows here what the
    interpolation costs. Dense outputs are compared within the largest disc.

    Args:
        limit: the largest angle either way, in degrees; 180 is the whole group, less is a
            neighbourhood of the identity.

    Shapes:
        - x: ``(B, C, H, W)``, floating point.
        - element: a number, radians.

    Example:
        >>> import math, torch
        >>> from ansatz.symmetry import Rotation
        >>> x = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> Rotation().act(math.pi / 2, x).round(decimals=3)
        tensor([[[[2., 4.],
                  [1., 3.]]]])

    References:
        Weiler and Cesa (2019), General E(2)-equivariant steerable CNNs, section 2.
    """

    name = "rotation"
    exact = False

    def __init__(self, *, limit: float = 180.0) -> None:
        if not 0 < limit <= 180:
            raise ValueError(f"limit of rotation must be in (0, 180] degrees, got {limit}.")
        self.limit = limit

    def identity(self, x: Tensor) -> float:
        return 0.0

    def sample(self, x: Tensor, generator: torch.Generator | None = None) -> float:
        return math.radians(self.limit) * (2 * uniform(generator) - 1)

    def act(self, element: float, x: Tensor) -> Tensor:
        if len(grid_axes(self.name, x, 2)) != 2 or not x.is_floating_point():
            raise ValueError(
                "rotation interpolates images (B, C, H, W) of floating point, got "
                f"{tuple(x.shape)} of {x.dtype}. For rotations by 90 degrees take rotation90."
            )
        height, width = x.shape[2:]
        cos, sin = math.cos(element), math.sin(element)
        # Rows run down, so anticlockwise to the eye is clockwise in (column, row); sampling
        # places go the other way again. Coordinates run from -1 to 1 along either side.
        there = [[cos, -sin * height / width, 0.0], [sin * width / height, cos, 0.0]]
        theta = torch.tensor([there], dtype=x.dtype, device=x.device)
        places = functional.affine_grid(theta, [1, 1, height, width], align_corners=False)
        return functional.grid_sample(x, places.expand(len(x), -1, -1, -1), align_corners=False)

    def inverse(self, element: float) -> float:
        return -element

    def compose(self, first: float, second: float) -> float:
        return math.remainder(first + second, 2 * math.pi)

    def inside(self, y: Tensor) -> Tensor | None:
        if y.ndim != 4:
            return None
        rows, columns = (torch.arange(n, device=y.device) - (n - 1) / 2 for n in y.shape[2:])
        reach = max(min(y.shape[2:]) / 2 - 1, 0.5)  # a pixel is blended with its neighbours
        return rows[:, None] ** 2 + columns**2 <= reach**2
