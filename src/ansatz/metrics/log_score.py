"""The logarithmic score."""

from typing import Protocol

from torch import Tensor

from ansatz.metrics.weights import row_mean


class Density(Protocol):
    """Anything with a log density."""

    def log_prob(self, y: Tensor) -> Tensor:
        """The log density or log probability of each outcome."""
        ...


def log_score(distribution: Density, y: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""The mean log density of the outcomes: larger is better; its negative is the nll.

    .. math:: \sum_i w_i \log p_i(y_i) / \sum_i w_i

    The only proper score that looks at nothing but the density where the outcome fell.

    Args:
        distribution: one distribution per outcome.
        y: ``(N,)``, or ``(N, K)``: then the mean over the K targets too.
        weight: ``(N,)`` frequency weights.

    Example:
        >>> import torch
        >>> from ansatz.metrics import log_score
        >>> distribution = torch.distributions.Exponential(torch.ones(2))
        >>> log_score(distribution, torch.tensor([1.0, 3.0])).item()
        -2.0

    References:
        Gneiting and Raftery (2007), Strictly proper scoring rules, section 4.1.
        https://doi.org/10.1198/016214506000001437
    """
    return row_mean(distribution.log_prob(y), weight).mean()
