"""The contract of recurrent layers: a step, and a run over whole sequences with a mask."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.compiler import is_exporting

from ansatz.errors import UsageError
from ansatz.layers.limits import require_whole

State = Any  # a tensor (B, H), or a tuple of states


class Recurrent(nn.Module):
    r"""A layer whose state sums up the past.

    .. math:: S_t = G(S_{t-1}, x_t), \qquad y_t = O(S_t)

    A subclass writes ``step`` and, where all steps can be computed faster than in turn, ``run``.
    ``forward`` does the rest: padded steps may hold anything, even nan, leave the state as it is
    and have the output zero, so that a sequence has the same result in every batch.

    Args:
        in_features: numbers per step, :math:`D`.
        out_features: numbers per step of the output, :math:`H`.

    Shapes:
        - x: ``(B, T, D)``.
        - mask: ``(B, T)`` bool, True where a step is present; padding is at the end.
        - state: that of the layer; zeros when not given.
        - returns: y ``(B, T, H)``, and the state after the last step that is present.

    Example:
        >>> import torch
        >>> from ansatz.layers import Recurrent
        >>> class Sum(Recurrent):
        ...     def step(self, state, x):
        ...         return state + x, state + x
        >>> y, state = Sum(1, 1)(torch.ones(2, 3, 1))
        >>> y[0].flatten(), state.flatten()
        (tensor([1., 2., 3.]), tensor([3., 3.]))
    """

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        name = type(self).__name__
        self.in_features = require_whole(f"in_features of {name}", in_features)
        self.out_features = require_whole(f"out_features of {name}", out_features)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}"

    def initial(self, x: Tensor) -> State:
        """The state before the first step of x ``(B, T, D)``: zeros."""
        return x.new_zeros(x.shape[0], self.out_features)

    def step(self, state: State, x: Tensor) -> tuple[State, Tensor]:
        """Computes the next state and output from x ``(B, D)``."""
        raise NotImplementedError

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        """Computes all steps; padded ones hold zeros, and their output may be anything."""
        outputs = []
        for t, xt in enumerate(x.unbind(1)):
            new, y = self.step(state, xt)
            state = new if mask is None else keep(mask[:, t], new, state)
            outputs.append(y)
        return torch.stack(outputs, 1), state

    def _run_traced(self, x: Tensor, state: State, mask: Tensor) -> tuple[Tensor, State]:
        """The steps in turn as one operation of an exported graph, for any number of steps."""
        from torch._higher_order_ops.scan import scan  # which torch.onnx writes as ONNX's Scan

        def step(state: State, now: tuple[Tensor, Tensor]) -> tuple[State, Tensor]:
            new, y = self.step(state, now[0])
            kept = keep(now[1], new, state)
            return kept, y.clone()  # one tensor may not be state and output at once

        last, outputs = scan(step, state, (x.transpose(0, 1), mask.T))
        return outputs.transpose(0, 1), last

    def forward(
        self, x: Tensor, mask: Tensor | None = None, state: State = None
    ) -> tuple[Tensor, State]:
        if x.ndim != 3 or x.shape[-1] != self.in_features or not x.shape[1]:
            raise UsageError(
                f"{type(self).__name__} needs x of shape (B, T, {self.in_features}) with T >= 1, "
                f"got {tuple(x.shape)}."
            )
        if mask is None and not is_exporting():
            return self.run(x, self.initial(x) if state is None else state, None)
        if mask is None:
            mask = torch.ones_like(x[..., 0], dtype=torch.bool)
        if mask.shape != x.shape[:2]:
            raise UsageError(
                f"{type(self).__name__} needs a mask of shape {tuple(x.shape[:2])}, got "
                f"{tuple(mask.shape)}."
            )
        present = mask.unsqueeze(-1)
        # where, not multiplication: padding may hold nan, and nan * 0 is nan.
        x = torch.where(present, x, 0)
        run = self._run_traced if is_exporting() else self.run
        y, state = run(x, self.initial(x) if state is None else state, mask)
        return torch.where(present, y, 0), state


def keep(present: Tensor, new: State, old: State) -> State:
    """The new state where a step is present ``(B,)``, else the old one."""
    if isinstance(new, tuple):
        return tuple(keep(present, n, o) for n, o in zip(new, old, strict=True))
    return torch.where(present.unsqueeze(-1), new, old)


def last_present(y: Tensor, mask: Tensor | None, initial: Tensor) -> Tensor:
    """The output at the last step that is present; ``initial`` where there is none."""
    if mask is None:
        return y[:, -1]
    lengths = mask.sum(1)
    place = (lengths - 1).clamp(min=0)[:, None, None].expand(-1, 1, y.shape[2])
    last = y.gather(1, place).squeeze(1)  # take_along_dim cannot be exported
    return torch.where((lengths > 0).unsqueeze(1), last, initial)
