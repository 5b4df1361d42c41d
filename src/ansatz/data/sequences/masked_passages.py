"""Passages some of whose tokens are hidden: these are to be predicted."""

import numpy as np
import torch
from torch import Tensor

from ansatz.data.batch import UNLABELLED, Padded
from ansatz.data.keys import mix
from ansatz.data.sequences.passages import Passages, read_codes

SHARE, HIDDEN, RANDOM = 0.15, 0.8, 0.1  # of the tokens; of those: a mask, any token
MASK = "[MASK]"


class MaskedPassages(Passages):
    """N passages of tokens, 15 % of which are to be predicted from all others.

    Of these 80 % are replaced by [MASK], 10 % by any token, and 10 % stay. In training the choice
    is drawn anew for each batch; otherwise it is a function of the token's place. A passage begins
    with a code 0.

    References:
        Devlin et al. (2019), BERT, section 3.1. https://arxiv.org/abs/1810.04805
    """

    @staticmethod
    def stride_of(context: int) -> int:
        """All that a network reads, but the first code."""
        return max(1, context - 1)

    @property
    def window(self) -> int:
        """Tokens that a network reads at once, but the first code."""
        return self.stride

    def targets(self) -> Tensor:
        """The codes of hidden tokens, ``(N, stride)``, -1 elsewhere."""
        found = self.batch(self.places[:, 1], self._lengths, None)[1][:, 1:]
        pad = self.stride - found.shape[1]
        return torch.nn.functional.pad(found, (0, pad), value=UNLABELLED)

    @property
    def _lengths(self) -> Tensor:
        return self.places[:, 2] - self.places[:, 1]

    def inputs(self) -> tuple[Padded, Tensor]:
        """The codes with gaps, and where the answers are, ``(N, stride)``."""
        values, _ = self.batch(self.places[:, 1], self._lengths, None)
        answers = (1 + torch.arange(self.stride)).expand(len(self), -1)
        return values, answers.clamp(max=values.mask.shape[1] - 1)

    def batch(
        self, low: Tensor, length: Tensor, draw: torch.Generator | None
    ) -> tuple[Padded, Tensor]:
        """Codes with gaps from ``low`` on, and those that the gaps hide; -1 elsewhere."""
        codes, mask = read_codes(self.codes, low, length)
        if draw is None:
            place = low.unsqueeze(1) + torch.arange(codes.shape[1])
            chosen, kind, other = (_uniform(place, k) for k in range(3))
        else:
            drawn = torch.rand(3, *codes.shape, generator=draw, dtype=torch.float64)
            chosen, kind, other = drawn.unbind(0)
        gap = mask & (chosen < SHARE) & (codes > 0)
        V = self.tokens.size
        any_token = (2 + other * (V - 3)).long()  # not padding, unknown or the mask
        filled = torch.where(
            kind < HIDDEN, V - 1, torch.where(kind < HIDDEN + RANDOM, any_token, codes)
        )
        values = torch.where(gap, filled, codes)
        target = torch.where(gap, codes, UNLABELLED)
        first = torch.zeros(len(codes), 1, dtype=torch.long)
        padded = Padded(torch.cat([first, values], 1), torch.cat([first == 0, mask], 1))
        return padded, torch.cat([first - 1, target], 1)


def _uniform(place: Tensor, number: int) -> Tensor:
    """Numbers in [0, 1) as a function of places."""
    keys = mix(place.numpy().astype(np.uint64) * np.uint64(3) + np.uint64(number))
    return torch.from_numpy((keys >> np.uint64(11)).astype(np.float64) / 2.0**53)
