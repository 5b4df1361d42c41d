"""Pools the elements of each set to one vector."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.init import affine
from ansatz.layers.ragged import segment_reduce, segment_softmax, segment_sum

Pool = Literal["sum", "mean", "max", "attention"]


class SetPool(nn.Module):
    r"""The sum, mean, maximum or attention-weighted mean of the elements of each set.

    .. math:: y_b = \sum_{i \in b} a_i x_i, \qquad a = \operatorname{softmax}_{i \in b}(w^\top x_i)

    for ``"attention"``. An empty set gives 0.

    Args:
        features: :math:`D`, numbers per element.
        pool: one of those four.
        generator: where w is drawn from; torch's global one when not given.

    Shapes:
        - x: ``(E, D)``; offsets ``(B + 1,)``; returns ``(B, D)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import SetPool
        >>> SetPool(1, "max")(torch.tensor([[1.0], [3.0], [2.0]]), torch.tensor([0, 2, 3])).tolist()
        [[3.0], [2.0]]

    References:
        Ilse et al. (2018), Attention-based deep multiple instance learning, for the weights.
        https://arxiv.org/abs/1802.04712
    """

    def __init__(
        self, features: int, pool: Pool = "mean", *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        if pool not in get_args(Pool):
            known = ", ".join(get_args(Pool))
            raise UsageError(f"pool must be one of {known}, got {pool!r}.")
        self.pool: Pool = pool
        self.score: nn.Linear | None = None
        if pool == "attention":
            self.score = affine(features, 1, init="lecun_normal", bias=None, generator=generator)

    def forward(self, x: Tensor, offsets: Tensor) -> Tensor:
        if self.score is not None:
            return segment_sum(segment_softmax(self.score(x), offsets) * x, offsets)
        assert self.pool != "attention"
        return segment_reduce(x, offsets, self.pool)
