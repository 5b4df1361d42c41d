"""GPT-2: a causal transformer that predicts the next token."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear

from ansatz.layers.attention import attention, join_heads, require_heads
from ansatz.layers.dense import drop
from ansatz.layers.key_value_cache import KeyValueCache
from ansatz.layers.limits import require_whole
from ansatz.layers.lora import adapt
from ansatz.layers.schemes import draw_normal
from ansatz.networks.token_inputs import embedding, read_tokens, require_codes, small_linear
from ansatz.spec import Inputs


class _Map(nn.Module):
    """x W + b with W of shape (inputs, outputs): the transpose of torch's linear map.

    x is ``(B T, inputs)``: one call for the whole map, where more axes take three.
    """

    def __init__(self, before: int, after: int, generator: torch.Generator | None) -> None:
        super().__init__()
        self.in_features, self.out_features, self.transposed = before, after, True
        self.weight = nn.Parameter(draw_normal(torch.empty(before, after), 0.02, generator))
        self.bias = nn.Parameter(torch.zeros(after))

    def forward(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x, self.weight)


class _Attention(nn.Module):
    def __init__(
        self, width: int, heads: int, dropout: float, generator: torch.Generator | None
    ) -> None:
        super().__init__()
        self.heads, self.p = require_heads("gpt", width, heads), dropout
        self.c_attn = _Map(width, 3 * width, generator)
        self.c_proj = _Map(width, width, generator)

    def forward(
        self, x: Tensor, batch: int, mask: Tensor | None, cache: KeyValueCache | None
    ) -> Tensor:
        maps = self.c_attn(x).view(batch, -1, 3, self.heads, x.shape[1] // self.heads)
        maps = maps.permute(2, 0, 3, 1, 4)
        if cache is None:
            q, k, v = maps.unbind()  # (B, h, T, d)
        else:
            q, (k, v) = maps[0], cache.append(maps[1:]).unbind()
        keys = None if mask is None else mask[:, None, None]
        y = attention(q, k, v, keys, causal=True, dropout=self.p if self.training else 0.0)
        return self.c_proj(join_heads(y).flatten(0, 1))


class _Perceptron(nn.Module):
    def __init__(self, width: int, hidden: int, generator: torch.Generator | None) -> None:
        super().__init__()
        self.c_fc = _Map(width, hidden, generator)
        self.c_proj = _Map(hidden, width, generator)

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(gelu(self.c_fc(x), approximate="tanh"))


class _Block(nn.Module):
    def __init__(
        self,
        width: int,
        heads: int,
        hidden: int,
        dropout: float,
        eps: float,
        generator: torch.Generator | None,
    ) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width, eps)
        self.attn = _Attention(width, heads, dropout, generator)
        self.ln_2 = nn.LayerNorm(width, eps)
        self.mlp = _Perceptron(width, hidden, generator)
        self.drop = drop(dropout)

    def forward(
        self, x: Tensor, batch: int, mask: Tensor | None, cache: KeyValueCache | None
    ) -> Tensor:
        y = self.attn(self.ln_1(x), batch, mask, cache)
        x = x + (self.drop(y) if self.training else y)
        y = self.mlp(self.ln_2(x))
        return x + (self.drop(y) if self.training else y)


class GPT(nn.Module):
    r"""A causal transformer on tokens, with the names and the computation of GPT-2.

    .. math:: p(w_{t+1} = k \mid w_1, \dots, w_t) = \mathrm{softmax}_k(E h_t)

    With ``each=True`` and as many outputs as tokens it is a language model, whose last map is the
    embedding E itself. Otherwise the state of the last present token is mapped to the outputs, or
    with ``each=True`` the state of each token. Positions count the present tokens, so that padding
    on either side changes nothing.

    Args:
        inputs: ``InputSpec.sequence(vocabulary=V, length=T)``; 512 positions without a length.
        outputs: :math:`P`.
        width: :math:`D`, numbers of a token.
        depth: blocks.
        heads: attentions of a block.
        hidden: units of a block's network; 4 D when not given.
        dropout: probability that a number is dropped while training.
        eps: of the norms.
        each: one answer for each token.
        rank: of low-rank changes of the attention's maps, all that is then trained besides the
            last map, see :class:`~ansatz.layers.LoRA`; 0 for none.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - values: ``(B, T)`` int64; mask: ``(B, T)`` bool, True where a token is present.
        - caches: one for each block; the mask then covers the cached tokens too.
        - returns: ``(B, P)``, or ``(B, P, T)`` with ``each=True``.

    Example:
        >>> import torch
        >>> from ansatz.networks import GPT
        >>> from ansatz.spec import InputSpec
        >>> tokens = InputSpec.sequence(vocabulary=50, length=16)
        >>> model = GPT(tokens, 50, width=8, heads=2, each=True)
        >>> model(torch.ones(2, 5, dtype=torch.long)).shape
        torch.Size([2, 50, 5])

    References:
        Radford et al. (2019), Language models are unsupervised multitask learners, section 2.3.
    """

    optional: tuple[str, ...] = (
        "lm_head",
        "score",
        "classifier",
    )  # of a file: heads of other tasks

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int = 128,
        depth: int = 4,
        heads: int = 4,
        hidden: int | None = None,
        dropout: float = 0.0,
        eps: float = 1e-5,
        each: bool = False,
        rank: int = 0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.vocabulary, self.length = read_tokens("gpt", inputs)
        require_whole("depth of gpt", depth, high=1_000)
        self.each, self.tied = each, each and outputs == self.vocabulary
        hidden = hidden or 4 * width
        blocks = [
            _Block(width, heads, hidden, dropout, eps, generator) for _ in range(depth)
        ]  # fmt: skip
        self.transformer = nn.ModuleDict(
            {
                "wte": embedding(self.vocabulary, width, generator),
                "wpe": embedding(self.length, width, generator),
                "drop": drop(dropout),
                "h": nn.ModuleList(blocks),
                "ln_f": nn.LayerNorm(width, eps),
            }
        )
        self.heads: tuple[str, ...] = ()
        if not self.tied:
            head = "classifier" if each else "score"
            bias = 0.0 if each else None
            self.add_module(head, small_linear(width, outputs, generator, bias=bias))
            self.heads = (head,)
            self.optional = tuple(name for name in GPT.optional if name != head)
        adapt(self, ("c_attn",), rank, generator=generator)

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its layers from x to the outcome: embeddings, blocks, last norm and map."""
        parts = self.transformer
        head = [self.get_submodule(name) for name in self.heads]
        blocks: list[list[nn.Module]] = [[block] for block in parts["h"].children()]
        middle = [[parts["ln_f"]], head] if head else [[parts["ln_f"]]]
        return [[parts["wte"], parts["wpe"]], *blocks, *middle]

    def caches(self) -> list[KeyValueCache]:
        """New caches, one for each block."""
        return [KeyValueCache() for _ in self.transformer["h"].children()]

    def hidden_states(
        self,
        values: Tensor,
        mask: Tensor | None = None,
        caches: Sequence[KeyValueCache] | None = None,
    ) -> Tensor:
        """The states after the last norm, ``(B, T, D)``."""
        parts, before = self.transformer, caches[0].length if caches else 0
        require_codes("gpt", self.vocabulary, self.length - before, values)
        if mask is None:
            places = torch.arange(before, before + values.shape[1], device=values.device)
        else:
            places = (mask.cumsum(1) - 1).clamp(min=0)[:, before:]
        x = parts["wte"](values) + parts["wpe"](places)
        x = (parts["drop"](x) if self.training else x).flatten(0, 1)  # (B T, D)
        for number, block in enumerate(parts["h"].children()):
            x = block(x, values.shape[0], mask, caches[number] if caches else None)
        return parts["ln_f"](x).unflatten(0, values.shape)

    def advance(
        self,
        values: Tensor,
        mask: Tensor | None = None,
        state: list[KeyValueCache] | None = None,
    ) -> tuple[Tensor, list[KeyValueCache]]:
        """Logits of the token that follows, ``(B, P)``, and the caches after the values."""
        caches = self.caches() if state is None else state
        h = self.hidden_states(values, mask, caches)[:, -1]
        if self.tied:
            return linear(h, self.transformer.get_parameter("wte.weight")), caches
        return self.get_submodule(self.heads[0])(h), caches

    def forward(
        self,
        values: Tensor,
        mask: Tensor | None = None,
        caches: Sequence[KeyValueCache] | None = None,
    ) -> Tensor:
        h = self.hidden_states(values, mask, caches)
        if self.tied:
            return linear(h, self.transformer.get_parameter("wte.weight")).transpose(1, 2)
        head = self.get_submodule(self.heads[0])
        if self.each:
            return head(h).transpose(1, 2)
        if mask is None:
            return head(h[:, -1])
        steps = torch.arange(mask.shape[1], device=mask.device)
        last = (steps * mask).amax(1)  # of the present tokens
        return head(h[torch.arange(h.shape[0], device=h.device), last])
