"""Low-rank changes of a trained linear map."""

import torch
from torch import Tensor, nn

from ansatz.layers.limits import require_positive, require_whole
from ansatz.layers.schemes import draw_normal


class LoRA(nn.Module):
    r"""A frozen linear map plus a trained one of low rank.

    .. math:: y = W x + b + \frac{\alpha}{r} B A x, \qquad A \in \mathbb{R}^{r \times D},
        B \in \mathbb{R}^{K \times r}

    B starts at 0, so that the outputs begin unchanged; only r (D + K) numbers are trained.

    Args:
        linear: the map to adapt; its weights are frozen in place.
        rank: :math:`r`.
        alpha: :math:`\alpha`; r when not given.
        generator: where A is drawn from; torch's global one when not given.

    Shapes:
        - x: ``(..., D)``; returns ``(..., K)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import LoRA
        >>> linear, x = torch.nn.Linear(6, 5), torch.randn(2, 6)
        >>> torch.equal(LoRA(linear, 2)(x), linear(x))
        True

    References:
        Hu et al. (2021), LoRA: low-rank adaptation of large language models, section 4.1.
        https://arxiv.org/abs/2106.09685
    """

    def __init__(
        self,
        linear: nn.Linear,
        rank: int = 8,
        *,
        alpha: float | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        require_whole("rank of LoRA", rank, high=min(linear.in_features, linear.out_features))
        self.scale = require_positive("alpha of LoRA", rank if alpha is None else alpha) / rank
        self.linear = linear.requires_grad_(False)
        A = linear.weight.new_empty(rank, linear.in_features)
        self.A = nn.Parameter(draw_normal(A, linear.in_features**-0.5, generator))
        self.B = nn.Parameter(linear.weight.new_zeros(linear.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merge(self) -> nn.Linear:
        """A plain linear map with the same outputs, W + (alpha / r) B A."""
        weight = self.linear.weight.detach() + self.scale * (self.B @ self.A).detach()
        merged = nn.Linear(
            self.linear.in_features, self.linear.out_features, self.linear.bias is not None,
            device="meta",
        )  # fmt: skip
        merged.weight = nn.Parameter(weight)
        if self.linear.bias is not None:
            merged.bias = nn.Parameter(self.linear.bias.detach().clone())
        return merged
