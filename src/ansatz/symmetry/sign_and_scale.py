"""Groups that act on the numbers themselves: sign and scale."""

import math

import torch
from torch import Tensor

from ansatz.symmetry.group import Group, normal, uniform


class Sign(Group):
    r"""Plus or minus: odd functions commute with it, even ones are invariant.

    .. math:: g x = \pm x

    Args:
        axis: None for one sign; else each entry along this axis has its own (eigenvectors, whose
            signs carry no meaning).

    Shapes:
        - x: any.
        - element: ``()`` or the length of the axis, of -1 and 1.

    Example:
        >>> import torch
        >>> from ansatz.symmetry import Sign
        >>> Sign().act(torch.tensor(-1.0), torch.tensor([[1.0, -2.0]]))
        tensor([[-1.,  2.]])

    References:
        Lim et al. (2023), Sign and basis invariant networks. https://arxiv.org/abs/2202.13013
    """

    name = "sign"

    def __init__(self, *, axis: int | None = None) -> None:
        self.axis = axis

    def identity(self, x: Tensor) -> Tensor:
        return torch.ones(() if self.axis is None else x.shape[self.axis], dtype=torch.float64)

    def sample(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        shape = () if self.axis is None else (x.shape[self.axis],)
        drawn = normal(*shape, generator=generator)
        return torch.where(drawn < 0, -1.0, 1.0)

    def others(self, x: Tensor) -> list[Tensor] | None:
        return [-self.identity(x)] if self.axis is None else None

    def act(self, element: Tensor, x: Tensor) -> Tensor:
        g = element.to(x.device, x.dtype)
        if self.axis is None:
            return g * x
        return g.reshape(-1, *(1,) * (x.ndim - 1 - self.axis % x.ndim)) * x

    def inverse(self, element: Tensor) -> Tensor:
        return element

    def compose(self, first: Tensor, second: Tensor) -> Tensor:
        return first * second


class Scaling(Group):
    r"""Changes of unit: multiplication by a positive number.

    .. math:: g x = s x, \qquad \log s \sim U(-\log r, \log r)

    with :math:`r` = ``reach``. The group is not compact, so elements are drawn from a range around
    one. A rectified network without biases commutes with it: it is positively homogeneous.

    Args:
        reach: the largest factor; the smallest is its reciprocal.

    Shapes:
        - x: any, floating point.
        - element: a number.

    Example:
        >>> import torch
        >>> from ansatz.symmetry import Scaling
        >>> Scaling().act(2.0, torch.tensor([1.5]))
        tensor([3.])

    References:
        Neyshabur et al. (2015), Path-SGD, section 2.
    """

    name = "scaling"

    def __init__(self, *, reach: float = 2.0) -> None:
        if not reach > 1:
            raise ValueError(f"reach of scaling must be above 1, got {reach}.")
        self.reach = reach

    def identity(self, x: Tensor) -> float:
        return 1.0

    def sample(self, x: Tensor, generator: torch.Generator | None = None) -> float:
        return math.exp(math.log(self.reach) * (2 * uniform(generator) - 1))

    def act(self, element: float, x: Tensor) -> Tensor:
        return element * x

    def inverse(self, element: float) -> float:
        return 1 / element

    def compose(self, first: float, second: float) -> float:
        return first * second
