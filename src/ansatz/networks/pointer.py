"""A network that points to the words of a text that answer a question."""

from typing import Any

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.dense import drop
from ansatz.networks.registry import create
from ansatz.networks.token_inputs import embedding, read_tokens
from ansatz.spec import Inputs, InputSpec

NO_CHOICE = -1e4  # of steps outside the context
_OF_CODES = ("bert", "distilbert")


class Pointer(nn.Module):
    r"""Scores every word of a context as the first and as the last of an answer.

    The body, any network with an answer for each step, reads [CLS] question [SEP] context at once.
    A body of numbers takes, beside the embedding of a word, whether it is in the context and
    whether the same word stands on the other side.

    Args:
        inputs: ``InputSpec.sequence(vocabulary=V, length=T)``.
        outputs: 2.
        body: a network by name: ``"lstm"``, ``"gru"``, ``"transformer"``, ``"bert"``, ...
        width: numbers of a word.
        dropout: probability that a number of a word is dropped while training.
        options: of the body's factory.
        generator: of the initial weights.

    Shapes:
        - values, mask: ``(B, T)`` codes and presence.
        - context: ``(B, T)`` bool, True where a step is a word of the context.
        - returns: ``(B, C, 2)``, the scores of the context's words, C the longest context; -10,000
          behind the last.

    Example:
        >>> import torch
        >>> from ansatz.networks import Pointer
        >>> from ansatz.spec import InputSpec
        >>> network = Pointer(InputSpec.sequence(vocabulary=9, length=8), 2, width=8)
        >>> values, context = torch.tensor([[2, 5, 3, 4, 5, 6]]), torch.arange(6)[None] > 2
        >>> network(values, torch.ones(1, 6).bool(), context).shape
        torch.Size([1, 3, 2])

    References:
        Chen et al. (2017), Reading Wikipedia to answer open-domain questions, section 3.2.
        https://arxiv.org/abs/1704.00051
    """

    def __init__(
        self,
        inputs: Inputs,
        outputs: int = 2,
        *,
        body: str = "lstm",
        width: int = 64,
        dropout: float = 0.2,
        options: dict[str, Any] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        vocabulary, length = read_tokens("pointer", inputs)
        self.words = None
        if body in _OF_CODES:
            spec = InputSpec.sequence(vocabulary=vocabulary, length=length)
        else:
            spec = InputSpec.sequence(features=width + 2, length=length)
            self.words = embedding(vocabulary, width, generator, padding=True)
            with torch.no_grad():
                self.words.weight.mul_(10)  # of size 0.2 beside numbers of size 1
        self.dropout = drop(dropout)
        own = {"each": True, **(options or {})}
        self.body = create(body, inputs=spec, outputs=outputs, generator=generator, **own)

    def forward(self, values: Tensor, mask: Tensor, context: Tensor) -> Tensor:
        if context.shape != values.shape:
            raise UsageError(
                f"pointer needs one mark of the context for each step, got {tuple(context.shape)} "
                f"for {tuple(values.shape)}."
            )
        values = values.masked_fill(~mask, 0)
        x: Tensor = values
        if self.words is not None:
            x = torch.cat([self.dropout(self.words(values)), self._marks(values, mask, context)], 2)
        raw = self.body(x, mask).transpose(1, 2)  # (B, T, 2)
        counts = context.sum(1)
        longest = max(1, int(counts.max()))
        found = raw.new_full((len(raw), longest, raw.shape[-1]), NO_CHOICE)
        places = torch.arange(longest, device=raw.device) < counts.unsqueeze(1)
        found[places] = raw[context]
        return found

    def _marks(self, values: Tensor, mask: Tensor, context: Tensor) -> Tensor:
        """Whether a word is in the context, and whether it stands on the other side too."""
        same = values.unsqueeze(2) == values.unsqueeze(1)
        known = mask & (values > 1)
        other = known.unsqueeze(1) & (context.unsqueeze(2) != context.unsqueeze(1))
        match = (same & other).any(2) & known
        marks: Tensor = torch.stack([context, match], 2).to(self.words.weight.dtype)  # type: ignore[union-attr]
        return marks
