"""The transformer that reads a source and writes a text."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from ansatz.layers.attention import split_heads
from ansatz.layers.key_value_cache import KeyValueCache
from ansatz.layers.positions import SinusoidalPositions
from ansatz.layers.transformer_block import TransformerBlock
from ansatz.networks.teacher_forcing import Memory, TeacherForced, read_pair, source_entrance
from ansatz.spec import Inputs


class DecoderState:
    """Keys and values of the tokens so far and of the source, for each block."""

    def __init__(self, memory: Memory, caches: list[KeyValueCache]) -> None:
        self.memory, self.caches = memory, caches

    def select(self, rows: Tensor) -> None:
        """Keeps these rows in this order."""
        values, mask = self.memory
        self.memory = values[rows], None if mask is None else mask[rows]
        for cache in self.caches:
            cache.select(rows)


class EncoderDecoder(TeacherForced):
    r"""A transformer: one stack of blocks reads the source, another writes the text.

    .. math:: m = \mathrm{encoder}(x), \qquad
        p(y_{t+1} \mid x, y_{\le t}) = \mathrm{softmax}(E\, \mathrm{decoder}(y_{\le t}, m)_t + b)

    A block of the decoder attends to the tokens so far, then to m. The output map E is the
    embedding of the tokens; a source with the same vocabulary shares it. Blocks normalise first.

    Args:
        inputs: ``InputSpec.joined(source=..., target=InputSpec.sequence(vocabulary=V))``; the
            source is a sequence of codes or numbers, or an image.
        outputs: 3, see ``TeacherForced``.
        width: numbers of a token inside.
        depth: blocks of the encoder, and of the decoder.
        heads: attentions of a block.
        hidden: units of the network on each step; 2 width when not given.
        dropout: probability that a number is dropped while training.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - source: ``(B, S)`` codes and mask, or ``(B, C, H, W)``; codes and mask ``(B, T)``.
        - returns: ``(B, 3)``: log p(y | x), its smoothed partner, the number of tokens.

    Example:
        >>> import torch
        >>> from ansatz.networks import EncoderDecoder
        >>> from ansatz.spec import InputSpec
        >>> words = InputSpec.sequence(vocabulary=9)
        >>> network = EncoderDecoder(InputSpec.joined(source=words, target=words), 3, width=8)
        >>> x, y, mask = torch.ones(2, 5).long(), torch.ones(2, 4).long(), torch.ones(2, 4).bool()
        >>> network(x, torch.ones(2, 5).bool(), y, mask)[:, 2]
        tensor([5., 5.], grad_fn=<SelectBackward0>)

    References:
        Vaswani et al. (2017), Attention is all you need. https://arxiv.org/abs/1706.03762
    """

    def __init__(
        self,
        inputs: Inputs,
        outputs: int = 3,
        *,
        width: int = 256,
        depth: int = 2,
        heads: int = 4,
        hidden: int | None = None,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        source, target = read_pair("encoder_decoder", inputs)
        self._begin_words(target.vocabulary, width, dropout, generator)
        self.entrance = source_entrance(source, target.vocabulary, width, generator)
        self.positions = SinusoidalPositions(width)
        options = {
            "hidden": hidden or 2 * width,
            "dropout": dropout,
            "activation": "relu",
            "generator": generator,
        }
        self.encoder = nn.ModuleList(
            TransformerBlock(width, heads, **options)  # type: ignore[arg-type]
            for _ in range(depth)
        )
        self.decoder = nn.ModuleList(
            TransformerBlock(width, heads, causal=True, cross=True, **options)  # type: ignore[arg-type]
            for _ in range(depth)
        )
        self.norm, self.last_norm = nn.LayerNorm(width), nn.LayerNorm(width)

    def remember(self, source: Sequence[Tensor]) -> Memory:
        mask = source[1] if len(source) > 1 else None
        if mask is not None and bool(mask.all()):
            mask = None
        h = self._enter(source[0], mask)
        for block in self.encoder:
            h = block(h, mask)
        return self.norm(h), mask

    def _enter(self, x: Tensor, mask: Tensor | None) -> Tensor:
        if mask is not None:
            x = torch.where(mask if x.ndim == 2 else mask.unsqueeze(-1), x, 0)
        if self.entrance is None:
            return self._embed(x)
        return self.dropout(self.positions(self.entrance(x)))

    def _embed(self, codes: Tensor, start: int = 0) -> Tensor:
        return self.dropout(self.positions(self.words(codes) * self.scale, start))

    def hidden(self, memory: Memory, codes: Tensor) -> Tensor:
        h = self._embed(codes)
        for block in self.decoder:
            h = block(h, context=memory[0], context_mask=memory[1])
        return self.last_norm(h)

    def begin(self, memory: Memory) -> DecoderState:
        return DecoderState(memory, [KeyValueCache() for _ in self.decoder])

    def step(self, state: DecoderState, codes: Tensor) -> tuple[DecoderState, Tensor]:
        h = self._embed(codes.unsqueeze(1), state.caches[0].length)
        for block, cache in zip(self.decoder, state.caches, strict=True):
            h = block(h, context=state.memory[0], context_mask=state.memory[1], cache=cache)
        return state, self.scores(self.last_norm(h).squeeze(1))

    def alignment(self, memory: Memory, codes: Tensor) -> Tensor:
        """The weights of the last block's attention to the source, the mean of its heads."""
        layer: Any = self.decoder[-1].cross_attention
        seen: list[Tensor] = []
        handle = layer.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
        try:
            self.hidden(memory, codes)
        finally:
            handle.remove()
        D, W, b = layer.features, layer.in_proj_weight, layer.in_proj_bias
        q = split_heads(linear(seen[0], W[:D], b[:D]), layer.heads)  # (B, h, T, d)
        k = split_heads(linear(memory[0], W[D : 2 * D], b[D : 2 * D]), layer.heads)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if memory[1] is not None:
            scores = scores.masked_fill(~memory[1][:, None, None], -torch.inf)
        return scores.softmax(-1).mean(1)
