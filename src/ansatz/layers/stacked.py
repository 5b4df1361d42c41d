"""Recurrent layers above one another, and side by side in both directions of time."""

from collections.abc import Iterable
from itertools import pairwise

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.recurrent import Recurrent, State


class Stacked(Recurrent):
    r"""Recurrent layers, each of which reads the outputs of the one below.

    .. math:: y_t^{(l)} = \mathrm{layer}_l(y_t^{(l-1)}), \qquad y_t^{(0)} = x_t

    Args:
        layers: from below to above; each takes what the one below puts out.
        dropout: the probability that an output between two layers is dropped in training.

    Shapes:
        - x: ``(B, T, D)``; mask: ``(B, T)``; state: a tuple, one of each layer.
        - returns: y ``(B, T, H)`` of the last layer, and the states.

    Example:
        >>> import torch
        >>> from ansatz.layers import GRU, Stacked
        >>> y, states = Stacked([GRU(3, 8), GRU(8, 4)])(torch.randn(2, 5, 3))
        >>> y.shape, len(states)
        (torch.Size([2, 5, 4]), 2)

    References:
        Graves, Mohamed & Hinton (2013), Speech recognition with deep recurrent neural networks.
        https://arxiv.org/abs/1303.5778
    """

    def __init__(self, layers: Iterable[Recurrent], dropout: float = 0.0) -> None:
        parts = list(layers)
        if not parts:
            raise UsageError("Stacked needs at least one layer.")
        for below, above in pairwise(parts):
            if below.out_features != above.in_features:
                raise UsageError(
                    f"a layer of Stacked puts out {below.out_features} numbers, but the next one "
                    f"takes {above.in_features}."
                )
        if not 0 <= dropout < 1:
            raise UsageError(f"dropout of Stacked must be in [0, 1), got {dropout}.")
        super().__init__(parts[0].in_features, parts[-1].out_features)
        self.layers, self.dropout = nn.ModuleList(parts), nn.Dropout(dropout)

    def initial(self, x: Tensor) -> State:
        return tuple(layer.initial(x) for layer in self.layers)  # type: ignore[operator]

    def step(self, state: State, x: Tensor) -> tuple[State, Tensor]:
        states = []
        for k, layer in enumerate(self.layers):
            new, x = layer.step(state[k], self.dropout(x) if k else x)  # type: ignore[operator]
            states.append(new)
        return tuple(states), x

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        states = []
        for k, layer in enumerate(self.layers):
            x, new = layer(self.dropout(x) if k else x, mask, state[k])
            states.append(new)
        return x, tuple(states)


class Bidirectional(Recurrent):
    r"""Two recurrent layers side by side, one of which reads backwards.

    .. math:: y_t = [\overrightarrow{h}_t, \overleftarrow{h}_t]

    Each sequence is reversed within its own length. There is no ``step``: the output at t depends
    on what comes after.

    Args:
        forward: the layer that reads from the first step to the last.
        backward: the layer that reads from the last step to the first.

    Shapes:
        - x: ``(B, T, D)``; mask: ``(B, T)``; state: a pair of states.
        - returns: y ``(B, T, H + H')``, and the states after the last and after the first step.

    Example:
        >>> import torch
        >>> from ansatz.layers import GRU, Bidirectional
        >>> y, states = Bidirectional(GRU(3, 8), GRU(3, 8))(torch.randn(2, 5, 3))
        >>> y.shape
        torch.Size([2, 5, 16])

    References:
        Schuster & Paliwal (1997), Bidirectional recurrent neural networks.
    """

    def __init__(self, forward: Recurrent, backward: Recurrent) -> None:
        if forward.in_features != backward.in_features:
            raise UsageError(
                "the layers of Bidirectional must take the same numbers, got "
                f"{forward.in_features} and {backward.in_features}."
            )
        super().__init__(forward.in_features, forward.out_features + backward.out_features)
        self.ahead, self.back = forward, backward

    def initial(self, x: Tensor) -> State:
        return self.ahead.initial(x), self.back.initial(x)

    def step(self, state: State, x: Tensor) -> tuple[State, Tensor]:
        raise UsageError("Bidirectional needs the whole sequence: call the layer, not its step.")

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        ahead, first = self.ahead(x, mask, state[0])
        back, second = self.back(reverse(x, mask), mask, state[1])
        return torch.cat([ahead, reverse(back, mask)], -1), (first, second)


def reverse(x: Tensor, mask: Tensor | None = None) -> Tensor:
    """Reverses each sequence of x ``(B, T, D)`` within its length; padding stays at the end."""
    if mask is None:
        return x.flip(1)
    steps = torch.arange(x.shape[1], device=x.device)
    order = (mask.sum(1, keepdim=True) - 1 - steps) % x.shape[1]  # (B, T)
    return x.gather(1, order.unsqueeze(-1).expand(-1, -1, x.shape[2]))
