"""The recurrent network that reads a source and writes a text, looking back as it writes."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ansatz.layers.attention import BahdanauAttention
from ansatz.layers.gru import GRU
from ansatz.layers.init import affine
from ansatz.layers.stacked import Bidirectional
from ansatz.networks.teacher_forcing import Memory, TeacherForced, read_pair, source_entrance
from ansatz.spec import Inputs


class RecurrentState:
    """The decoder's state h ``(B, H)``, and the source that it attends to."""

    def __init__(self, memory: Memory, h: Tensor) -> None:
        self.memory, self.h = memory, h

    def select(self, rows: Tensor) -> None:
        """Keeps these rows in this order."""
        values, mask = self.memory
        self.memory = values[rows], None if mask is None else mask[rows]
        self.h = self.h[rows]


class Seq2Seq(TeacherForced):
    r"""A GRU in both directions reads the source; another writes the text with attention to it.

    .. math:: c_t = \mathrm{attention}(h_{t-1}, m), \quad
        h_t = \mathrm{GRU}(h_{t-1}, [E y_t, c_t]), \quad
        p(y_{t+1} \mid x, y_{\le t}) = \mathrm{softmax}(E \tanh(W [h_t, c_t, E y_t]) + b)

    m are the states of both directions and the attention is additive. The output map is the
    embedding E of the tokens; a source with the same vocabulary shares it.

    Args:
        inputs: ``InputSpec.joined(source=..., target=InputSpec.sequence(vocabulary=V))``; the
            source is a sequence of codes or numbers, or an image.
        outputs: 3, see ``TeacherForced``.
        width: numbers of a token inside, and of the states.
        dropout: probability that a number of a token is dropped while training.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - source: ``(B, S)`` codes and mask, or ``(B, C, H, W)``; codes and mask ``(B, T)``.
        - returns: ``(B, 3)``: log p(y | x), its smoothed partner, the number of tokens.

    Example:
        >>> import torch
        >>> from ansatz.networks import Seq2Seq
        >>> from ansatz.spec import InputSpec
        >>> words = InputSpec.sequence(vocabulary=9)
        >>> network = Seq2Seq(InputSpec.joined(source=words, target=words), 3, width=8)
        >>> x, y, mask = torch.ones(2, 5).long(), torch.ones(2, 4).long(), torch.ones(2, 4).bool()
        >>> network(x, torch.ones(2, 5).bool(), y, mask).shape
        torch.Size([2, 3])

    References:
        Bahdanau, Cho and Bengio (2015), Neural machine translation by jointly learning to align
        and translate. https://arxiv.org/abs/1409.0473
    """

    def __init__(
        self,
        inputs: Inputs,
        outputs: int = 3,
        *,
        width: int = 256,
        dropout: float = 0.2,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        source, target = read_pair("seq2seq", inputs)
        self._begin_words(target.vocabulary, width, dropout, generator)
        self.entrance = source_entrance(source, target.vocabulary, width, generator)
        make = {"generator": generator}
        self.encoder = Bidirectional(
            GRU(width, width, generator=generator), GRU(width, width, generator=generator)
        )
        self.start = affine(2 * width, width, init="lecun_normal", **make)  # type: ignore[arg-type]
        self.attention = BahdanauAttention(width, 2 * width, width // 2, generator=generator)
        self.decoder = GRU(3 * width, width, generator=generator)
        self.last = affine(4 * width, width, init="glorot_uniform", **make)  # type: ignore[arg-type]
        self.norm = nn.LayerNorm(width)

    def remember(self, source: Sequence[Tensor]) -> Memory:
        x, mask = source[0], source[1] if len(source) > 1 else None
        if mask is not None:
            x = torch.where(mask if x.ndim == 2 else mask.unsqueeze(-1), x, 0)
        h = self._embed(x) if self.entrance is None else self.dropout(self.entrance(x))
        y, _ = self.encoder(h, mask)
        return y, mask

    def _embed(self, codes: Tensor) -> Tensor:
        return self.dropout(self.words(codes) * self.scale)

    def begin(self, memory: Memory) -> RecurrentState:
        values, mask = memory
        if mask is None:
            mean = values.mean(1)
        else:
            mean = values.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        return RecurrentState(memory, self.start(mean).tanh())

    def hidden(self, memory: Memory, codes: Tensor) -> Tensor:
        return self._run(memory, codes)[0]

    def alignment(self, memory: Memory, codes: Tensor) -> Tensor:
        """The weight of each step of the source for each token, ``(B, T, S)``."""
        return self._run(memory, codes)[1]

    def _run(self, memory: Memory, codes: Tensor) -> tuple[Tensor, Tensor]:
        h, contexts, states, weights = self.begin(memory).h, [], [], []
        words = self._embed(codes)  # (B, T, D)
        for word in words.unbind(1):
            h, context, weight = self._next(memory, h, word)
            contexts.append(context)
            states.append(h)
            weights.append(weight)
        return (
            self._out(torch.stack(states, 1), torch.stack(contexts, 1), words),
            torch.stack(weights, 1),
        )

    def _next(self, memory: Memory, h: Tensor, word: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        context, weights = self.attention(h.unsqueeze(1), memory[0], memory[1])
        context = context.squeeze(1)
        h, _ = self.decoder.step(h, torch.cat([word, context], -1))
        return h, context, weights.squeeze(1)

    def _out(self, h: Tensor, context: Tensor, word: Tensor) -> Tensor:
        return self.norm(self.dropout(self.last(torch.cat([h, context, word], -1)).tanh()))

    def step(self, state: RecurrentState, codes: Tensor) -> tuple[RecurrentState, Tensor]:
        word = self._embed(codes)
        state.h, context, _ = self._next(state.memory, state.h, word)
        return state, self.scores(self._out(state.h, context, word))
