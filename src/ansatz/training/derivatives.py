"""Activations with their derivatives, on arrays in place, for back-propagation by hand."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import ndtr
from torch import nn

Array = np.ndarray[Any, Any]
_MANY = 4_096  # numbers from which torch's vector code outweighs its cost per call


class Derivative(NamedTuple):
    r"""How an activation :math:`a = \phi(z)` runs forwards and backwards.

    Args:
        forward: (z, a, s) writes phi(z) into a; s is a third array of that shape to keep
            something for the way back.
        backward: (d, z, a, s) overwrites d = dL/da with dL/dz = d * phi'(z); z may be spoiled.

    Example:
        >>> import numpy as np, torch
        >>> from ansatz.training.derivatives import derivative_of
        >>> rule = derivative_of(torch.nn.Tanh())
        >>> z, a, s, d = np.zeros(1), np.zeros(1), np.zeros(1), np.full(1, 3.0)
        >>> rule.forward(z, a, s)
        >>> rule.backward(d, z, a, s)
        >>> d.tolist()  # tanh'(0) = 1
        [3.0]
    """

    forward: Callable[[Array, Array, Array], None]
    backward: Callable[[Array, Array, Array, Array], None]


def derivative_of(activation: nn.Module) -> Derivative | None:
    """The rule for an activation module with its options; None for one that has no rule.

    Example:
        >>> import torch
        >>> from ansatz.training.derivatives import derivative_of
        >>> derivative_of(torch.nn.Softsign()) is None
        True
    """
    make = _RULES.get(type(activation))
    return make(activation) if make else None


def _identity(_: Any) -> Derivative:
    return Derivative(lambda z, a, s: np.copyto(a, z), lambda d, z, a, s: None)


def _relu(_: Any) -> Derivative:
    def forward(z: Array, a: Array, s: Array) -> None:
        if z.size < _MANY:
            np.maximum(z, 0, out=a)
        else:
            torch.clamp_min(torch.from_numpy(z), 0, out=torch.from_numpy(a))

    def backward(d: Array, z: Array, a: Array, s: Array) -> None:
        if d.size < _MANY:
            np.multiply(d, a > 0, out=d)
        else:
            slope = torch.from_numpy(d)
            into = torch.ops.aten.threshold_backward.grad_input
            into(slope, torch.from_numpy(a), 0, grad_input=slope)

    return Derivative(forward, backward)


def _leaky_relu(module: Any) -> Derivative:
    slope = module.negative_slope

    def forward(z: Array, a: Array, s: Array) -> None:
        np.copyto(s, slope)
        np.copyto(s, 1, where=z > 0)
        np.multiply(z, s, out=a)

    return Derivative(forward, _times_s)


def _tanh(_: Any) -> Derivative:
    def forward(z: Array, a: Array, s: Array) -> None:
        np.tanh(z, out=a)

    def backward(d: Array, z: Array, a: Array, s: Array) -> None:
        np.multiply(a, a, out=s)
        np.subtract(1, s, out=s)
        d *= s

    return Derivative(forward, backward)


def _sigmoid(_: Any) -> Derivative:
    def forward(z: Array, a: Array, s: Array) -> None:
        _logistic(z, a)

    def backward(d: Array, z: Array, a: Array, s: Array) -> None:
        np.subtract(1, a, out=s)
        s *= a
        d *= s

    return Derivative(forward, backward)


def _silu(_: Any) -> Derivative:
    """a = z sigmoid(z), a' = sigmoid(z) + a (1 - sigmoid(z))."""

    def forward(z: Array, a: Array, s: Array) -> None:
        _logistic(z, s)
        np.multiply(z, s, out=a)

    def backward(d: Array, z: Array, a: Array, s: Array) -> None:
        np.multiply(a, s, out=z)
        np.subtract(a, z, out=z)
        z += s
        d *= z

    return Derivative(forward, backward)


def _gelu(module: Any) -> Derivative:
    """a = z Phi(z), a' = Phi(z) + z phi(z); or the form with tanh."""
    if module.approximate == "tanh":
        return _gelu_tanh()

    def forward(z: Array, a: Array, s: Array) -> None:
        ndtr(z, out=s)
        np.multiply(z, s, out=a)

    def backward(d: Array, z: Array, a: Array, s: Array) -> None:
        s += z * np.exp(-0.5 * z * z) * (1 / math.sqrt(2 * math.pi))
        d *= s

    return Derivative(forward, backward)


def _gelu_tanh() -> Derivative:
    c, k = math.sqrt(2 / math.pi), 0.044715  # Hendrycks and Gimpel (2016), section 2

    def forward(z: Array, a: Array, s: Array) -> None:
        np.tanh(c * (z + k * z * z * z), out=s)
        np.multiply(0.5 * z, 1 + s, out=a)

    def backward(d: Array, z: Array, a: Array, s: Array) -> None:
        d *= 0.5 * (1 + s) + 0.5 * z * (1 - s * s) * (c * (1 + 3 * k * z * z))

    return Derivative(forward, backward)


def _softplus(module: Any) -> Derivative:
    """a = log(1 + exp(beta z)) / beta, and z itself beyond torch's threshold."""
    beta, threshold = module.beta, module.threshold

    def forward(z: Array, a: Array, s: Array) -> None:
        x = beta * z
        linear = x > threshold
        np.divide(np.log1p(np.exp(x)), beta, out=a)
        np.copyto(a, z, where=linear)
        _logistic(x, s)
        np.copyto(s, 1, where=linear)

    return Derivative(forward, _times_s)


def _elu(module: Any) -> Derivative:
    return _elu_rule(module.alpha, 1.0)


def _selu(_: Any) -> Derivative:
    # The fixed point of mean 0 and variance 1: Klambauer et al. (2017), eq. 14.
    return _elu_rule(1.6732632423543772, 1.0507009873554805)


def _elu_rule(alpha: float, scale: float) -> Derivative:
    """a = scale * (z where z > 0, alpha (exp(z) - 1) elsewhere)."""

    def forward(z: Array, a: Array, s: Array) -> None:
        positive = z > 0
        below = alpha * np.expm1(np.minimum(z, 0))
        np.multiply(np.where(positive, z, below), scale, out=a)
        np.multiply(np.where(positive, 1, below + alpha), scale, out=s)

    return Derivative(forward, _times_s)


def _times_s(d: Array, z: Array, a: Array, s: Array) -> None:
    d *= s


def _logistic(z: Array, out: Array) -> None:
    """1 / (1 + exp(-z)); where the exponential overflows, the quotient is 0 as it should be."""
    if z.size >= _MANY:
        torch.sigmoid(torch.from_numpy(z), out=torch.from_numpy(out))
        return
    np.negative(z, out=out)
    np.exp(out, out=out)
    out += 1
    np.reciprocal(out, out=out)


_RULES: dict[type[nn.Module], Callable[[Any], Derivative]] = {
    nn.Identity: _identity,
    nn.ReLU: _relu,
    nn.LeakyReLU: _leaky_relu,
    nn.Tanh: _tanh,
    nn.Sigmoid: _sigmoid,
    nn.SiLU: _silu,
    nn.GELU: _gelu,
    nn.Softplus: _softplus,
    nn.ELU: _elu,
    nn.SELU: _selu,
}
