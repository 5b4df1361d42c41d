"""Positive definite functions of two inputs, their sums and products, with gradients by hand."""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor


class Kernel(ABC):
    r"""A positive definite function :math:`k(x, x')` with positive parameters :math:`\phi`.

    A kernel of one's own defines ``matrix``, ``diagonal`` and ``backward``. ``+`` and ``*`` make
    sums and products; a number stands for a constant kernel.

    Attributes:
        log: the logarithms of the parameters by name, tensors ``()`` or ``(D,)``, float64.
        names: of the parameters, in the order of :attr:`vector`.

    Example:
        >>> from ansatz.kernels import RBF
        >>> kernel = 2.0 * RBF(length=[1.0, 3.0])
        >>> kernel.names
        ['0.variance', '1.length[0]', '1.length[1]']
    """

    def __init__(self, **parameters: float | Sequence[float] | Tensor) -> None:
        self.log: dict[str, Tensor] = {}
        for name, value in parameters.items():
            found = torch.as_tensor(value, dtype=torch.float64)
            if not (found > 0).all() or not found.isfinite().all():
                kind = type(self).__name__
                raise ValueError(f"{name} of {kind} must be positive, got {found.tolist()}.")
            self.log[name] = found.log()

    # What a kernel defines.

    @abstractmethod
    def matrix(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        """The values of all pairs, ``(N, M)``; of x with itself where there is no other.

        Args:
            x: ``(N, D)``.
            other: ``(M, D)``; None is x, the same rows.
        """

    @abstractmethod
    def diagonal(self, x: Tensor) -> Tensor:
        """k(x, x) of each row, ``(N,)``."""

    @abstractmethod
    def backward(self, x: Tensor, weight: Tensor) -> dict[str, Tensor]:
        r"""The gradient :math:`\sum_{ij} W_{ij}\, \partial k(x_i, x_j) / \partial \log \phi`.

        Args:
            x: ``(N, D)``.
            weight: ``(N, N)``, W.
        """

    # What follows.

    def __call__(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        """The values of all pairs; see :meth:`matrix`."""
        return self.matrix(_rows(x), None if other is None else _rows(other))

    @property
    def names(self) -> list[str]:
        """The parameters, those with a number for each input followed by its place."""
        return [
            name if not log.ndim else f"{name}[{k}]"
            for name, log in self.log.items()
            for k in range(max(log.numel(), 1))
        ]

    @property
    def vector(self) -> Tensor:
        """All parameters by their logarithms, ``(P,)``."""
        return torch.cat([each.reshape(-1) for each in self.log.values()] or [torch.empty(0)])

    def with_vector(self, vector: Tensor) -> "Kernel":
        """The kernel with these logarithms of its parameters."""
        made = copy.copy(self)
        sizes = [each.numel() for each in self.log.values()]
        parts = vector.double().split(sizes) if sizes else ()
        made.log = {
            name: part.reshape(log.shape)
            for (name, log), part in zip(self.log.items(), parts, strict=True)
        }
        return made

    def gradient(self, x: Tensor, weight: Tensor) -> Tensor:
        """:meth:`backward` in the order of :attr:`vector`, ``(P,)``."""
        found = self.backward(x, weight)
        return torch.cat([found[name].reshape(-1) for name in self.log] or [torch.empty(0)])

    def with_inputs(self, features: int) -> "Kernel":
        """The kernel with one length for each of ``features`` inputs, where it may have them."""
        return self

    def __add__(self, other: "Kernel | float") -> "Kernel":
        return Sum(self, _kernel(other))

    def __radd__(self, other: float) -> "Kernel":
        return Sum(_kernel(other), self)

    def __mul__(self, other: "Kernel | float") -> "Kernel":
        return Product(self, _kernel(other))

    def __rmul__(self, other: float) -> "Kernel":
        return Product(_kernel(other), self)

    def __repr__(self) -> str:
        """The kernel with its parameters."""
        shown = [f"{name}={_short(log.exp())}" for name, log in self.log.items()]
        return f"{type(self).__name__}({', '.join(shown)})"


def _short(value: Tensor) -> str:
    numbers = [f"{number:.4g}" for number in value.reshape(-1).tolist()]
    return numbers[0] if not value.ndim else f"[{', '.join(numbers)}]"


def _rows(x: Tensor) -> Tensor:
    x = torch.as_tensor(x, dtype=torch.float64)
    if x.ndim != 2:
        raise ValueError(f"a kernel takes rows (N, D), got the shape {tuple(x.shape)}.")
    return x


def _kernel(value: "Kernel | float") -> "Kernel":
    return value if isinstance(value, Kernel) else Constant(variance=value)


class _Pair(Kernel):
    """Two kernels as one."""

    sign: str

    def __init__(self, first: Kernel, second: Kernel) -> None:
        super().__init__()
        self.first, self.second = first, second

    @property
    def names(self) -> list[str]:
        return [f"{k}.{name}" for k, each in enumerate(self.parts) for name in each.names]

    @property
    def parts(self) -> tuple[Kernel, Kernel]:
        """Both kernels."""
        return self.first, self.second

    @property
    def vector(self) -> Tensor:
        return torch.cat([each.vector for each in self.parts])

    def with_vector(self, vector: Tensor) -> Kernel:
        count = len(self.first.vector)
        first, second = vector[:count], vector[count:]
        return type(self)(self.first.with_vector(first), self.second.with_vector(second))

    def backward(self, x: Tensor, weight: Tensor) -> dict[str, Tensor]:
        return dict(zip(self.names, self.gradient(x, weight), strict=True))

    def with_inputs(self, features: int) -> Kernel:
        return type(self)(*(each.with_inputs(features) for each in self.parts))

    def __repr__(self) -> str:
        return f"{self.first!r} {self.sign} {self.second!r}"


class Sum(_Pair):
    """k(x, x') = k1(x, x') + k2(x, x').

    Example:
        >>> import torch
        >>> from ansatz.kernels import RBF, White
        >>> (RBF() + White())(torch.zeros(1, 2))
        tensor([[2.]], dtype=torch.float64)
    """

    sign = "+"

    def matrix(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        return self.first.matrix(x, other) + self.second.matrix(x, other)

    def diagonal(self, x: Tensor) -> Tensor:
        return self.first.diagonal(x) + self.second.diagonal(x)

    def gradient(self, x: Tensor, weight: Tensor) -> Tensor:
        return torch.cat([each.gradient(x, weight) for each in self.parts])


class Product(_Pair):
    """k(x, x') = k1(x, x') k2(x, x').

    Example:
        >>> import torch
        >>> from ansatz.kernels import RBF
        >>> (2 * RBF())(torch.zeros(1, 2))
        tensor([[2.]], dtype=torch.float64)
    """

    sign = "*"

    def matrix(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        return self.first.matrix(x, other) * self.second.matrix(x, other)

    def diagonal(self, x: Tensor) -> Tensor:
        return self.first.diagonal(x) * self.second.diagonal(x)

    def gradient(self, x: Tensor, weight: Tensor) -> Tensor:
        first = self.first.gradient(x, weight * self.second.matrix(x))
        return torch.cat([first, self.second.gradient(x, weight * self.first.matrix(x))])


class Constant(Kernel):
    """k(x, x') = variance: what all inputs have in common.

    Example:
        >>> import torch
        >>> from ansatz.kernels import Constant
        >>> Constant(variance=2.0)(torch.zeros(1, 3), torch.ones(2, 3))
        tensor([[2., 2.]], dtype=torch.float64)
    """

    def __init__(self, *, variance: float = 1.0) -> None:
        super().__init__(variance=variance)

    def matrix(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        return self.log["variance"].exp().expand(len(x), len(x if other is None else other))

    def diagonal(self, x: Tensor) -> Tensor:
        return self.log["variance"].exp().expand(len(x))

    def backward(self, x: Tensor, weight: Tensor) -> dict[str, Tensor]:
        return {"variance": self.log["variance"].exp() * weight.sum()}


class White(Kernel):
    """k(x, x') = variance where both are the same row, else 0: noise.

    Two rows with equal numbers are two rows; ``kernel(x, other)`` is 0 even where they agree.

    Example:
        >>> import torch
        >>> from ansatz.kernels import White
        >>> White()(torch.zeros(2, 1))
        tensor([[1., 0.],
                [0., 1.]], dtype=torch.float64)
    """

    def __init__(self, *, variance: float = 1.0) -> None:
        super().__init__(variance=variance)

    def matrix(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        if other is not None:
            return torch.zeros(len(x), len(other), dtype=torch.float64)
        return torch.diag(self.diagonal(x))

    def diagonal(self, x: Tensor) -> Tensor:
        return self.log["variance"].exp().expand(len(x))

    def backward(self, x: Tensor, weight: Tensor) -> dict[str, Tensor]:
        return {"variance": self.log["variance"].exp() * weight.trace()}


class Linear(Kernel):
    r""":math:`k(x, x') = \sum_d v_d x_d x'_d`: linear functions with weights N(0, v).

    Args:
        variance: v, one number, or one for each input.

    Example:
        >>> import torch
        >>> from ansatz.kernels import Linear
        >>> Linear()(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]))
        tensor([[11.]], dtype=torch.float64)
    """

    def __init__(self, *, variance: float | Sequence[float] | Tensor = 1.0) -> None:
        super().__init__(variance=variance)

    def with_inputs(self, features: int) -> Kernel:
        return Linear(variance=self.log["variance"].exp().expand(features))

    def matrix(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        return (x * self.log["variance"].exp()) @ (x if other is None else other).mT

    def diagonal(self, x: Tensor) -> Tensor:
        return (x**2 * self.log["variance"].exp()).sum(1)

    def backward(self, x: Tensor, weight: Tensor) -> dict[str, Tensor]:
        each = self.log["variance"].exp() * ((weight @ x) * x).sum(0)
        return {"variance": each if self.log["variance"].ndim else each.sum()}


class Polynomial(Kernel):
    r""":math:`k(x, x') = (s\, x^\top x' + c)^p`: polynomials of degree p.

    Args:
        degree: p.
        scale: s.
        constant: c.

    Example:
        >>> import torch
        >>> from ansatz.kernels import Polynomial
        >>> Polynomial(degree=2)(torch.ones(1, 2))
        tensor([[9.]], dtype=torch.float64)
    """

    def __init__(self, *, degree: int = 2, scale: float = 1.0, constant: float = 1.0) -> None:
        super().__init__(scale=scale, constant=constant)
        if not isinstance(degree, int) or degree < 1:
            raise ValueError(f"degree of Polynomial must be 1 or more, got {degree!r}.")
        self.degree = degree

    def _inner(self, x: Tensor, other: Tensor) -> Tensor:
        return self.log["scale"].exp() * (x @ other.mT)

    def matrix(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        inner = self._inner(x, x if other is None else other)
        return (inner + self.log["constant"].exp()) ** self.degree

    def diagonal(self, x: Tensor) -> Tensor:
        inner = self.log["scale"].exp() * (x**2).sum(1)
        return (inner + self.log["constant"].exp()) ** self.degree

    def backward(self, x: Tensor, weight: Tensor) -> dict[str, Tensor]:
        inner, constant = self._inner(x, x), self.log["constant"].exp()
        slope = weight * self.degree * (inner + constant) ** (self.degree - 1)
        return {"scale": (slope * inner).sum(), "constant": constant * slope.sum()}


class ArcCosine(Kernel):
    r"""The kernel of an infinitely wide layer of rectifiers, weights N(0, w / D), biases N(0, b).

    .. math:: k(x, x') = \frac{1}{2\pi} \sqrt{q q'}\, (\sin\theta + (\pi - \theta) \cos\theta),
        \qquad q = b + \tfrac wD x^\top x, \quad
        \cos\theta = \frac{b + \tfrac wD x^\top x'}{\sqrt{q q'}}

    :math:`E[\max(0, u) \max(0, u')]` of preactivations u, u' at x and x'.

    Args:
        weight: w.
        bias: b.

    Example:
        >>> import torch
        >>> from ansatz.kernels import ArcCosine
        >>> ArcCosine(weight=2.0, bias=1e-12)(torch.ones(1, 3)).item()  # half of w
        1.0000000000005

    References:
        Cho and Saul (2009), Kernel methods for deep learning.
    """

    def __init__(self, *, weight: float = 1.0, bias: float = 1.0) -> None:
        super().__init__(weight=weight, bias=bias)

    def _parts(self, x: Tensor, other: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        w, b = self.log["weight"].exp() / x.shape[1], self.log["bias"].exp()
        q, r = b + w * (x**2).sum(1), b + w * (other**2).sum(1)
        root = torch.outer(q, r).sqrt()
        cosine = ((b + w * (x @ other.mT)) / root).clamp(-1, 1)
        return q, r, root, cosine

    def matrix(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        _, _, root, cosine = self._parts(x, x if other is None else other)
        angle = cosine.acos()
        found = root / (2 * math.pi) * (angle.sin() + (math.pi - angle) * cosine)
        if other is None:  # an angle of 0 is known only to the root of the precision
            found.diagonal().copy_(self.diagonal(x))
        return found

    def diagonal(self, x: Tensor) -> Tensor:
        w, b = self.log["weight"].exp() / x.shape[1], self.log["bias"].exp()
        return (b + w * (x**2).sum(1)) / 2

    def backward(self, x: Tensor, weight: Tensor) -> dict[str, Tensor]:
        # k = root J(angle) / 2 pi with dJ / d cosine = pi - angle; in the inner product m and
        # in q, q': dk = ((pi - angle) dm + sin(angle) / 2 (sqrt(q'/q) dq + sqrt(q/q') dq')) / 2 pi.
        q, r, _, cosine = self._parts(x, x)
        angle = cosine.acos()
        angle.fill_diagonal_(0.0)
        ratio = torch.outer(q.rsqrt(), r.sqrt())
        inner = weight * (math.pi - angle) / (2 * math.pi)
        own = weight * angle.sin() / (4 * math.pi)
        first, second = (own * ratio).sum(1), (own / ratio).sum(0)
        w, b = self.log["weight"].exp() / x.shape[1], self.log["bias"].exp()
        square = (x**2).sum(1)
        in_weight = w * (((inner @ x) * x).sum() + first @ square + second @ square)
        return {"weight": in_weight, "bias": b * (inner.sum() + first.sum() + second.sum())}
