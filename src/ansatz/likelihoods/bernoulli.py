"""The Bernoulli distribution: yes or no."""

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import (
    Likelihood,
    expand_weight,
    require_same_shape,
    weighted_mean,
)
from ansatz.likelihoods.support import refuse_outside
from ansatz.spec import TargetSpec


class BernoulliDistribution(Distribution):
    """1 with probability sigmoid(logit), else 0.

    Args:
        logits: log(p / (1 - p)), any shape.

    Example:
        >>> import torch
        >>> BernoulliDistribution(torch.tensor([-100.0])).log_prob(torch.ones(1))
        tensor([-100.])
    """

    discrete = True
    lower, upper = 0.0, 1.0

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits

    @property
    def probs(self) -> Tensor:
        """P(Y = 1)."""
        return torch.sigmoid(self.logits)

    @property
    def mean(self) -> Tensor:
        """P(Y = 1)."""
        return self.probs

    @property
    def variance(self) -> Tensor:
        """p (1 - p)."""
        return torch.sigmoid(self.logits) * torch.sigmoid(-self.logits)

    @property
    def mode(self) -> Tensor:
        """1 where p > 1/2, else 0."""
        return (self.logits > 0).to(self.logits.dtype)

    @property
    def entropy(self) -> Tensor:
        """-p log p - (1 - p) log(1 - p)."""
        p, q = torch.sigmoid(self.logits), torch.sigmoid(-self.logits)
        return -p * logsigmoid(self.logits) - q * logsigmoid(-self.logits)

    def log_prob(self, y: Tensor) -> Tensor:
        """Log sigmoid((2y - 1) logit); a y that is neither 0 nor 1 has probability 0."""
        y = y.to(self.logits.dtype)
        value = logsigmoid((2 * y - 1) * self.logits)
        return torch.where((y == 0) | (y == 1), value, -math.inf)

    def log_cdf(self, y: Tensor) -> Tensor:
        """The log of 0 below 0, of 1 - p below 1, then of 1; exact for any logit."""
        inside = torch.where(y >= 1, 0.0, logsigmoid(-self.logits))
        return torch.where(y < 0, -math.inf, inside)

    def log_survival(self, y: Tensor) -> Tensor:
        """Log P(Y > y), exact for any logit."""
        inside = torch.where(y >= 1, -math.inf, logsigmoid(self.logits))
        return torch.where(y < 0, 0.0, inside)

    def _solve(self, q: Tensor) -> Tensor:
        value = (q > torch.sigmoid(-self.logits)).to(self.logits.dtype)
        return torch.where((q >= 0) & (q <= 1), value, math.nan)

    def crps(self, y: Tensor) -> Tensor:
        """(p - y)^2: Brier's score."""
        return (self.probs - y) ** 2

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        return torch.bernoulli(self.probs.expand(size), generator=generator)


class Bernoulli(Likelihood):
    r"""Outcomes 0 or 1.

    .. math:: -\log p(y) = -y \log\sigma(\eta) - (1 - y) \log(1 - \sigma(\eta))
              = -\log\sigma((2y - 1)\eta)

    with :math:`\eta` = raw[0], the log odds (logit link): binary cross-entropy, and logistic
    regression when the network is linear. Computed from the logit, so that it is exact for any
    raw number. (Some lecture notes print the second term as log(1 - eta), without the sigma.)

    Shapes:
        - raw: ``(..., 1)``.
        - y: ``(...)``, 0 or 1.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Bernoulli
        >>> Bernoulli().loss(torch.zeros(1, 1), torch.ones(1))  # log 2
        tensor([0.6931])

    References:
        McCullagh and Nelder (1989), Generalized Linear Models, chapter 4.
    """

    name = "bernoulli"
    least_loss = 0.0
    link_name = "logit"

    def outputs(self, target: TargetSpec) -> int:
        """1: the log odds."""
        return 1

    def check(self, y: Tensor) -> None:
        """0 or 1."""
        refuse_outside(~((y == 0) | (y == 1)), y, "Bernoulli outcomes must be 0 or 1")

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The log odds of the mean.

        One class alone has no finite maximum-likelihood log odds: half a row of the other is added.
        """
        y = y.to(weight.dtype)
        p = weighted_mean(y, weight)
        half = 0.5 / (expand_weight(weight, y).sum(0) + 1)
        p = torch.where(p > 0, torch.where(p < 1, p, 1 - half), half)
        return torch.logit(p).unsqueeze(-1), torch.ones_like(p).unsqueeze(-1)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The negative log-likelihood."""
        require_same_shape(self.name, raw, y)
        return -logsigmoid((2 * y.to(raw.dtype) - 1) * raw[..., 0])

    def distribution(self, raw: Tensor) -> BernoulliDistribution:
        """Bernoulli with log odds raw."""
        return BernoulliDistribution(raw[..., 0])

    def unit_deviance(self, raw: Tensor, y: Tensor) -> Tensor:
        """Twice the loss: the saturated model has likelihood 1."""
        return 2 * self.loss(raw, y)

    def variance_function(self, mu: Tensor) -> Tensor:
        """V(mu) = mu (1 - mu)."""
        return mu * (1 - mu)

    def pearson(self, raw: Tensor, y: Tensor) -> Tensor:
        """(y - mu) / sqrt(mu (1 - mu)), from the logit: exp(eta/2) or its inverse, with a sign."""
        require_same_shape(self.name, raw, y)
        sign = 2 * y.to(raw.dtype) - 1
        return sign * (-0.5 * sign * raw[..., 0]).exp()
