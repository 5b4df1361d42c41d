"""Attention: each output is an average of values, weighted by how well keys match a query."""

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention

from ansatz.errors import UsageError
from ansatz.layers.init import affine
from ansatz.layers.key_value_cache import KeyValueCache
from ansatz.layers.limits import require_whole
from ansatz.layers.positions import RotaryPositions
from ansatz.layers.schemes import glorot_uniform


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    r"""Averages the values with weights from the products of queries and keys.

    .. math:: y_i = \sum_t a_{it} v_t, \qquad
        a_{it} = \mathrm{softmax}_t\bigl(q_i \cdot k_t / \sqrt{d}\bigr)

    The division by :math:`\sqrt d` keeps the variance of a score at 1 where the entries of q and
    k are independent with variance 1. A query with nothing to attend to gives 0, and keys that no
    query attends to may hold nan.

    Args:
        q: queries.
        k: keys.
        v: values.
        mask: True where query i may attend to key t.
        causal: query i attends to the keys up to its own time only; where there are more keys
            than queries, the queries are the last of them.
        dropout: probability that a weight is dropped.

    Shapes:
        - q: ``(..., T, d)``; k: ``(..., S, d)``; v: ``(..., S, K)``.
        - mask: bool that broadcasts to ``(..., T, S)``; a mask of keys is ``(B, 1, 1, S)`` for
          heads in the second axis.
        - returns: ``(..., T, K)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import attention
        >>> q = k = v = torch.eye(2).unsqueeze(0)
        >>> attention(q, k, v, causal=True)[0, 0]
        tensor([1., 0.])

    References:
        Vaswani et al. (2017), Attention is all you need, eq. 1. https://arxiv.org/abs/1706.03762
    """
    T, S = q.shape[-2], k.shape[-2]
    if mask is None and (not causal or T == S or T == 1):  # the last query sees all keys
        return scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=causal and T == S)
    allowed = torch.ones(T, S, dtype=torch.bool, device=q.device)
    allowed = allowed.tril(S - T) if causal else allowed
    allowed = allowed if mask is None else allowed & mask  # (..., T, S)
    # where, not weights of zero: keys of padding may hold nan, and nan * 0 is nan.
    seen = allowed.any(-2).unsqueeze(-1)  # (..., S, 1)
    k, v = torch.where(seen, k, 0), torch.where(seen, v, 0)
    alone = ~allowed.any(-1, keepdim=True)  # (..., T, 1): a softmax over nothing is 0/0
    y = scaled_dot_product_attention(q, k, v, attn_mask=allowed | alone, dropout_p=dropout)
    return torch.where(alone, 0, y)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """``(B, T, D)`` as ``(B, heads, T, D / heads)``."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """``(B, heads, T, d)`` as ``(B, T, heads d)``."""
    return x.transpose(1, 2).flatten(2)


def require_heads(owner: str, features: int, heads: int) -> int:
    """``heads``, if the features divide into that number."""
    require_whole(f"heads of {owner}", heads)
    if require_whole(f"features of {owner}", features) % heads:
        raise UsageError(f"heads of {owner} must divide its {features} features, got {heads}.")
    return heads


class MultiHeadAttention(nn.Module):
    r"""Several attentions side by side, each on its own linear maps of the inputs.

    .. math:: y = W_O \,\mathrm{concat}_h\bigl(\mathrm{attention}(W_Q^h x, W_K^h c, W_V^h c)\bigr)

    Self-attention has c = x, cross-attention a context of its own. Without positions it commutes
    with permutations of the steps (equivariance, which is not invariance: each output moves with
    its input). Names and shapes of the weights are those of ``torch.nn.MultiheadAttention``.

    Args:
        features: :math:`D`, of inputs, context and outputs.
        heads: number of attentions; it divides D.
        causal: step i attends to the steps up to i only.
        dropout: probability that a weight is dropped while training.
        rotary: rotates queries and keys by their positions.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, T, D)``; context: ``(B, S, D)``, x when not given.
        - mask: ``(B, S)`` bool, True where a step of the context is present. With a cache it
          covers the cached steps as well.
        - returns: ``(B, T, D)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import MultiHeadAttention
        >>> MultiHeadAttention(8, 2)(torch.randn(3, 5, 8)).shape
        torch.Size([3, 5, 8])

    References:
        Vaswani et al. (2017), Attention is all you need, section 3.2.2.
        https://arxiv.org/abs/1706.03762
    """

    def __init__(
        self,
        features: int,
        heads: int,
        *,
        causal: bool = False,
        dropout: float = 0.0,
        rotary: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.heads = require_heads("MultiHeadAttention", features, heads)
        self.features, self.causal, self.dropout = features, causal, dropout
        W = glorot_uniform(torch.empty(3 * features, features), generator=generator)
        self.in_proj_weight = nn.Parameter(W)
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * features))
        self.out_proj = affine(features, features, init="lecun_normal", generator=generator)
        self.rotary = RotaryPositions(features // heads) if rotary else None

    def forward(
        self,
        x: Tensor,
        context: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        self._require(x)
        if context is None:
            maps = linear(x, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
        else:
            D = self.features
            q = linear(x, self.in_proj_weight[:D], self.in_proj_bias[:D])
            rest = linear(context, self.in_proj_weight[D:], self.in_proj_bias[D:])
            maps = (q, *rest.chunk(2, -1))
        q, k, v = (split_heads(part, self.heads) for part in maps)  # (B, h, T, d)
        if self.rotary is not None:
            start = 0 if cache is None else cache.length
            q, k = self.rotary(q, start), self.rotary(k, start)
        if cache is not None:
            k, v = cache.append(torch.stack([k, v])).unbind()
        keys = None if mask is None else mask[:, None, None]  # (B, 1, 1, S)
        dropout = self.dropout if self.training else 0.0
        return self.out_proj(
            join_heads(attention(q, k, v, keys, causal=self.causal, dropout=dropout))
        )

    def _require(self, x: Tensor) -> None:
        if x.ndim != 3 or x.shape[-1] != self.features:
            raise UsageError(
                f"MultiHeadAttention needs x of shape (B, T, {self.features}), "
                f"got {tuple(x.shape)}. A single sequence needs a batch axis: x[None]."
            )


class BahdanauAttention(nn.Module):
    r"""Additive attention: a small network scores how well each key matches a query.

    .. math:: c_i = \sum_j a_{ij} \zeta_j, \qquad
        a_{ij} = \mathrm{softmax}_j\bigl(u^\top \tanh(W z_i + U \zeta_j)\bigr)

    Args:
        query_features: numbers of a query :math:`z_i`, such as a decoder's state.
        key_features: numbers of a key :math:`\zeta_j`, such as an encoder's state; D.
        hidden: length of u.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - queries: ``(B, T, Q)``; keys: ``(B, S, D)``.
        - mask: ``(B, S)`` bool, True where a key is present.
        - returns: contexts ``(B, T, D)`` and weights ``(B, T, S)``, whose rows sum to 1, or are 0
          where no key is present.

    Example:
        >>> import torch
        >>> from ansatz.layers import BahdanauAttention
        >>> context, weights = BahdanauAttention(3, 4)(torch.randn(2, 5, 3), torch.randn(2, 6, 4))
        >>> context.shape, weights.shape
        (torch.Size([2, 5, 4]), torch.Size([2, 5, 6]))

    References:
        Bahdanau, Cho and Bengio (2015), Neural machine translation by jointly learning to align
        and translate, eqs. 5 and 6. https://arxiv.org/abs/1409.0473
    """

    def __init__(
        self,
        query_features: int,
        key_features: int,
        hidden: int = 64,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        options = {"init": "lecun_normal", "bias": None, "generator": generator}
        self.query = affine(query_features, hidden, **options)  # type: ignore[arg-type]  # W
        self.key = affine(key_features, hidden, **options)  # type: ignore[arg-type]  # U
        self.score = affine(hidden, 1, **options)  # type: ignore[arg-type]  # u

    def forward(
        self, queries: Tensor, keys: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        if mask is not None:
            keys = torch.where(mask.unsqueeze(-1), keys, 0)
        sums = self.query(queries).unsqueeze(2) + self.key(keys).unsqueeze(1)  # (B, T, S, H)
        scores = self.score(sums.tanh()).squeeze(-1)  # (B, T, S)
        if mask is None:
            weights = scores.softmax(-1)
        else:
            present = mask.unsqueeze(1)  # (B, 1, S)
            alone = ~present.any(-1, keepdim=True)
            weights = scores.masked_fill(~(present | alone), -torch.inf).softmax(-1)
            weights = torch.where(present, weights, 0)
        return weights @ keys, weights
