"""Interpolated Kneser-Ney: the probability of a token by counts of short contexts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.limits import require_whole
from ansatz.networks.token_inputs import read_tokens
from ansatz.spec import Inputs

MULTIPLIER = 6364136223846793005  # of a linear congruential generator modulo 2^64 (Knuth)


class NGram(nn.Module):
    r"""A language model that interpolates counts of contexts of 0 to n - 1 tokens.

    .. math:: p_n(w \mid h) = \frac{\max(c(h w) - D_{c(hw)}, 0)}{c(h)}
        + \frac{\sum_v D_{c(hv)}}{c(h)}\, p_{n-1}(w \mid h'), \qquad p_0(w) = 1 / V

    h' is h without its first token. At the highest order c counts occurrences; below it
    :math:`c(hw)` counts the different tokens that precede hw (Kneser-Ney): a word that only follows
    one other is improbable elsewhere. The discounts :math:`D_1, D_2, D_{3+}` of each order are
    those of Chen and Goodman, from the numbers of n-grams that are seen 1 to 4 times. It is not
    trained by gradients: :meth:`count` fits it.

    Args:
        inputs: ``InputSpec.sequence(vocabulary=V, length=T)``.
        outputs: V.
        order: n, tokens of the longest n-gram.
        sizes: number of contexts and of n-grams of each order; 0 before :meth:`count`.
        each: True; there is one answer for each token.
        generator: not needed: nothing is drawn.

    Shapes:
        - values: ``(B, T)`` int64; mask: ``(B, T)`` bool; returns log probabilities
          ``(B, V, T)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import NGram
        >>> from ansatz.spec import InputSpec
        >>> model = NGram(InputSpec.sequence(vocabulary=4, length=8), 4, order=2)
        >>> codes = torch.tensor([2, 3, 2, 3])
        >>> model.count(codes, torch.zeros(4, dtype=torch.long), torch.arange(1, 4))
        >>> model(torch.tensor([[2]])).exp().argmax(1)
        tensor([[3]])

    References:
        Chen and Goodman (1999), An empirical study of smoothing techniques for language modeling,
        section 3. https://doi.org/10.1006/csla.1999.0128
    """

    discounts: Tensor

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        order: int = 7,
        sizes: Sequence[Sequence[int]] | None = None,
        each: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.vocabulary, self.length = read_tokens("ngram", inputs)[0], None
        self.order = require_whole("order of ngram", order, high=30)
        if outputs != self.vocabulary or not each:
            raise UsageError(
                "ngram is a language model: an answer at each token, as many outputs as codes."
            )
        self.register_buffer("discounts", torch.zeros(order, 4))  # of counts 0, 1, 2, 3 and more
        self._resize(sizes or [(0, 0)] * order)

    def _resize(self, sizes: Sequence[Sequence[int]]) -> None:
        if len(sizes) != self.order:
            raise UsageError(f"ngram of order {self.order} needs as many sizes, got {len(sizes)}.")
        self.sizes = [[int(a), int(b)] for a, b in sizes]
        for n, (contexts, entries) in enumerate(self.sizes):
            self.register_buffer(f"keys_{n}", torch.zeros(contexts, dtype=torch.long))
            self.register_buffer(f"offsets_{n}", torch.zeros(contexts + 1, dtype=torch.long))
            self.register_buffer(f"tokens_{n}", torch.zeros(entries, dtype=torch.int32))
            self.register_buffer(f"counts_{n}", torch.zeros(entries, dtype=torch.int32))

    @property
    def options(self) -> dict[str, Any]:
        """The options that make a network of this size."""
        return {"order": self.order, "sizes": self.sizes}

    @property
    def _base(self) -> int:
        exact = self.vocabulary**self.order < 2**63
        return self.vocabulary if exact else MULTIPLIER

    def _keys(self, history: Tensor) -> list[Tensor]:
        """The key of each context of 0 to n - 1 tokens, from ``(..., n - 1)``, nearest first."""
        key, power = history.new_zeros(history.shape[:-1]), 1
        found = [key]
        for k in range(self.order - 1):
            factor = power if power < 2**63 else power - 2**64
            key = key + (history[..., k] + (0 if self._base == self.vocabulary else 1)) * factor
            power = power * self._base % 2**64
            found.append(key)
        return found

    @torch.no_grad()
    def count(self, codes: Tensor, begin: Tensor, places: Tensor) -> None:
        """Fits it to tokens of documents.

        Args:
            codes: of all documents, one behind the other.
            begin: where the document of each code begins; the codes before it count as 0.
            places: of the tokens to count.
        """
        back = places.unsqueeze(1) - torch.arange(1, max(self.order, 2))
        low = begin[places].unsqueeze(1)
        history = torch.where(back >= low, codes[back.clamp(min=0)], 0)
        keys, token = self._keys(history), codes[places].numpy()
        rows: NDArray[np.intp] = np.arange(len(places))
        sizes, tables, discounts = [], [], np.zeros((self.order, 4))
        for n in reversed(range(self.order)):
            context, number = np.unique(keys[n].numpy()[rows], return_inverse=True)
            pair = number.astype(np.int64) * self.vocabulary + token[rows]
            found, first, count = np.unique(pair, return_index=True, return_counts=True)
            owner = found // self.vocabulary
            offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(context)))])
            tables.append((context, offsets, found % self.vocabulary, count))
            discounts[n] = _discounts(count)
            sizes.append((len(context), len(found)))
            rows = rows[
                first
            ]  # one of each n-gram: what precedes it differs, or it is counted once
        self._resize(sizes[::-1])
        self.discounts.copy_(torch.from_numpy(discounts))
        for n, table in enumerate(tables[::-1]):
            for name, values in zip(("keys", "offsets", "tokens", "counts"), table, strict=True):
                self.get_buffer(f"{name}_{n}").copy_(torch.from_numpy(values))

    def probabilities(self, history: Tensor) -> Tensor:
        """p(w | h), ``(R, V)``, from the ``(R, n - 1)`` tokens before w, the nearest first."""
        dtype, V = self.discounts.dtype, self.vocabulary
        p = torch.full((len(history), V), 1 / V, dtype=dtype, device=history.device)
        for n, key in enumerate(self._keys(history)):
            keys, offsets = self.get_buffer(f"keys_{n}"), self.get_buffer(f"offsets_{n}")
            if not len(keys):
                continue
            place = torch.searchsorted(keys, key).clamp(max=len(keys) - 1)
            seen = (keys[place] == key).nonzero().squeeze(1)
            first, last = offsets[place[seen]], offsets[place[seen] + 1]
            length = last - first
            row = torch.arange(len(seen)).repeat_interleave(length)
            before = (length.cumsum(0) - length)[row]
            entry = first[row] + torch.arange(len(row)) - before
            count = self.get_buffer(f"counts_{n}")[entry].long()
            discount = self.discounts[n][count.clamp(max=3)]
            zero = torch.zeros(len(seen), dtype=dtype)
            total = zero.index_add(0, row, count.to(dtype))
            rest = zero.index_add(0, row, discount) / total
            share = (count.to(dtype) - discount) / total[row]
            own = (rest.unsqueeze(1) * p[seen]).index_put(
                (row, self.get_buffer(f"tokens_{n}")[entry].long()), share, accumulate=True
            )
            p[seen] = own
        return p

    def forward(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is not None:
            values = torch.where(mask, values, 0)
        history = _histories(values, self.order)
        p = self.probabilities(history.flatten(0, 1))
        return p.log().view(*values.shape, -1).movedim(-1, 1)

    def advance(
        self, values: Tensor, mask: Tensor | None = None, state: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Logits of the next token and the last n - 1 codes, those of ``state`` first.

        The state takes the place of the cache of an attention: see
        :func:`~ansatz.networks.stream_tokens`.
        """
        if mask is not None:
            values = torch.where(mask[:, -values.shape[1] :], values, 0)
        if state is not None:
            values = torch.cat([state, values], 1)
        history = _histories(values, self.order)[:, -1]
        return self.probabilities(history).log(), history.flip(1)


def _histories(values: Tensor, order: int) -> Tensor:
    """The n - 1 codes up to each step, the nearest first, ``(B, T, n - 1)``; 0 before the first."""
    padded = nn.functional.pad(values, (max(order - 2, 0), 0))
    found = padded.unfold(1, max(order - 1, 1), 1).flip(-1)
    return found


def _discounts(count: NDArray[Any]) -> list[float]:
    """The discounts of counts 0, 1, 2 and 3 or more (Chen and Goodman, eq. 26)."""
    n1, n2, n3, n4 = (int((count == k).sum()) for k in (1, 2, 3, 4))
    y = n1 / (n1 + 2 * n2) if n1 else 0.5
    ratios = (n2 / n1 if n1 else 0.0, n3 / n2 if n2 else 0.0, n4 / n3 if n3 else 0.0)
    found = [k - (k + 1) * y * ratio for k, ratio in zip((1, 2, 3), ratios, strict=True)]
    # Strictly between 0 and the count: every token keeps a positive probability.
    return [0.0, *(min(max(d, 0.05), k - 0.05) for k, d in zip((1, 2, 3), found, strict=True))]
