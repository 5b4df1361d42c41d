"""Intervals whose coverage needs no likelihood to be right: conformal prediction."""

import math

import torch
from torch import Tensor

from ansatz.likelihoods import Distribution, Likelihood, Quantiles


def conformal_scores(likelihood: Likelihood, raw: Tensor, y: Tensor) -> Tensor:
    r"""How far out each outcome lies in its own predictive distribution, larger for farther.

    .. math:: s_i = -\log \min\{P(Y \le y_i),\; P(Y \ge y_i)\}

    for a likelihood, which adapts the interval to the spread and the skewness at each x; for a loss
    without a spread the absolute error.

    Args:
        likelihood: the served likelihood.
        raw: ``(N, ...)``, of rows that the model did not learn from.
        y: ``(N,)``, or ``(N, K)`` for K targets.

    Example:
        >>> import torch
        >>> from ansatz.fitting.conformal import conformal_scores
        >>> from ansatz.likelihoods import Normal
        >>> y = torch.tensor([0.0, 2.0])
        >>> scores = conformal_scores(Normal(dispersion=1.0), torch.zeros(2, 1), y)
        >>> [round(tail, 4) for tail in (-scores).exp().tolist()]  # 1/2 and 1 - Phi(2)
        [0.5, 0.0228]

    References:
        Chernozhukov, Wuthrich and Zhu (2021), Distributional conformal prediction.
        https://arxiv.org/abs/1909.07889
    """
    with torch.no_grad():
        if not likelihood.has_distribution:
            return (y - likelihood.point(raw)).abs() / _width(likelihood, raw)
        distribution, outcome = likelihood.given(raw, y)
        return _scores(distribution, outcome)


def _width(likelihood: Likelihood, raw: Tensor) -> Tensor:
    """The spread of the outer quantiles where there are some, else 1."""
    if isinstance(likelihood, Quantiles) and len(likelihood.levels) > 1:
        q = likelihood.quantiles(raw)
        return q[..., -1] - q[..., 0]
    return torch.ones((), dtype=raw.dtype)


def _scores(distribution: Distribution, y: Tensor) -> Tensor:
    below = y - 1 if distribution.discrete else y  # P(Y >= y) = P(Y > y - 1)
    return -torch.minimum(distribution.log_cdf(y), distribution.log_survival(below))


def conformal_quantile(scores: Tensor, level: float) -> Tensor:
    r"""The score that holds at least ``level`` of further outcomes, ``(K,)`` or ``()``.

    .. math:: \hat s = s_{(k)}, \qquad k = \lceil (n + 1)\, \text{level} \rceil

    the k-th smallest of n scores; infinite where k > n, since so few rows promise no such level.

    Args:
        scores: ``(n,)`` or ``(n, K)``.
        level: the coverage.

    Example:
        >>> import torch
        >>> from ansatz.fitting.conformal import conformal_quantile
        >>> conformal_quantile(torch.arange(1.0, 10.0), 0.8)
        tensor(8.)
        >>> conformal_quantile(torch.arange(1.0, 10.0), 0.95)
        tensor(inf)

    References:
        Vovk, Gammerman and Shafer (2005), Algorithmic Learning in a Random World.
        Lei et al. (2018), Distribution-free predictive inference for regression.
        https://doi.org/10.1080/01621459.2017.1307116
    """
    count = len(scores)
    # Rounding must not turn 0.9 * 10 into 9.000000000000002.
    place = math.ceil((count + 1) * level - 1e-9)
    if place > count:
        return torch.full(scores.shape[1:], math.inf, dtype=scores.dtype)
    return scores.sort(0).values[place - 1]


def conformal_interval(
    likelihood: Likelihood, raw: Tensor, quantile: Tensor
) -> tuple[Tensor, Tensor]:
    """The outcomes whose score is at most ``quantile``.

    Args:
        likelihood: the served likelihood.
        raw: ``(N, ...)``.
        quantile: from :func:`conformal_quantile`.

    Example:
        >>> import math, torch
        >>> from ansatz.fitting.conformal import conformal_interval
        >>> from ansatz.likelihoods import Normal
        >>> cut = torch.tensor(-math.log(0.025))
        >>> low, high = conformal_interval(Normal(dispersion=1.0), torch.zeros(1, 1), cut)
        >>> round(high.item(), 2)
        1.96
    """
    with torch.no_grad():
        if not likelihood.has_distribution:
            centre, reach = likelihood.point(raw), quantile * _width(likelihood, raw)
            return centre - reach, centre + reach
        distribution = likelihood.distribution(raw)
        # A hair less, so that an outcome at the cut itself is inside whatever the last digit.
        tail = (1 - 1e-6) * (-quantile.to(raw)).exp().expand(distribution.mean.shape)
        return distribution.icdf(tail), distribution.icdf(1 - tail)
