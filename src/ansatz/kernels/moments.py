"""Means of activations over normal preactivations: what an infinitely wide layer computes."""

import math
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.layers.activation import Erf, Sine

TERMS = 128  # of an expansion in Hermite polynomials
REACH, STEP = 12.0, 0.02  # of the trapezoidal rule, exponentially accurate for smooth functions


class Moments(ABC):
    r"""The moments of :math:`\phi(u)\phi(v)` with (u, v) normal of mean 0.

    Attributes a and b are the variances, c the covariance; they broadcast.
    """

    @abstractmethod
    def mean(self, a: Tensor) -> Tensor:
        """E[phi(u)]."""

    @abstractmethod
    def square(self, a: Tensor) -> Tensor:
        """E[phi(u)²]."""

    @abstractmethod
    def product(self, a: Tensor, b: Tensor, c: Tensor, slope: bool) -> tuple[Tensor, Tensor | None]:
        """E[phi(u) phi(v)] and, where ``slope``, E[phi'(u) phi'(v)]."""


class LeakyMoments(Moments):
    r"""Rectifiers: :math:`\phi(u) = \max(u, 0) + \alpha \min(u, 0)`.

    .. math:: E[\phi\phi'] = (1 - \alpha)^2 \frac{\sqrt{ab}}{2\pi}
        (\sin\theta + (\pi - \theta) \cos\theta) + \alpha c, \qquad \cos\theta = c / \sqrt{ab}

    References:
        Cho and Saul (2009), Kernel methods for deep learning, eq. 6.
    """

    def __init__(self, slope: float = 0.0) -> None:
        self.alpha = slope

    def mean(self, a: Tensor) -> Tensor:
        return (1 - self.alpha) * (a / (2 * math.pi)).sqrt()

    def square(self, a: Tensor) -> Tensor:
        return (1 + self.alpha**2) / 2 * a

    def product(self, a: Tensor, b: Tensor, c: Tensor, slope: bool) -> tuple[Tensor, Tensor | None]:
        alpha, share = self.alpha, (1 - self.alpha) ** 2 / (2 * math.pi)
        root = a.sqrt() * b.sqrt()
        cosine = (c / root.clamp(min=1e-300)).clamp_(-1, 1)
        away = cosine.acos().neg_().add_(math.pi)  # pi - theta
        sine = torch.addcmul(cosine.new_ones(()), cosine, cosine, value=-1).clamp_(min=0).sqrt_()
        found = torch.addcmul(sine, away, cosine).mul_(root).mul_(share)
        dot = away.mul_(share) if slope else None
        if alpha:
            found = found.add_(c, alpha=alpha)
            dot = None if dot is None else dot.add_(alpha)
        return found, dot


class ErfMoments(Moments):
    """The error function.

    References:
        Williams (1997), Computing with infinite networks, eq. 11.
    """

    def mean(self, a: Tensor) -> Tensor:
        return torch.zeros_like(a)

    def square(self, a: Tensor) -> Tensor:
        return 2 / math.pi * (2 * a / (1 + 2 * a)).asin()

    def product(self, a: Tensor, b: Tensor, c: Tensor, slope: bool) -> tuple[Tensor, Tensor | None]:
        product = (1 + 2 * a) * (1 + 2 * b)
        found = 2 / math.pi * (2 * c / product.sqrt()).asin()
        dot = 4 / math.pi / (product - 4 * c**2).sqrt() if slope else None
        return found, dot


class GeluMoments(Moments):
    r"""The Gaussian error linear unit :math:`u \Phi(u)`.

    .. math:: E[\phi\phi'] = \frac{ab + c^2 g}{2\pi\delta} + \frac c4 +
        \frac{c}{2\pi} \arcsin\frac cs, \qquad s^2 = (1 + a)(1 + b), \quad \delta^2 = s^2 - c^2,
        \quad g = \frac{1}{1 + a} + \frac{1}{1 + b} - 1

    by Stein's identity; the mean of the slopes is its derivative in c (Price's theorem).
    """

    def mean(self, a: Tensor) -> Tensor:
        return a / (2 * math.pi * (1 + a)).sqrt()

    def square(self, a: Tensor) -> Tensor:
        return self.product(a, a, a, False)[0]

    def product(self, a: Tensor, b: Tensor, c: Tensor, slope: bool) -> tuple[Tensor, Tensor | None]:
        s = ((1 + a) * (1 + b)).sqrt()
        g = 1 / (1 + a) + 1 / (1 + b) - 1
        delta = (s**2 - c**2).sqrt()
        angle = 0.25 + (c / s).asin() / (2 * math.pi)
        over = 1 / (2 * math.pi * delta)
        found = (a * b + c**2 * g) * over + c * angle
        if not slope:
            return found, None
        dot = (c / delta**2 * (a * b + c**2 * g) + 2 * c * g + c) * over + angle
        return found, dot


class SineMoments(Moments):
    """The sine of w u."""

    def __init__(self, frequency: float = 1.0) -> None:
        self.frequency = frequency

    def mean(self, a: Tensor) -> Tensor:
        return torch.zeros_like(a)

    def square(self, a: Tensor) -> Tensor:
        return -0.5 * torch.expm1(-2 * self.frequency**2 * a)

    def product(self, a: Tensor, b: Tensor, c: Tensor, slope: bool) -> tuple[Tensor, Tensor | None]:
        w = self.frequency**2
        half = w * (a + b) / 2
        near, far = (w * c - half).exp(), (-w * c - half).exp()
        return (near - far) / 2, w * (near + far) / 2 if slope else None


class IdentityMoments(Moments):
    """No activation."""

    def mean(self, a: Tensor) -> Tensor:
        return torch.zeros_like(a)

    def square(self, a: Tensor) -> Tensor:
        return a

    def product(self, a: Tensor, b: Tensor, c: Tensor, slope: bool) -> tuple[Tensor, Tensor | None]:
        return c, torch.ones_like(c) if slope else None


class HermiteMoments(Moments):
    r"""Any other function, by its expansion in Hermite polynomials.

    .. math:: \phi(\sqrt a z) = \sum_k c_k(a) h_k(z), \qquad
        E[\phi\phi'] = \sum_k c_k(a) c_k(b) \rho^k, \qquad \rho = c / \sqrt{ab}

    with :math:`c_k` by the trapezoidal rule, one set for each row: no quadrature over pairs. Exact
    to about 1e-8 for smooth functions, to 1e-4 for those with a kink.
    """

    def __init__(self, function: nn.Module) -> None:
        self.function = function
        z = torch.arange(-REACH, REACH + STEP / 2, STEP, dtype=torch.float64)
        self.z, self.density = z, STEP * (-0.5 * z**2).exp() / math.sqrt(2 * math.pi)
        basis = [torch.ones_like(z), z]
        for k in range(1, TERMS - 1):
            basis.append((z * basis[k] - math.sqrt(k) * basis[k - 1]) / math.sqrt(k + 1))
        self.basis = torch.stack(basis, 1) * self.density[:, None]  # (Z, K)

    def _values(self, a: Tensor) -> Tensor:
        points = a.reshape(-1, 1).clamp(min=0).sqrt() * self.z
        with torch.no_grad():
            found: Tensor = self.function(points)
        return found

    def mean(self, a: Tensor) -> Tensor:
        return (self._values(a) @ self.density).reshape(a.shape)

    def square(self, a: Tensor) -> Tensor:
        return (self._values(a) ** 2 @ self.density).reshape(a.shape)

    def _coefficients(self, a: Tensor) -> Tensor:
        return (self._values(a) @ self.basis).reshape(*a.shape, -1)

    def product(self, a: Tensor, b: Tensor, c: Tensor, slope: bool) -> tuple[Tensor, Tensor | None]:
        first, second = self._coefficients(a), self._coefficients(b)
        root = (a.sqrt() * b.sqrt()).clamp(min=1e-300)
        rho = (c / root).clamp(-1, 1)
        # Horner's rule; the slope's series is that of the derivative in c.
        shape = torch.broadcast_shapes(a.shape, b.shape, c.shape)
        found, dot = c.new_zeros(shape), c.new_zeros(shape)
        for k in reversed(range(TERMS)):
            if slope:
                dot = dot * rho + found
            found = found * rho + first[..., k] * second[..., k]
        return found, dot / root if slope else None


def moments_of(module: nn.Module) -> Moments | None:
    """The moments of an activation; None for a module that is not a function of single numbers."""
    if isinstance(module, nn.Identity):
        return IdentityMoments()
    if isinstance(module, nn.ReLU):
        return LeakyMoments()
    if isinstance(module, nn.LeakyReLU):
        return LeakyMoments(float(module.negative_slope))
    if isinstance(module, Erf):
        return ErfMoments()
    if isinstance(module, Sine):
        return SineMoments(module.frequency)
    if isinstance(module, nn.GELU) and module.approximate == "none":
        return GeluMoments()
    return HermiteMoments(module) if _is_elementwise(module) else None


def _is_elementwise(module: nn.Module) -> bool:
    """Tests whether each number of the output is a function of the same number of the input."""
    tensors: list[Any] = [*module.parameters(), *module.buffers()]
    if tensors or len(list(module.children())):
        return False
    z = torch.tensor([[-1.3, 0.2, 0.9, 2.1]], dtype=torch.float64)
    try:
        with torch.no_grad():
            whole = module(z)
            single = torch.cat([module(each[None, None]) for each in z[0]], 1)
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return False
    return isinstance(whole, Tensor) and whole.shape == z.shape and torch.equal(whole, single)
