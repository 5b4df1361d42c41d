"""Rotations of images by any angle, which a grid of cells knows only approximately."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from ansatz.symmetry.group import Group, grid_axes, uniform


class Rotation(Group):
    r"""Rotations of images about their centre, :math:`SO(2)`, anticlockwise: approximate.

    .. math:: (g x)(p) = x(R_\theta^{-1} p), \qquad R_\theta =
        \begin{pmatrix} \cos\theta & -\sin\theta \\ \sin\theta & \cos\theta \end{pmatrix}

    with the angle :math:`\theta` = an element, in radians. Between cells the image is interpolated
    bilinearly, an error of second order in the width of a cell; outside the frame it is zero, so
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
                f"{tuple(x.shape)} of {x.dtype}. Quarter turns of any grid: rotation90."
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
        reach = max(min(y.shape[2:]) / 2 - 1, 0.5)  # a cell is blended with its neighbours
        return rows[:, None] ** 2 + columns**2 <= reach**2
