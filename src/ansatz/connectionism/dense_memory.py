"""Dense associative memories, whose steep energies hold many patterns."""

from typing import Any, Literal, Self, get_args

import torch
from torch import Tensor, nn

Energy = Literal["log_sum_exp", "polynomial"]
States = Literal["continuous", "binary"]


class DenseAssociativeMemory(nn.Module):
    r"""An associative memory that weighs its stored patterns by their closeness to the state.

    With the overlaps :math:`z_p = x_p^\top \xi` of a state with the N patterns, the energies are

    .. math:: E_{\mathrm{lse}}(\xi) = -\frac{1}{\beta} \log \sum_{p=1}^N e^{\beta z_p}
        + \tfrac{1}{2} \lVert \xi \rVert^2, \qquad
        E_{\mathrm{poly}}(\xi) = -\sum_{p=1}^N F(z_p / D),\quad F(z) = z^k

    (with ``rectified``, :math:`F(z) = \max(z, 0)^k`). States are updated so that E never rises:

    - continuous, ``"log_sum_exp"``: :math:`\xi \leftarrow X^\top \mathrm{softmax}(\beta X \xi)`,
      which is attention with the query :math:`\xi` and the patterns as keys and values;
    - continuous, ``"polynomial"``: on the sphere of radius :math:`\sqrt{D}`,
      :math:`\xi \propto \sum_p F'(z_p) x_p`; F must be convex: k even, or rectified;
    - binary, either: signs, one after the other, each to where E is lower.

    With :math:`k = 2` and binary states this is Hopfield's network with Hebb's rule. About
    :math:`D^{k-1}` random patterns are held for the power k, and exponentially many in D for the
    exponential.

    Args:
        patterns: ``(N, D)``; signs -1 and 1 for binary states, any numbers for continuous ones.
        energy: ``"log_sum_exp"`` or ``"polynomial"``.
        states: ``"continuous"`` or ``"binary"``.
        beta: :math:`\beta`, the inverse temperature of ``"log_sum_exp"``.
        order: :math:`k` of ``"polynomial"``.
        rectified: whether negative overlaps count nothing.

    Shapes:
        - x: ``(B, D)`` or ``(D,)``.
        - returns: what was recalled, of the same shape.

    Example:
        >>> import torch
        >>> from ansatz.connectionism import DenseAssociativeMemory
        >>> patterns = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> memory = DenseAssociativeMemory(patterns, beta=20.0)
        >>> memory(torch.tensor([0.7, 0.2])).round(decimals=3)
        tensor([1., 0.])

    References:
        Krotov and Hopfield (2016), Dense associative memory for pattern recognition.
        https://arxiv.org/abs/1606.01164
        Demircigil et al. (2017), On a model of associative memory with huge storage capacity.
        https://arxiv.org/abs/1702.01929
        Ramsauer et al. (2020), Hopfield networks is all you need, eq. 2 and 3.
        https://arxiv.org/abs/2008.02217
    """

    patterns: Tensor

    def __init__(
        self,
        patterns: Tensor,
        *,
        energy: Energy = "log_sum_exp",
        states: States = "continuous",
        beta: float = 1.0,
        order: int = 3,
        rectified: bool = False,
    ) -> None:
        super().__init__()
        for name, value, known in (("energy", energy, Energy), ("states", states, States)):
            if value not in get_args(known):
                options = " or ".join(repr(each) for each in get_args(known))
                raise ValueError(f"{name} of DenseAssociativeMemory is {options}, got {value!r}.")
        if not 0 < beta < float("inf"):
            raise ValueError(f"beta of DenseAssociativeMemory must be > 0, got {beta}.")
        if order < 2 or order != int(order):
            raise ValueError(
                f"order of DenseAssociativeMemory must be a whole number >= 2, got {order}."
            )
        if (energy, states) == ("polynomial", "continuous") and order % 2 and not rectified:
            raise ValueError(
                f"z^{order} is not convex, and continuous states would not descend its energy. "
                "Take an even order, or rectified=True."
            )
        if patterns.ndim != 2:
            raise ValueError(
                "patterns of DenseAssociativeMemory need shape (N, D), "
                f"got {tuple(patterns.shape)}."
            )
        self.kind, self.states = energy, states
        self.beta, self.order, self.rectified = float(beta), int(order), bool(rectified)
        self._check(patterns)
        self.register_buffer("patterns", patterns.clone().to(_floating(patterns)))

    def store(self, patterns: Tensor) -> Self:
        """Adds patterns, ``(N, D)`` or ``(D,)``, to those that are there."""
        rows = patterns.reshape(-1, self.patterns.shape[1])
        self._check(rows)
        self.patterns = torch.cat([self.patterns, rows.to(self.patterns)])
        return self

    def energy(self, x: Tensor) -> Tensor:
        """The energy E of each state.

        Shapes:
            - x: ``(..., D)``.
            - returns: ``(...)``.
        """
        overlaps = x @ self.patterns.T
        if self.kind == "polynomial":
            return -self._power(overlaps).sum(-1)
        return 0.5 * x.square().sum(-1) - (self.beta * overlaps).logsumexp(-1) / self.beta

    def step(self, x: Tensor) -> Tensor:
        """One update of a continuous state, or one sweep over the signs of a binary one.

        Shapes:
            - x: ``(..., D)``.
            - returns: ``(..., D)``.
        """
        self._check(x)
        if self.states == "binary":
            return self._sweep(x)
        overlaps = x @ self.patterns.T  # (..., N)
        if self.kind == "log_sum_exp":
            return (self.beta * overlaps).softmax(-1) @ self.patterns
        direction = self._slope(overlaps) @ self.patterns
        norm = direction.norm(dim=-1, keepdim=True)
        # No pattern pulls: the state is at rest where it is.
        radius = self.patterns.shape[1] ** 0.5
        return torch.where(norm > 0, direction * (radius / norm.clamp(min=1e-30)), x)

    def forward(self, x: Tensor) -> Tensor:
        return self.recall(x)

    def recall(self, x: Tensor, steps: int = 100, tolerance: float = 1e-6) -> Tensor:
        """Steps until nothing changes by more than ``tolerance``, or ``steps`` are done.

        Args:
            x: where to begin, ``(B, D)`` or ``(D,)``; it is not changed.
            steps: at most.
            tolerance: the largest change of a coordinate that counts as none.
        """
        state = x.to(self.patterns)
        for _ in range(steps):
            before, state = state, self.step(state)
            if not ((state - before).abs() > tolerance).any():
                break
        return state

    def _sweep(self, x: Tensor) -> Tensor:
        """Each sign in turn to where the energy is lower; +1 where both are alike."""
        state = x.to(self.patterns).clone()
        overlaps = state @ self.patterns.T  # (..., N)
        for i in range(state.shape[-1]):
            pattern = self.patterns[:, i]
            others = overlaps - state[..., i : i + 1] * pattern
            up, down = self._total(others + pattern), self._total(others - pattern)
            rounding = 8 * torch.finfo(state.dtype).eps * (up.abs() + down.abs())
            state[..., i] = torch.where(up - down >= -rounding, 1.0, -1.0).to(state.dtype)
            overlaps = others + state[..., i : i + 1] * pattern
        return state

    def _total(self, overlaps: Tensor) -> Tensor:
        if self.kind == "polynomial":
            return self._power(overlaps).sum(-1)
        return (self.beta * overlaps).logsumexp(-1)

    def _power(self, overlaps: Tensor) -> Tensor:
        z = overlaps / self.patterns.shape[1]  # no overflow at any order
        return (z.clamp(min=0) if self.rectified else z) ** self.order

    def _slope(self, overlaps: Tensor) -> Tensor:
        z = overlaps / self.patterns.shape[1]
        return (z.clamp(min=0) if self.rectified else z) ** (self.order - 1)

    def _check(self, x: Tensor) -> None:
        size = self.patterns.shape[1] if hasattr(self, "patterns") else x.shape[-1]
        if x.ndim == 0 or x.shape[-1] != size:
            raise ValueError(
                f"DenseAssociativeMemory needs x of shape (..., {size}), got {tuple(x.shape)}."
            )
        if self.states == "binary" and not (x.abs() == 1).all():
            raise ValueError(
                f"binary states are -1 and 1, got {x[x.abs() != 1][0].item()}. "
                "From zeros and ones: 2 * x - 1."
            )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        saved = state_dict.get(f"{prefix}patterns")
        if saved is not None and saved.ndim == 2:  # a memory may hold any number of patterns
            self.patterns = self.patterns.new_empty(len(saved), self.patterns.shape[1])
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def extra_repr(self) -> str:
        shape = f"beta={self.beta:g}" if self.kind == "log_sum_exp" else f"order={self.order}"
        count, size = self.patterns.shape
        return f"{count} patterns of {size}, energy={self.kind!r}, states={self.states!r}, {shape}"


def _floating(x: Tensor) -> torch.dtype:
    return x.dtype if x.is_floating_point() else torch.get_default_dtype()
