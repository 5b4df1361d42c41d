"""The predictive distribution of a fitted linear model: its likelihood, averaged over its error."""

import copy
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ansatz.likelihoods.averaged import Averaged, hermite, log_chi_ratios, merge, merges
from ansatz.likelihoods.censored import Censored
from ansatz.likelihoods.dispersion import PositiveHead
from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.likelihoods.normal import Normal, NormalDistribution
from ansatz.likelihoods.student_t import StudentTDistribution
from ansatz.spec import TargetSpec

# Likelihoods whose dispersion is in the unit of a standard deviation; of others, of a variance.
SCALES = ("normal", "student_t", "log_normal", "weibull", "multivariate_normal", "normal_mixture")


class Marginal(Averaged):
    r"""A likelihood averaged over the sampling distribution of its estimated raw numbers.

    .. math:: p(y \mid x) = \int p(y \mid r, \sigma)\, N(r;\, \hat r(x), \Sigma(x))\,
              p(\sigma \mid \hat\sigma)\, dr\, d\sigma

    For the normal with a constant dispersion the integral is Student's t with n - p degrees of
    freedom, location :math:`\hat r` and squared scale :math:`\hat\sigma^2 + \Sigma`: its
    intervals are the prediction intervals of least squares. For every other likelihood it is a
    mixture over Gauss-Hermite nodes. A constant dispersion is estimated with n - p
    degrees of freedom, and averaged over the distribution of (n - p) / chi-square.

    Args:
        likelihood: as fitted by maximum likelihood.
        outputs: P, its raw numbers.
        varying: V, the first of them, which depend on x; with fewer than P the last is a dispersion
            that was estimated once.
        df: n - p, the degrees of freedom of the dispersion.
        inflation: n / (n - p), which the maximum-likelihood variance is multiplied by.

    Shapes:
        - raw: ``(..., P + V (V + 1) / 2)``: the estimate, then the rows of the lower triangular
          root of its covariance.

    References:
        Geisser (1993), Predictive Inference, chapter 3.
    """

    def __init__(
        self, likelihood: Likelihood, outputs: int, varying: int, *, df: float, inflation: float
    ) -> None:
        heads = _dispersions(likelihood)
        once = varying < outputs or any(head.kind == "constant" for head in heads)
        points, weights, dispersions = _nodes(varying, df if once else math.inf)
        super().__init__([likelihood] * len(weights), weights.log())
        self.plain = copy.deepcopy(likelihood)
        self.width, self.varying, self.df, self.inflation = outputs, varying, df, inflation
        self.extra = varying * (varying + 1) // 2
        self.points = points
        power = 0.5 if _inner(likelihood).name in SCALES else 1.0
        for node, log_ratio in zip(self.likelihoods, dispersions.tolist(), strict=True):
            assert isinstance(node, Likelihood)
            for head in _dispersions(node):
                head.factor *= (inflation * math.exp(log_ratio)) ** power

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood as it was fitted."""
        found = self._modules.get("plain") or self.likelihoods[0]
        assert isinstance(found, Likelihood)
        return found

    def outputs(self, target: TargetSpec) -> int:
        """Those of the likelihood and the root of their covariance."""
        return self.width + self.extra

    def estimate(self, raw: Tensor) -> Tensor:
        """The raw numbers without their error, ``(..., P)``."""
        return raw[..., : self.width]

    def nodes(self, raw: Tensor) -> list[Tensor]:
        """The raw numbers of each node, ``(..., P)`` each."""
        estimate, root = self.estimate(raw), raw[..., self.width :]
        found = []
        for point in self.points.tolist():
            moves, k = [], 0
            for p in range(self.varying):
                row = [root[..., k + j] * point[j] for j in range(p + 1)]
                moves.append(torch.stack(row).sum(0))
                k += p + 1
            moves += [torch.zeros_like(moves[0])] * (self.width - self.varying)
            found.append(estimate + torch.stack(moves, -1))
        return found

    def _members(self, raw: Tensor) -> list[tuple[Any, Tensor]]:
        return list(zip(self.likelihoods, self.nodes(raw), strict=True))

    @property
    def is_exact(self) -> bool:
        """Whether the average has a closed form: the normal, its dispersion not depending on x."""
        if type(self.plain) is not Normal:
            return False
        return self.varying < self.width or self.plain.dispersion.kind != "predicted"

    def _exact(self, raw: Tensor) -> Distribution | None:
        if not self.is_exact:
            return None
        assert isinstance(self.plain, Normal)
        plain = self.plain.distribution(self.estimate(raw))
        known = self.plain.dispersion.kind == "known"
        variance = plain.variance * (1.0 if known else self.inflation)
        scale = (variance + raw[..., self.width] ** 2).sqrt()
        if known:
            return NormalDistribution(plain.mean, scale)
        return StudentTDistribution(plain.mean, scale, torch.full_like(scale, self.df))

    def distribution(self, raw: Tensor, **given: Any) -> Distribution:
        """The mixture over the nodes; Student's t for the normal with a constant dispersion."""
        return self._exact(raw) or super().distribution(raw, **given)

    def given(self, raw: Tensor, y: Any) -> tuple[Distribution, Tensor]:
        exact = self._exact(raw)
        return super().given(raw, y) if exact is None else (exact, y)

    def loss(self, raw: Tensor, y: Any) -> Tensor:
        """Minus the log of the averaged likelihood."""
        exact = self._exact(raw)
        return super().loss(raw, y) if exact is None else -exact.log_prob(y)

    def point(self, raw: Tensor) -> Tensor:
        """The prediction at the estimate, as R's ``predict`` gives it; of classes the likeliest."""
        if hasattr(type(self.plain), "probs"):
            return super().point(raw)
        return self.plain.point(self.estimate(raw))

    def merged(self, raw: Tensor) -> Tensor:
        """The average as raw numbers of the likelihood itself, where its mixtures are of its kind.

        For classes the mean of the probabilities.
        """
        return merge(self.plain, torch.stack(self.nodes(raw)), self.log_weights.exp())


def is_marginal(likelihood: Likelihood, outputs: int) -> bool:
    """Tests whether estimation error is averaged over: not for losses or coupled rows."""
    return likelihood.has_distribution and likelihood.additive and outputs <= MOST_OUTPUTS


def averaged_over_error(
    likelihood: Likelihood, outputs: int, varying: int, *, df: float, inflation: float
) -> Likelihood:
    """A likelihood averaged over its estimation error; of censored times the one inside."""
    error = {"df": df, "inflation": inflation}
    if isinstance(likelihood, Censored):
        return Censored(Marginal(likelihood.likelihood, outputs, varying, **error))
    return Marginal(likelihood, outputs, varying, **error)


def at_estimate(likelihood: Likelihood, raw: Tensor) -> tuple[Likelihood, Tensor]:
    """The likelihood and its raw numbers without estimation error."""
    inner = likelihood.likelihood if isinstance(likelihood, Censored) else likelihood
    if not isinstance(inner, Marginal):
        return likelihood, raw
    plain = inner.plain if inner is likelihood else Censored(inner.plain)
    return plain, inner.estimate(raw)


def stays_itself(likelihood: Likelihood) -> bool:
    """Tests whether the average of such likelihoods is one of the same kind."""
    return merges(likelihood)


MOST_OUTPUTS = 12  # with more, the covariance of a row is larger than what it tells


def _inner(likelihood: Likelihood) -> Likelihood:
    found: Likelihood = getattr(likelihood, "likelihood", likelihood)
    return found


def _dispersions(likelihood: Likelihood) -> list[PositiveHead]:
    """The dispersions that were estimated, once or with a coefficient per column."""
    return [
        module
        for name, module in likelihood.named_modules()
        if isinstance(module, PositiveHead)
        and name.split(".")[-1] == "dispersion"
        and module.kind != "known"
    ]


def _nodes(varying: int, df: float) -> tuple[Tensor, Tensor, Tensor]:
    """Points ``(J, V)`` of a standard normal, their weights, and log (n - p) / chi-square.

    One raw number: 9 nodes; two: 5 times 3; more: the 2 V points of the spherical rule of third
    degree. A dispersion that is estimated once has two nodes of its own at each.
    """
    if varying <= 2:
        axes = [hermite(count) for count in ((9,) if varying == 1 else (5, 3))]
        points = np.stack(np.meshgrid(*(nodes for nodes, _ in axes), indexing="ij"), -1)
        weights = axes[0][1] if varying == 1 else np.outer(axes[0][1], axes[1][1])
        points, weights = points.reshape(-1, varying), weights.reshape(-1)
    else:
        points = math.sqrt(varying) * np.concatenate([np.eye(varying), -np.eye(varying)])
        weights = np.full(2 * varying, 0.5 / varying)
    ratios, shares = log_chi_ratios(df, 2)
    count = len(ratios)
    return (
        torch.from_numpy(np.repeat(points, count, 0)),
        torch.from_numpy(np.outer(weights, shares).reshape(-1)),
        torch.from_numpy(np.tile(ratios, len(points))),
    )
