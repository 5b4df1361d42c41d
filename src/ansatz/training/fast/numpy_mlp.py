"""Back-propagation through a plain MLP, written out in NumPy."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import ndtr
from torch import nn

Array = np.ndarray[Any, Any]
Score = Callable[[Array, Array], tuple[Array, Array]]  # (raw, y) -> loss of each row, derivative
_MANY = 4_096  # numbers from which torch's vector code outweighs its cost per call


class Derivative(NamedTuple):
    r"""How an activation :math:`a = \phi(z)` runs forwards and backwards.

    Args:
        forward: (z, a, s) writes phi(z) into a; s is a third array of that shape to keep
            something for the way back.
        backward: (d, z, a, s) overwrites d = dL/da with dL/dz = d * phi'(z); z may be spoiled.
    """

    forward: Callable[[Array, Array, Array], None]
    backward: Callable[[Array, Array, Array, Array], None]


def derivative_of(activation: nn.Module) -> Derivative | None:
    """The rule for an activation module with its options; None for one that has no rule."""
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


_LARGE = 2**17  # numbers in a gradient from which torch's product takes 5/6 of the time of NumPy's


class Backpropagation:
    r"""Forward and backward pass of a multilayer perceptron, on arrays, into memory kept ready.

    .. math::
        z_l = h_{l-1} W_l^\top + b_l, \qquad h_l = \phi(z_l) \odot m_l, \qquad
        \delta_{l} = (\delta_{l+1} W_{l+1}) \odot m_{l} \odot \phi'(z_{l}), \\
        \nabla W_l = \delta_l^\top h_{l-1}, \qquad \nabla b_l = \textstyle\sum_i \delta_{l,i}

    NumPy and not torch: for 32 rows and 64 units a matrix product takes 4 us, and what surrounds it
    decides; in a mixed sequence of calls torch's cost per call is three times NumPy's.

    Args:
        weights: :math:`W_l`, ``(out, in)`` each, the output layer's last.
        biases: :math:`b_l`, ``(out,)`` each.
        weight_gradients: where :math:`\nabla W_l` goes.
        bias_gradients: where :math:`\nabla b_l` goes.
        rule: the activation :math:`\phi` of the hidden layers.
        dropout: probability that a hidden unit is dropped.
        seed: of the masks :math:`m_l \in \{0, 1/(1-p)\}`.

    Shapes:
        - inputs: ``(B, D)``; outputs and their gradient: ``(B, P)``.
    """

    def __init__(
        self,
        weights: Sequence[Array],
        biases: Sequence[Array],
        weight_gradients: Sequence[Array],
        bias_gradients: Sequence[Array],
        rule: Derivative,
        *,
        dropout: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.weights, self.biases = list(weights), list(biases)
        self._transposed = [weight.T for weight in weights]
        self._affine = [
            (torch.from_numpy(b), torch.from_numpy(w).T) if w.size >= _LARGE else None
            for w, b in zip(weights, biases, strict=True)
        ]
        self._gradients = list(zip(weight_gradients, bias_gradients, strict=True))
        self._large = [torch.from_numpy(g) if g.size >= _LARGE else None for g in weight_gradients]
        self._rule, self._last = rule, len(self.weights) - 1
        self.masks = DropoutMasks(dropout, seed)
        self._rooms: dict[int, _Room] = {}
        self._room: _Room

    def forward(self, inputs: Array) -> Array:
        """The outputs of training mode; they are overwritten by the next call."""
        room = self._room = self._rooms.get(len(inputs)) or self._make_room(len(inputs))
        if room.masks:
            self.masks.draw(room.coins)
        h = room.h[0] = inputs
        for i in range(self._last):
            z, a = room.z[i], room.a[i]
            affine = self._affine[i]
            if affine is None:
                h.dot(self._transposed[i], z)  # (B, width)
                z += self.biases[i]
            else:  # with the bias at no further cost
                torch.addmm(affine[0], torch.from_numpy(h), affine[1], out=torch.from_numpy(z))
            self._rule.forward(z, a, room.s[i])
            h = a
            if room.masks:
                h = np.multiply(a, room.masks[i], out=room.dropped[i])
            room.h[i + 1] = h
        output = room.z[-1]
        h.dot(self._transposed[-1], output)
        output += self.biases[-1]
        return output

    def backward(self, delta: Array) -> None:
        """Writes the gradients, given the derivative of the loss in the outputs."""
        room = self._room
        for i in range(self._last, -1, -1):
            weight_gradient, bias_gradient = self._gradients[i]
            large = self._large[i]
            if large is None:
                delta.T.dot(room.h[i], weight_gradient)
            else:
                torch.mm(torch.from_numpy(delta).T, torch.from_numpy(room.h[i]), out=large)
            room.ones.dot(delta, bias_gradient)  # the sum over rows, at a third of its cost
            if i:
                below = room.delta[i - 1]
                delta.dot(self.weights[i], below)
                if room.masks:
                    below *= room.masks[i - 1]
                self._rule.backward(below, room.z[i - 1], room.a[i - 1], room.s[i - 1])
                delta = below

    def _make_room(self, rows: int) -> "_Room":
        if len(self._rooms) >= 4:  # the usual batch, the last one of an epoch, a change of mind
            self._rooms.clear()
        widths = [len(bias) for bias in self.biases]
        room = _Room(rows, widths, self.weights[0].dtype, dropout=self.masks.threshold > 0)
        self._rooms[rows] = room
        return room


class DropoutMasks:
    """Inverted dropout: units are zeroed with probability p, the others scaled by 1/(1-p).

    16 random bits per unit, so p is rounded to a multiple of 2^-16; the scale uses the rounded p,
    so that the mean of a mask is exactly 1. The stream is counter-based: its state is two numbers.
    """

    def __init__(self, dropout: float, seed: int) -> None:
        self.threshold = min(round(dropout * 2**16), 2**16 - 1)
        self.scale = 2**16 / (2**16 - self.threshold)
        self.state = (seed, 0)

    @property
    def state(self) -> tuple[int, int]:
        """The seed, and the blocks of 16 masks drawn so far."""
        return self._seed, self._blocks

    @state.setter
    def state(self, state: tuple[int, int]) -> None:
        self._seed, self._blocks = state
        self._bits = np.random.Philox(key=self._seed).advance(self._blocks)

    def draw(self, coins: Array) -> None:
        """Fills a flat array with masks."""
        blocks = (len(coins) + 15) // 16  # the generator's block is four words of 64 bits
        self._blocks += blocks
        bits = self._bits.random_raw(4 * blocks).view(np.uint16)
        kept = bits[: len(coins)] >= self.threshold
        np.multiply(kept, coins.dtype.type(self.scale), out=coins)


class _Room:
    """The memory of one forward and backward pass over a given number of rows."""

    def __init__(self, rows: int, widths: list[int], dtype: Any, *, dropout: bool) -> None:
        hidden = widths[:-1]
        self.z = [np.empty((rows, width), dtype) for width in widths]  # the last is the output
        self.a, self.s, self.delta = ([np.empty_like(z) for z in self.z[:-1]] for _ in range(3))
        self.h: list[Array] = [self.z[0], *self.a]  # what each layer is given
        self.ones = np.ones(rows, dtype)
        units = [rows * width for width in hidden] if dropout else []
        self.coins = np.empty(sum(units), dtype)
        ends = np.cumsum([0, *units])
        self.masks = [
            self.coins[first:last].reshape(rows, width)
            for first, last, width in zip(ends, ends[1:], hidden, strict=False)
        ]
        self.dropped = [np.empty_like(mask) for mask in self.masks]
