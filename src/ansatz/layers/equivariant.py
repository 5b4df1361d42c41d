"""Linear maps on sets that commute with every order of the elements."""

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.init import affine
from ansatz.layers.ragged import Reduce, segment_reduce, spread


class EquivariantLinear(nn.Module):
    r"""A linear map on sets that commutes with permutations: one term for itself, one for all.

    .. math:: y_i = \Lambda x_i + \Gamma \operatorname{pool}_j x_j + b, \qquad
        \Theta = \lambda I + \gamma 1 1^\top

    With one channel and the sum, the matrix :math:`\Theta` on the n elements has one number on its
    diagonal and another one off it, and no other matrix commutes with all permutations. Here
    :math:`\lambda` and :math:`\gamma` are the K x D matrices :math:`\Lambda` and :math:`\Gamma`;
    the mean, :math:`\gamma / n`, is the default, so that large sets give no large numbers.

    Args:
        in_features: :math:`D`, numbers per element.
        out_features: :math:`K`.
        pool: ``"sum"``, ``"mean"`` or ``"max"`` of the other elements.
        init: name of the initialisation of both matrices.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(E, D)``, all sets one behind the other.
        - offsets: ``(B + 1,)``; set b is ``x[offsets[b]:offsets[b + 1]]``.
        - returns: ``(E, K)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import EquivariantLinear
        >>> EquivariantLinear(3, 4)(torch.randn(5, 3), torch.tensor([0, 2, 5])).shape
        torch.Size([5, 4])

    References:
        Zaheer et al. (2017), Deep Sets, lemma 3 and eq. 4. https://arxiv.org/abs/1703.06114
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        pool: Reduce = "mean",
        init: str = "he_normal",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if pool not in ("sum", "mean", "max"):
            raise UsageError(f"pool of equivariant_linear is sum, mean or max, got {pool!r}.")
        self.in_features, self.out_features, self.pool = in_features, out_features, pool
        self.own = affine(in_features, out_features, init=init, generator=generator)
        self.all = affine(in_features, out_features, init=init, bias=None, generator=generator)

    def forward(self, x: Tensor, offsets: Tensor) -> Tensor:
        if x.ndim != 2 or x.shape[1] != self.in_features:
            raise ValueError(
                f"equivariant_linear needs x of shape (E, {self.in_features}), the elements of all "
                f"sets, got {tuple(x.shape)}."
            )
        pooled = self.all(segment_reduce(x, offsets, self.pool))  # (B, K)
        return self.own(x) + spread(pooled, offsets, len(x))
