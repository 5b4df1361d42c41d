"""Kernels of the distance between two inputs, one length for all inputs or one for each."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from ansatz.kernels.kernel import Kernel

Lengths = float | Sequence[float] | Tensor


class Stationary(Kernel):
    r"""Kernels :math:`k(x, x') = f(s)` of :math:`s = \sum_d (x_d - x'_d)^2 / \ell_d^2`.

    The gradient in the lengths needs no array of pairs and inputs: with
    :math:`A = W \circ f'(s)` and :math:`z = x / \ell`,

    .. math:: \sum_{ij} W_{ij} \frac{\partial k_{ij}}{\partial \log \ell_d}
        = -2 \sum_i (r_i + c_i) z_{id}^2 + 4\, (Z^\top A Z)_{dd}

    with r and c the row and column sums of A.

    Args:
        length: one number, or one for each input (automatic relevance determination): an input
            whose length is large does not matter.
    """

    def __init__(self, *, length: Lengths = 1.0, **others: float | Tensor) -> None:
        super().__init__(length=length, **others)

    def with_inputs(self, features: int) -> Kernel:
        length = self.log["length"]
        lengths = {**self.log, "length": length.expand(features).clone()}
        return type(self)(**{name: each.exp() for name, each in lengths.items()})

    @abstractmethod
    def value(self, s: Tensor) -> Tensor:
        """f(s)."""

    @abstractmethod
    def slope(self, s: Tensor) -> Tensor:
        """f'(s); any number where s is 0, as it is multiplied by a distance of 0 there."""

    def others(self, s: Tensor, weight: Tensor) -> dict[str, Tensor]:
        """The gradient in further parameters."""
        return {}

    def squares(self, x: Tensor, other: Tensor | None) -> Tensor:
        """s of all pairs, by differences: a difference of squares would lose half of the digits."""
        z = x / self.log["length"].exp()
        return torch.cdist(
            z,
            z if other is None else other / self.log["length"].exp(),
            compute_mode="donot_use_mm_for_euclid_dist",
        ).square_()

    def matrix(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        return self.value(self.squares(x, other))

    def diagonal(self, x: Tensor) -> Tensor:
        return torch.ones(len(x), dtype=torch.float64)

    def backward(self, x: Tensor, weight: Tensor) -> dict[str, Tensor]:
        s = self.squares(x, None)
        a = weight * self.slope(s)
        z = x / self.log["length"].exp()
        each = -2 * (a.sum(0) + a.sum(1)) @ z**2 + 4 * ((a @ z) * z).sum(0)
        length = each if self.log["length"].ndim else each.sum()
        return {"length": length, **self.others(s, weight)}


class RBF(Stationary):
    r""":math:`k(x, x') = e^{-s / 2}`: smooth functions.

    Example:
        >>> import torch
        >>> from ansatz.kernels import RBF
        >>> RBF(length=2.0)(torch.zeros(1, 1), torch.tensor([[2.0]])).item()
        0.6065306597126334
    """

    def value(self, s: Tensor) -> Tensor:
        return (-0.5 * s).exp_()

    def slope(self, s: Tensor) -> Tensor:
        return -0.5 * self.value(s)


class _Matern(Stationary):
    root: ClassVar[float]

    def _scaled(self, s: Tensor) -> Tensor:
        return self.root * s.sqrt()


class Matern12(_Matern):
    r""":math:`k(x, x') = e^{-r}`, :math:`r = \sqrt s`: continuous functions, nowhere smooth.

    Example:
        >>> import torch
        >>> from ansatz.kernels import Matern12
        >>> Matern12()(torch.zeros(1, 1), torch.ones(1, 1)).item()
        0.36787944117144233
    """

    root = 1.0

    def value(self, s: Tensor) -> Tensor:
        return (-s.sqrt()).exp_()

    def slope(self, s: Tensor) -> Tensor:
        r = s.sqrt()
        return torch.where(r > 0, -0.5 * (-r).exp() / torch.where(r > 0, r, 1.0), 0.0)


class Matern32(_Matern):
    r""":math:`k(x, x') = (1 + \sqrt3 r) e^{-\sqrt3 r}`: functions with one derivative.

    Example:
        >>> import torch
        >>> from ansatz.kernels import Matern32
        >>> round(Matern32()(torch.zeros(1, 1), torch.ones(1, 1)).item(), 6)
        0.483358
    """

    root = 3**0.5

    def value(self, s: Tensor) -> Tensor:
        u = self._scaled(s)
        return (1 + u) * (-u).exp()

    def slope(self, s: Tensor) -> Tensor:
        return -1.5 * (-self._scaled(s)).exp()


class Matern52(_Matern):
    r""":math:`k(x, x') = (1 + \sqrt5 r + \tfrac53 r^2) e^{-\sqrt5 r}`: two derivatives.

    Example:
        >>> import torch
        >>> from ansatz.kernels import Matern52
        >>> round(Matern52()(torch.zeros(1, 1), torch.ones(1, 1)).item(), 6)
        0.523994

    References:
        Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, eq. 4.17.
    """

    root = 5**0.5

    def value(self, s: Tensor) -> Tensor:
        u = self._scaled(s)
        return (1 + u + u**2 / 3) * (-u).exp()

    def slope(self, s: Tensor) -> Tensor:
        u = self._scaled(s)
        return -5 / 6 * (1 + u) * (-u).exp()


class RationalQuadratic(Stationary):
    r""":math:`k(x, x') = (1 + s / 2 \alpha)^{-\alpha}`: a mixture of RBF kernels of many lengths.

    Args:
        length: one number, or one for each input.
        alpha: small mixes more lengths.

    Example:
        >>> import torch
        >>> from ansatz.kernels import RationalQuadratic
        >>> RationalQuadratic()(torch.zeros(1, 1), torch.ones(1, 1)).item()
        0.6666666666666666
    """

    def __init__(self, *, length: Lengths = 1.0, alpha: float = 1.0) -> None:
        super().__init__(length=length, alpha=alpha)

    def value(self, s: Tensor) -> Tensor:
        alpha = self.log["alpha"].exp()
        return (-alpha * torch.log1p(s / (2 * alpha))).exp()

    def slope(self, s: Tensor) -> Tensor:
        alpha = self.log["alpha"].exp()
        return -0.5 * (-(alpha + 1) * torch.log1p(s / (2 * alpha))).exp()

    def others(self, s: Tensor, weight: Tensor) -> dict[str, Tensor]:
        alpha = self.log["alpha"].exp()
        u = s / (2 * alpha)
        rate = u / (1 + u) - torch.log1p(u)
        return {"alpha": alpha * (weight * self.value(s) * rate).sum()}


class Periodic(Kernel):
    r""":math:`k(x, x') = \exp(-2 \sum_d \sin^2(\pi (x_d - x'_d) / p) / \ell^2)`.

    Args:
        period: p.
        length: :math:`\ell`, in shares of a period: small for functions with much detail.

    Example:
        >>> import torch
        >>> from ansatz.kernels import Periodic
        >>> round(Periodic(period=7.0)(torch.zeros(1, 1), torch.tensor([[21.0]])).item(), 12)
        1.0

    References:
        MacKay (1998), Introduction to Gaussian processes.
    """

    def __init__(self, *, period: float = 1.0, length: float = 1.0) -> None:
        super().__init__(period=period, length=length)

    def _exponent(self, x: Tensor, other: Tensor) -> Tensor:
        total = torch.zeros(len(x), len(other), dtype=torch.float64)
        for a, b in zip(x.T, other.T, strict=True):
            total += (math.pi * (a[:, None] - b) / self.log["period"].exp()).sin() ** 2
        return -2 * total / (2 * self.log["length"]).exp()

    def matrix(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        return self._exponent(x, x if other is None else other).exp()

    def diagonal(self, x: Tensor) -> Tensor:
        return torch.ones(len(x), dtype=torch.float64)

    def backward(self, x: Tensor, weight: Tensor) -> dict[str, Tensor]:
        exponent, period = self._exponent(x, x), self.log["period"].exp()
        a = weight * exponent.exp()
        turn = torch.zeros_like(a)  # d sin^2(u) / d log p = -u sin(2 u)
        for column in x.T:
            u = math.pi * (column[:, None] - column) / period
            turn += u * (2 * u).sin()
        in_period = 2 * (a * turn).sum() / (2 * self.log["length"]).exp()
        return {"period": in_period, "length": -2 * (a * exponent).sum()}
