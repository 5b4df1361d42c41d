"""Low-rank changes of a trained linear map."""

import copy
from collections.abc import Collection
from typing import Any

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
        linear: the map to adapt, or one of a GPT-2, whose weight is the transpose; its weights are
            frozen in place.
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
        linear: nn.Module,
        rank: int = 8,
        *,
        alpha: float | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        inputs, outputs = int(linear.in_features), int(linear.out_features)  # type: ignore[arg-type]
        require_whole("rank of LoRA", rank, high=min(inputs, outputs))
        self.scale = require_positive("alpha of LoRA", rank if alpha is None else alpha) / rank
        self.linear = linear.requires_grad_(False)
        weight = linear.get_parameter("weight")
        A = weight.new_empty(rank, inputs)
        self.A = nn.Parameter(draw_normal(A, inputs**-0.5, generator))
        self.B = nn.Parameter(weight.new_zeros(outputs, rank))

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merge(self) -> nn.Module:
        """A plain map with the same outputs, W + (alpha / r) B A."""
        merged = copy.deepcopy(self.linear).requires_grad_()
        change = self.scale * (self.B @ self.A).detach()
        weight = merged.get_parameter("weight")
        weight.data += change.T if getattr(self.linear, "transposed", False) else change
        return merged


def adapt(network: nn.Module, names: Collection[str], rank: int, **options: Any) -> nn.Module:
    """Puts :class:`LoRA` in the place of the maps of these names, wherever they are.

    Args:
        network: changed in place.
        names: of the maps, without the path to them.
        rank: of the changes; 0 leaves the network as it is.
        options: ``alpha`` and ``generator`` of :class:`LoRA`.

    Example:
        >>> import torch
        >>> from ansatz.layers.lora import adapt
        >>> adapt(torch.nn.Sequential(torch.nn.Linear(3, 4)), ["0"], 2)[0]
        LoRA(
          (linear): Linear(in_features=3, out_features=4, bias=True)
        )
    """
    if require_whole("rank", rank, low=0):
        for parent in list(network.modules()):
            for name, part in list(parent.named_children()):
                if name in names:
                    parent.add_module(name, LoRA(part, rank, **options))
    return network


def merge(network: nn.Module) -> nn.Module:
    """A copy of a network with plain maps in the place of every :class:`LoRA`."""
    found = copy.deepcopy(network)
    for parent in list(found.modules()):
        for name, part in list(parent.named_children()):
            if isinstance(part, LoRA):
                parent.add_module(name, part.merge())
    return found
