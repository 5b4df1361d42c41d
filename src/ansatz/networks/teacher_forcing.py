"""Networks that read one thing and write a text: encoder, decoder and the score of a text."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.dense import drop
from ansatz.layers.init import affine
from ansatz.networks.token_inputs import embedding
from ansatz.spec import Inputs, InputSpec

Memory = tuple[Tensor, Tensor | None]  # (B, S, D) and the mask (B, S), None where all are present


def read_pair(owner: str, inputs: Inputs) -> tuple[InputSpec, InputSpec]:
    """The specs of the source and of the text that is written; other inputs are refused."""
    spec = InputSpec.of(inputs)
    parts = dict(spec.parts)
    if set(parts) != {"source", "target"} or not parts["target"].vocabulary:
        raise UsageError(
            f"{owner} reads a source and writes a text: it needs inputs of two parts, "
            "InputSpec.joined(source=..., target=InputSpec.sequence(vocabulary=...))."
        )
    source = parts["source"]
    if source.structure not in ("sequence", "grid"):
        raise UsageError(f"{owner} reads texts, signals and images, not '{source.structure}'.")
    return source, parts["target"]


class TeacherForced(nn.Module):
    r"""The score of a text y given a source x, each token predicted from the true ones before it.

    .. math:: \log p(y \mid x) = \sum_{t=1}^{T+1} \log p(y_t \mid x, y_{<t}),
        \qquad y_0 = y_{T+1} = \text{boundary}

    The boundary has the last code of the vocabulary. A subclass reads (``remember``) and writes
    (``hidden`` for all tokens at once, ``begin`` and ``step`` for one after another).

    Shapes:
        - source: the tensors of the source: ``(B, S)`` codes and mask, or ``(B, C, H, W)``.
        - codes: ``(B, T)`` of the text, without boundaries; mask ``(B, T)``.
        - returns: ``(B, 3)``: the log-probability of the text, the sum over its tokens of the
          mean log-probability of all tokens (which label smoothing takes), and the number of
          tokens, the last boundary included.
    """

    words: nn.Embedding  # of the text; the output map is its transpose

    @property
    def boundary(self) -> int:
        """The code before and after a text."""
        return self.words.num_embeddings - 1

    def remember(self, source: Sequence[Tensor]) -> Memory:
        """What is read of the source."""
        raise TypeError(f"{type(self).__name__} does not define remember.")

    def hidden(self, memory: Memory, codes: Tensor) -> Tensor:
        """The states that predict the token after each of ``codes``, ``(B, T, D)``."""
        raise TypeError(f"{type(self).__name__} does not define hidden.")

    def begin(self, memory: Memory) -> Any:
        """The state before the first token; it has ``select(rows)``."""
        raise TypeError(f"{type(self).__name__} does not define begin.")

    def step(self, state: Any, codes: Tensor) -> tuple[Any, Tensor]:
        """The state after one more token ``(B,)``, and the scores of the next ``(B, V)``."""
        raise TypeError(f"{type(self).__name__} does not define step.")

    def scores(self, hidden: Tensor) -> Tensor:
        """Logits of all tokens; padding is never written."""
        found = hidden @ self.words.weight.t() + self.bias
        return found.index_fill(-1, found.new_zeros(1, dtype=torch.long), -1e4)

    def forward(self, *inputs: Tensor) -> Tensor:
        *source, codes, mask = inputs
        return self.score(self.remember(source), codes, mask)

    def score(self, memory: Memory, codes: Tensor, mask: Tensor) -> Tensor:
        """The scores of texts after a source was read, ``(B, 3)``."""
        first = codes.new_full((len(codes), 1), self.boundary)
        before = torch.cat([first, codes.masked_fill(~mask, 0)], 1)  # (B, T + 1)
        seen = torch.cat([torch.ones_like(mask[:, :1]), mask], 1)
        after = torch.cat([codes.masked_fill(~mask, 0), torch.zeros_like(first)], 1)
        after.scatter_(1, mask.sum(1, keepdim=True), self.boundary)
        h = self.hidden(memory, before)[seen]  # (tokens, D)
        logits = self.scores(h)
        total = logits.logsumexp(-1)
        chosen = logits.gather(1, after[seen].unsqueeze(1)).squeeze(1) - total
        # Padding is not a token: the mean is over the others.
        mean = (logits.sum(-1) + 1e4) / (logits.shape[1] - 1) - total
        row = torch.arange(len(codes), device=codes.device).unsqueeze(1).expand_as(seen)[seen]
        found = torch.stack([chosen, mean, torch.ones_like(chosen)], 1)
        return found.new_zeros(len(codes), 3).index_add(0, row, found)

    def _begin_words(
        self, vocabulary: int, width: int, dropout: float, generator: torch.Generator | None
    ) -> None:
        self.words = embedding(vocabulary, width, generator, padding=True)
        nn.init.normal_(self.words.weight, std=width**-0.5, generator=generator)
        self.scale = float(width**0.5)  # embeddings of size 1
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        self.dropout = drop(dropout)

    def begin_at(self, log_p: Tensor) -> None:
        """Lets the output begin at these log-probabilities of tokens, ``(V,)``, whatever x is."""
        with torch.no_grad():
            self.bias.copy_(log_p.clamp(min=-20))

    def alignment(self, memory: Memory, codes: Tensor) -> Tensor:
        """The weight of each step of the source for the token after each of ``codes``."""
        raise TypeError(f"{type(self).__name__} does not align.")


def source_entrance(
    spec: InputSpec, vocabulary: int, width: int, generator: torch.Generator | None
) -> nn.Module | None:
    """The map of the source's steps to vectors; None where it shares that of the text."""
    if spec.structure == "grid":
        return ImageSteps(spec.features, width, generator)
    if not spec.vocabulary:
        return affine(spec.features, width, init="lecun_normal", generator=generator)
    if spec.vocabulary == vocabulary:
        return None
    return embedding(spec.vocabulary, width, generator, padding=True)


class ImageSteps(nn.Module):
    """An image as steps from left to right and from top to bottom, by three convolutions.

    Each halves height and width, so that a step stands for 8 x 8 pixels and what is around them.

    Shapes:
        - x: ``(B, C, H, W)``; returns ``(B, ceil(H / 8) ceil(W / 8), width)``.
    """

    def __init__(self, channels: int, width: int, generator: torch.Generator | None) -> None:
        super().__init__()
        widths = [channels, max(8, width // 4), max(8, width // 2), width]
        layers: list[nn.Module] = []
        for before, after in pairwise(widths):
            convolution = nn.Conv2d(before, after, 3, stride=2, padding=1)
            nn.init.kaiming_normal_(convolution.weight, generator=generator)
            nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]
            layers += [convolution, nn.GroupNorm(4, after), nn.ReLU()]
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.layers(x)
        return found.flatten(2).transpose(1, 2)
