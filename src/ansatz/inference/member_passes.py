"""The chain rule through several plain networks at once, written out."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ansatz.training.fast.numpy_mlp import DropoutMasks, derivative_of

aten = torch.ops.aten


class MemberPasses:
    r"""Forward and backward pass of S multilayer perceptrons, into memory kept ready.

    The formulas of :class:`~ansatz.training.fast.numpy_mlp.Backpropagation` with a leading axis s.
    With ten members an array is long enough for torch's vectorised functions to beat NumPy's, and
    one batched product stands for ten calls.

    Args:
        weights: ``(S, out, in)`` for each layer, the output layer's last.
        biases: ``(S, out)`` for each layer.
        weight_gradients: where the gradients of the weights go.
        bias_gradients: where those of the biases go.
        activation: of the hidden layers, one that ``derivative_of`` knows.
        dropout: for each member the probability that a hidden unit is dropped; members without
            dropout come first, and all others share one probability.
        seed: of the masks.

    Shapes:
        - inputs: ``(S, B, D)``; outputs and their gradient: ``(S, B, P)``.
    """

    def __init__(
        self,
        weights: Sequence[Tensor],
        biases: Sequence[Tensor],
        weight_gradients: Sequence[Tensor],
        bias_gradients: Sequence[Tensor],
        activation: nn.Module,
        *,
        dropout: Sequence[float] = (),
        seed: int = 0,
    ) -> None:
        self.weights = list(weights)
        self._transposed = [weight.transpose(1, 2) for weight in weights]
        self._biases = [bias.unsqueeze(1) for bias in biases]
        self._gradients = list(zip(weight_gradients, bias_gradients, strict=True))
        self._rule = _rule_of(activation)
        self._members, self._last = len(weights[0]), len(self.weights) - 1
        self._first_dropped = sum(1 for p in dropout if p == 0) if any(dropout) else None
        self.masks = DropoutMasks(max(dropout, default=0.0), seed)
        self._rooms: dict[int, _Room] = {}
        self._room: _Room

    def forward(self, inputs: Tensor) -> Tensor:
        """The outputs of training mode; they are overwritten by the next call."""
        room = self._room = self._rooms.get(inputs.shape[1]) or self._make_room(inputs.shape[1])
        if room.coins is not None:
            self.masks.draw(room.coins.numpy())
        h = room.h[0] = inputs
        for i in range(self._last):
            torch.baddbmm(self._biases[i], h, self._transposed[i], out=room.z[i])
            self._rule.forward(room.z[i], room.a[i])
            h = room.a[i]
            if room.coins is not None:
                h = torch.mul(h, room.masks[i], out=room.dropped[i])
            room.h[i + 1] = h
        return torch.baddbmm(self._biases[-1], h, self._transposed[-1], out=room.z[-1])

    def backward(self, delta: Tensor) -> None:
        """Writes the gradients, given the derivative of the loss in the outputs."""
        room = self._room
        for i in range(self._last, -1, -1):
            weight_gradient, bias_gradient = self._gradients[i]
            torch.bmm(delta.transpose(1, 2), room.h[i], out=weight_gradient)
            torch.sum(delta, 1, out=bias_gradient)
            if i:
                below = torch.bmm(delta, self.weights[i], out=room.delta[i - 1])
                if room.coins is not None:
                    below *= room.masks[i - 1]
                delta = self._rule.backward(below, room.z[i - 1], room.a[i - 1])

    def _make_room(self, rows: int) -> "_Room":
        if len(self._rooms) >= 4:
            self._rooms.clear()
        widths = [bias.shape[-1] for bias in self._biases]
        self._rooms[rows] = room = _Room(
            self._members, rows, widths, self.weights[0], self._first_dropped
        )
        return room


class _Room:
    """The memory of one forward and backward pass."""

    def __init__(
        self, members: int, rows: int, widths: list[int], like: Tensor, first_dropped: int | None
    ) -> None:
        def empty(width: int) -> Tensor:
            return like.new_empty((members, rows, width))

        hidden = widths[:-1]
        self.z = [empty(width) for width in widths]
        self.a, self.delta = [empty(w) for w in hidden], [empty(w) for w in hidden]
        self.h: list[Tensor] = [self.z[0], *self.a]
        self.coins: Tensor | None = None
        if first_dropped is None:
            return
        self.dropped = [empty(width) for width in hidden]
        # Members first in memory: those without dropout keep the ones that are there.
        whole = like.new_ones((members, sum(rows * width for width in hidden)))
        self.coins = whole[first_dropped:].reshape(-1)
        parts = whole.split([rows * width for width in hidden], 1)
        self.masks = [
            part.unflatten(1, (rows, width)) for part, width in zip(parts, hidden, strict=True)
        ]


class _Rule(NamedTuple):
    """phi(z) into a; and from (dL/da, z, a) to dL/dz."""

    forward: Callable[[Tensor, Tensor], object]
    backward: Callable[[Tensor, Tensor, Tensor], Tensor]


def _rule_of(activation: nn.Module) -> _Rule:
    fast = _FAST.get(type(activation))
    if fast is not None and not getattr(activation, "approximate", "none") == "tanh":
        return fast
    slow = derivative_of(activation)
    assert slow is not None  # as supports() has seen
    kept: dict[int, Tensor] = {}

    def forward(z: Tensor, a: Tensor) -> None:
        s = kept.setdefault(z.data_ptr(), torch.empty_like(z))
        slow.forward(z.numpy(), a.numpy(), s.numpy())

    def backward(d: Tensor, z: Tensor, a: Tensor) -> Tensor:
        slow.backward(d.numpy(), z.numpy(), a.numpy(), kept[z.data_ptr()].numpy())
        return d

    return _Rule(forward, backward)


_FAST: dict[type[nn.Module], _Rule] = {
    nn.SiLU: _Rule(lambda z, a: aten.silu.out(z, out=a), lambda d, z, a: aten.silu_backward(d, z)),
    nn.ReLU: _Rule(
        lambda z, a: aten.relu.out(z, out=a), lambda d, z, a: aten.threshold_backward(d, z, 0)
    ),
    nn.GELU: _Rule(lambda z, a: aten.gelu.out(z, out=a), lambda d, z, a: aten.gelu_backward(d, z)),
    nn.Tanh: _Rule(lambda z, a: torch.tanh(z, out=a), lambda d, z, a: aten.tanh_backward(d, a)),
    nn.Sigmoid: _Rule(
        lambda z, a: torch.sigmoid(z, out=a), lambda d, z, a: aten.sigmoid_backward(d, a)
    ),
}
