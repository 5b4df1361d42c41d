"""Kullback-Leibler divergence: outcomes that are probabilities themselves."""

import torch
from torch import Tensor

from ansatz.likelihoods.likelihood import (
    Likelihood,
    expand_weight,
    require_same_shape,
    weighted_mean,
)
from ansatz.likelihoods.support import refuse_where
from ansatz.spec import TargetSpec


class KL(Likelihood):
    r"""Outcomes that are probabilities of K classes: votes, soft labels, a teacher's predictions.

    .. math:: \ell = \text{KL}(y \,\|\, q) = \sum_k y_k \log\frac{y_k}{q_k},
              \qquad q = \text{softmax}(\eta)

    with :math:`\eta` = raw and 0 log 0 = 0. It is 0 where q = y, and cross-entropy where y is a
    hard label; the gradient in :math:`\eta` is q - y. The best q is E[y | x]. It is not a density
    of the vector y: for the variance of compositions around their mean use ``dirichlet``.

    Shapes:
        - raw: ``(..., K)``.
        - y: ``(..., K)``, rows of numbers >= 0 that add up to 1.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import KL
        >>> KL().loss(torch.zeros(2, 2), torch.tensor([[0.5, 0.5], [0.0, 1.0]]))  # 0, log 2
        tensor([0.0000, 0.6931])

    References:
        Kullback and Leibler (1951), On information and sufficiency.
        https://doi.org/10.1214/aoms/1177729694
    """

    name = "kl"
    has_distribution = False
    event_ndim = 1
    link_name = "logit"

    def outputs(self, target: TargetSpec) -> int:
        """K, the length of an outcome."""
        if len(target.event) != 1 or target.event[0] < 2:
            raise ValueError(
                f"{self.name} needs outcomes that are vectors of at least 2 probabilities, got the "
                f"shape {target.event}. Class codes are for categorical or cross_entropy."
            )
        return target.event[0]

    def check(self, y: Tensor) -> None:
        """Rows of numbers >= 0 that add up to 1, up to rounding."""
        refuse_where(
            ~(y.isfinite() & (y >= 0)),
            y,
            "Probabilities must be numbers >= 0",
            "Counts of each class may be divided by their sum.",
        )
        total = y.sum(-1)
        slack = max(1e-6, 1e2 * torch.finfo(y.dtype).eps) if y.is_floating_point() else 0
        refuse_where(
            (total - 1).abs() > slack,
            total,
            "The probabilities of a row must add up to 1",
            "Divide each row by its sum.",
        )

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The log of the mean probabilities; a class that has none gets half a row."""
        rows = weight if weight.ndim < y.ndim - 1 else weight.unsqueeze(-1)
        mean = weighted_mean(y.to(weight.dtype), rows)
        half = 0.5 / expand_weight(rows, y).sum(0)
        shift = torch.log_softmax(torch.where(mean > 0, mean, half).log(), -1)
        return shift, torch.ones_like(shift)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The sum over k of y_k (log y_k - log q_k)."""
        require_same_shape(self.name, raw, y, event=(raw.shape[-1],))
        y = y.to(raw.dtype)
        return (torch.xlogy(y, y) - y * torch.log_softmax(raw, -1)).sum(-1)

    def probs(self, raw: Tensor) -> Tensor:
        """``(..., K)``: q."""
        return torch.softmax(raw, -1)

    def point(self, raw: Tensor) -> Tensor:
        """``(..., K)``: q, the estimate of E[y | x]."""
        return self.probs(raw)
