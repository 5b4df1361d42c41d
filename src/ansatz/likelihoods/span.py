"""Where an answer begins and ends in a sequence."""

import torch
from torch import Tensor

from ansatz.errors import DataError
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.spec import TargetSpec


class Span(Likelihood):
    r"""The first and the last step of a part of a sequence, each a choice among its T steps.

    .. math:: \ell = -\log p_a(\text{first}) - \log p_b(\text{last}), \qquad
        p_a = \mathrm{softmax}(r_{\cdot 1}), \; p_b = \mathrm{softmax}(r_{\cdot 2})

    Other steps have raw numbers of -10,000. ``point`` is the pair of largest
    probability whose last step is not before the first and less than ``longest`` steps behind it.

    Args:
        longest: steps of an answer at most.

    Shapes:
        - raw: ``(B, T, 2)``.
        - y: ``(B, 2)`` whole numbers from 0 to T - 1.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Span
        >>> raw = torch.tensor([[[0.0, 9.0], [2.0, 0.0], [0.0, 2.0]]])
        >>> Span().point(raw)
        tensor([[0, 0]])

    References:
        Wang and Jiang (2017), Machine comprehension using match-LSTM and answer pointer.
        https://arxiv.org/abs/1608.07905
    """

    name = "span"
    has_distribution = False  # of a number: its probabilities are those of ``loss``
    event_ndim = 1
    least_loss = 0.0

    def __init__(self, *, longest: int = 30) -> None:
        super().__init__()
        self.longest = longest

    def outputs(self, target: TargetSpec) -> int:
        """2 for each step: the scores of being the first and the last."""
        return 2

    def check(self, y: Tensor) -> None:
        """Rejects ends before their beginnings."""
        bad = (y[:, 0] < 0) | (y[:, 1] < y[:, 0])
        if bad.any():
            row = int(bad.nonzero()[0])
            raise DataError(f"an answer ends before it begins: {y[row].tolist()} at y[{row}].")

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Every step alike."""
        return torch.zeros(2, dtype=weight.dtype), torch.ones(2, dtype=weight.dtype)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The sum of both negative log-probabilities."""
        log_p = raw.log_softmax(-2)  # (B, T, 2)
        return -log_p.gather(-2, y.long().unsqueeze(-2)).squeeze(-2).sum(-1)

    def point(self, raw: Tensor) -> Tensor:
        """The most probable span, ``(B, 2)``."""
        first, last = raw.log_softmax(-2).unbind(-1)  # (B, T)
        T = first.shape[-1]
        steps = torch.arange(T, device=raw.device)
        apart = steps - steps.unsqueeze(1)  # last - first
        both = first.unsqueeze(-1) + last.unsqueeze(-2)
        both = both.masked_fill((apart < 0) | (apart >= self.longest), -torch.inf)
        best = both.flatten(-2).argmax(-1)
        return torch.stack([best // T, best % T], -1)
