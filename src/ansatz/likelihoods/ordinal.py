"""The ordinal likelihood: one of K classes in an order."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, pad, softplus

from ansatz.likelihoods.categorical import class_counts
from ansatz.likelihoods.dispersion import softplus_inverse
from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import Likelihood, require_same_shape
from ansatz.likelihoods.support import check_codes
from ansatz.spec import TargetSpec


class OrdinalDistribution(Distribution):
    r"""Class codes 0..K-1 with P(Y <= k) = sigmoid(theta_k - eta).

    The code is the number of thresholds :math:`\theta` below a logistic variable centred at eta.
    Mean, variance and CRPS (the ranked probability score) treat codes as numbers.

    Args:
        eta: the location, any shape.
        steps: ``(..., K - 1)``: the first threshold, then r with theta_k - theta_(k-1) =
            softplus(r).

    Example:
        >>> import torch
        >>> OrdinalDistribution(torch.zeros(1), torch.zeros(1)).probs  # one threshold, at 0
        tensor([[0.5000, 0.5000]])
    """

    discrete = True
    lower = 0.0

    def __init__(self, eta: Tensor, steps: Tensor) -> None:
        self.eta, self.steps = eta, steps
        self.upper = float(steps.shape[-1])

    @property
    def batch_shape(self) -> torch.Size:
        """The shape of one sample."""
        return self.eta.shape

    @property
    def thresholds(self) -> Tensor:
        """``(..., K - 1)``, increasing."""
        return torch.cat([self.steps[..., :1], softplus(self.steps[..., 1:])], -1).cumsum(-1)

    @property
    def log_probs(self) -> Tensor:
        r"""``(..., K)``, without a difference of nearly equal numbers.

        With a = theta_k - eta and b = theta_(k-1) - eta, sigmoid(a) - sigmoid(b) = sigmoid(a)
        sigmoid(-b) (1 - e^(b-a)), and the last factor is sigmoid(r), since a - b = softplus(r).
        """
        gap = self.thresholds - self.eta.unsqueeze(-1)  # (..., K - 1)
        below, above = pad(logsigmoid(gap), (0, 1)), pad(logsigmoid(-gap), (1, 0))
        width = pad(logsigmoid(self.steps[..., 1:]), (1, 1))
        return below + above + width

    @property
    def probs(self) -> Tensor:
        """``(..., K)``, adding up to 1."""
        return self.log_probs.exp()

    @property
    def mean(self) -> Tensor:
        """The mean code, the sum of P(Y > k)."""
        return torch.sigmoid(self.eta.unsqueeze(-1) - self.thresholds).sum(-1)

    @property
    def variance(self) -> Tensor:
        """The variance of the code."""
        codes = torch.arange(self.upper + 1, dtype=self.eta.dtype, device=self.eta.device)
        return (self.probs * (codes - self.mean.unsqueeze(-1)) ** 2).sum(-1)

    @property
    def mode(self) -> Tensor:
        """The code of the most probable class."""
        return self.log_probs.argmax(-1).to(self.eta.dtype)

    @property
    def entropy(self) -> Tensor:
        """-sum of p_k log p_k."""
        log_p = self.log_probs
        return -(log_p.exp() * log_p).sum(-1)

    def log_prob(self, y: Tensor) -> Tensor:
        """Log probability of the class code; a code outside 0..K-1 has probability 0."""
        known = (y == y.floor()) & (y >= 0) & (y <= self.upper)
        code = torch.where(known, y, 0).long().unsqueeze(-1)
        log_p = self.log_probs.expand(*y.shape, -1)
        return torch.where(known, log_p.gather(-1, code).squeeze(-1), -math.inf)

    def _gap(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """The floor k of y, and theta_k - eta where there is such a threshold."""
        k, gap = y.floor(), self.thresholds - self.eta.unsqueeze(-1)
        k, _ = torch.broadcast_tensors(k, self.eta)
        code = k.clamp(0, self.upper - 1).nan_to_num().long().unsqueeze(-1)
        return k, gap.expand(*k.shape, -1).gather(-1, code).squeeze(-1)

    def log_cdf(self, y: Tensor) -> Tensor:
        """log sigmoid(theta_k - eta), k the floor of y; exact in both tails."""
        k, gap = self._gap(y)
        inside = torch.where(k >= self.upper, 0.0, logsigmoid(gap))
        return torch.where(k < 0, -math.inf, inside)

    def log_survival(self, y: Tensor) -> Tensor:
        """Log P(Y > y), exact in both tails."""
        k, gap = self._gap(y)
        inside = torch.where(k >= self.upper, -math.inf, logsigmoid(-gap))
        return torch.where(k < 0, 0.0, inside)

    def _solve(self, q: Tensor) -> Tensor:
        below = torch.sigmoid(self.thresholds - self.eta.unsqueeze(-1)) < q.unsqueeze(-1)
        return torch.where((q >= 0) & (q <= 1), below.sum(-1).to(q.dtype), math.nan)

    def crps(self, y: Tensor) -> Tensor:
        """The ranked probability score: the sum over k of (P(Y <= k) - 1[y <= k])^2."""
        gap = self.thresholds - self.eta.unsqueeze(-1)
        codes = torch.arange(self.upper, dtype=gap.dtype, device=gap.device)
        miss = torch.where(codes < y.unsqueeze(-1), torch.sigmoid(gap), torch.sigmoid(-gap))
        return (miss**2).sum(-1)


class Ordinal(Likelihood):
    r"""One of K classes that have an order, coded 0..K-1: the cumulative logit model.

    .. math:: P(Y \le k) = \sigma(\theta_k - \eta), \qquad
              \theta_0 < \theta_1 < \dots < \theta_{K-2}

    with :math:`\eta` = raw[0]: a larger one makes higher classes more likely, and by one unit
    multiplies the odds of exceeding any class by e (proportional odds). The thresholds are learned
    once: :math:`\theta_0` freely and the rest by :math:`\theta_k = \theta_{k-1} +
    \text{softplus}(r_k)`, so that they stay in order; there is no floor. A constant added to
    :math:`\eta` and all thresholds changes nothing: the linear model has no intercept.

    Shapes:
        - raw: ``(..., 1)``.
        - y: ``(...)`` class codes.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Ordinal
        >>> from ansatz.spec import TargetSpec
        >>> likelihood = Ordinal()
        >>> likelihood.outputs(TargetSpec(classes=4))
        1
        >>> likelihood.probs(torch.zeros(1, 1))  # before it has seen outcomes
        tensor([[0.2500, 0.2500, 0.2500, 0.2500]], grad_fn=<ExpBackward0>)

    References:
        McCullagh (1980), Regression models for ordinal data.
        https://doi.org/10.1111/j.2517-6161.1980.tb01109.x
    """

    name = "ordinal"
    least_loss = 0.0
    resized = ("steps",)
    link_name = "logit"

    def __init__(self) -> None:
        super().__init__()
        self.steps = nn.Parameter(torch.zeros(0))

    @property
    def classes(self) -> int:
        """K; 0 before ``outputs`` is called."""
        return self.steps.shape[-1] + 1 if self.steps.shape[-1] else 0

    @property
    def thresholds(self) -> Tensor:
        """``(K - 1,)``, increasing; one row per target where there are several."""
        return OrdinalDistribution(self.steps, self.steps).thresholds

    def outputs(self, target: TargetSpec) -> int:
        """1: the location; the K - 1 thresholds take their places, at equal shares."""
        if target.classes < 2:
            raise ValueError(
                f"{self.name} needs the number of classes, at least 2, got {target.classes}."
            )
        if self.classes != target.classes:
            share = torch.arange(1.0, target.classes, dtype=self.steps.dtype) / target.classes
            self._set(torch.logit(share).to(self.steps.device))
        return 1

    def _set(self, thresholds: Tensor) -> None:
        steps = torch.cat([thresholds[..., :1], softplus_inverse(thresholds.diff())], -1)
        self.steps = nn.Parameter(steps.detach().clone())

    def check(self, y: Tensor) -> None:
        """Whole numbers from 0, below K where K is known."""
        check_codes(y, self.classes)

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Thresholds at the log odds of the cumulative frequencies; eta = 0.

        A class without a row would have no room between its thresholds: it is given half a row.
        """
        counts = class_counts(y, weight, max(self.classes, 2)).double()  # (..., K)
        counts = torch.where(counts > 0, counts, 0.5)
        below, above = counts.cumsum(-1)[..., :-1], counts.flip(-1).cumsum(-1).flip(-1)[..., 1:]
        self._set((below / above).log().to(weight.dtype))
        zero = weight.new_zeros((*y.shape[1:], 1))
        return zero, torch.ones_like(zero)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The negative log-likelihood."""
        require_same_shape(self.name, raw, y)
        return -self.distribution(raw).log_prob(y.to(raw.dtype))

    def distribution(self, raw: Tensor) -> OrdinalDistribution:
        """Cumulative logit with location raw."""
        if not self.classes:
            raise ValueError(
                "ordinal does not know its classes yet: call outputs(TargetSpec(classes=K)) first."
            )
        return OrdinalDistribution(raw[..., 0], self.steps.to(raw.dtype))

    def probs(self, raw: Tensor) -> Tensor:
        """``(..., K)``, adding up to 1."""
        return self.distribution(raw).probs

    def point(self, raw: Tensor) -> Tensor:
        """The code of the most probable class."""
        return self.distribution(raw).mode.long()
