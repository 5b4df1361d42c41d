"""One layer of a transformer: attention, then a small network for each step."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.attention import MultiHeadAttention
from ansatz.layers.dense import drop
from ansatz.layers.init import affine
from ansatz.layers.key_value_cache import KeyValueCache
from ansatz.layers.registry import activations

Order = Literal["pre", "post"]


class TransformerBlock(nn.Module):
    r"""Attention between the steps and a network on each of them, both as residuals.

    .. math:: h = x + A(\mathrm{LN}(x)), \quad y = h + F(\mathrm{LN}(h)) \qquad \text{(pre)}

    .. math:: h = \mathrm{LN}(x + A(x)), \quad y = \mathrm{LN}(h + F(h)) \qquad \text{(post)}

    The first trains without a warm-up of the step size; the second is the one of the paper. Names
    of the weights are those of a torchvision encoder block.

    Args:
        features: :math:`D`.
        heads: number of attentions.
        hidden: units of the network on each step; 4 D when not given.
        norm: ``"pre"`` or ``"post"``.
        causal: a step attends to itself and to earlier steps only.
        cross: attend to a context as well, between the two, as a decoder does.
        rotary: rotate queries and keys by their positions.
        activation: of the network on each step.
        dropout: probability that a number or an attention weight is dropped while training.
        eps: of the norms.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, T, D)``; mask: ``(B, T)`` bool, True where a step is present.
        - context: ``(B, S, D)`` and context_mask ``(B, S)``, where ``cross=True``.
        - returns: ``(B, T, D)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import TransformerBlock
        >>> TransformerBlock(8, 2, norm="post")(torch.randn(3, 5, 8)).shape
        torch.Size([3, 5, 8])

    References:
        Vaswani et al. (2017), Attention is all you need, section 3.1.
        https://arxiv.org/abs/1706.03762
        Xiong et al. (2020), On layer normalization in the transformer architecture.
        https://arxiv.org/abs/2002.04745
    """

    def __init__(
        self,
        features: int,
        heads: int,
        *,
        hidden: int | None = None,
        norm: Order = "pre",
        causal: bool = False,
        cross: bool = False,
        rotary: bool = False,
        activation: str = "gelu",
        dropout: float = 0.0,
        eps: float = 1e-5,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if norm not in get_args(Order):
            raise UsageError(f"norm of TransformerBlock must be pre or post, got {norm!r}.")
        self.pre, hidden = norm == "pre", hidden or 4 * features
        self.ln_1 = nn.LayerNorm(features, eps)
        self.self_attention = MultiHeadAttention(
            features, heads, causal=causal, dropout=dropout, rotary=rotary, generator=generator
        )
        self.dropout = drop(dropout)
        self.ln_cross, self.cross_attention = None, None
        if cross:
            self.ln_cross = nn.LayerNorm(features, eps)
            self.cross_attention = MultiHeadAttention(
                features, heads, dropout=dropout, generator=generator
            )
        self.ln_2 = nn.LayerNorm(features, eps)
        self.mlp = nn.Sequential(
            affine(features, hidden, init="glorot_uniform", generator=generator),
            activations.create(activation),
            drop(dropout),
            affine(hidden, features, init="glorot_uniform", generator=generator),
            drop(dropout),
        )

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        *,
        context: Tensor | None = None,
        context_mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        h = self.ln_1(x) if self.pre else x
        h = x + self.dropout(self.self_attention(h, mask=mask, cache=cache))
        x = h if self.pre else self.ln_1(h)
        if self.cross_attention is not None and self.ln_cross is not None:
            if context is None:
                raise UsageError("a TransformerBlock with cross=True needs a context.")
            h = self.ln_cross(x) if self.pre else x
            h = x + self.dropout(self.cross_attention(h, context, context_mask))
            x = h if self.pre else self.ln_cross(h)
        h = x + self.mlp(self.ln_2(x) if self.pre else x)
        return h if self.pre else self.ln_2(h)
