"""Exponential dispersion families: where the linear model is McCullagh and Nelder's GLM."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.likelihoods.tweedie_distribution import TweedieDistribution


class Family(NamedTuple):
    r"""A likelihood with :math:`\mathrm{Var}(y) = \phi V(\mu) / w`, w R's prior weight.

    V is the likelihood's ``variance_function``.
    """

    # (y, mean, phi) -> log p; None where phi is 1, or where R has no AIC to compare with
    log_density: Callable[[Tensor, Tensor, Tensor], Tensor] | None
    dispersed: bool  # whether phi is a parameter


def _normal(y: Tensor, mean: Tensor, phi: Tensor) -> Tensor:
    return -0.5 * ((y - mean) ** 2 / phi + torch.log(2 * math.pi * phi))


def _gamma(y: Tensor, mean: Tensor, phi: Tensor) -> Tensor:
    k = 1 / phi
    return torch.xlogy(k, k * y / mean) - y.log() - k * y / mean - torch.lgamma(k)


def _inverse_gaussian(y: Tensor, mean: Tensor, phi: Tensor) -> Tensor:
    return -0.5 * ((y - mean) ** 2 / (phi * mean**2 * y) + torch.log(2 * math.pi * phi * y**3))


FAMILIES = {
    "normal": Family(_normal, True),
    "gamma": Family(_gamma, True),
    "inverse_gaussian": Family(_inverse_gaussian, True),
    "tweedie": Family(None, True),
    "exponential": Family(None, False),
    "poisson": Family(None, False),
    "bernoulli": Family(None, False),
    "binomial": Family(None, False),
}


def family_of(likelihood: Likelihood) -> Family | None:
    """The exponential family of a likelihood, or None."""
    if any(True for name, _ in likelihood.named_parameters() if name.startswith("power")):
        return None  # a learned power of the variance function is not an exponential family
    return FAMILIES.get(likelihood.name)


def has_deviance(likelihood: Likelihood) -> bool:
    """Tests whether a likelihood defines the deviance of a row."""
    return type(likelihood).unit_deviance is not Likelihood.unit_deviance


def dispersion_at(likelihood: Likelihood, raw: Tensor) -> Tensor:
    """phi of each row: the likelihood's variance / V(mean), ``(B,)``."""
    family = FAMILIES[likelihood.name]
    distribution = likelihood.distribution(raw)
    if not family.dispersed:
        return torch.ones_like(distribution.mean)
    return distribution.variance / likelihood.variance_function(distribution.mean)


def precise_loss(likelihood: Likelihood, raw: Tensor, y: Tensor, precision: Tensor) -> Tensor:
    r"""The negative log-likelihood of a row whose variance is :math:`\phi V(\mu)` / precision.

    Where phi is a parameter this is the likelihood at phi / precision; where it is 1, the precision
    multiplies the log-likelihood (a quasi-likelihood), as in R and statsmodels.
    """
    family = family_of(likelihood)
    if family is None:
        raise UsageError(
            f"precision= is defined for {', '.join(FAMILIES)}, not for {likelihood.name}. "
            "For repeated rows use weight=."
        )
    if not family.dispersed:
        return precision * likelihood.loss(raw, y)
    distribution = likelihood.distribution(raw)
    if isinstance(distribution, TweedieDistribution):
        scaled = TweedieDistribution(
            distribution.log_mean, distribution.dispersion / precision, distribution.power
        )
        return -scaled.log_prob(y)
    assert family.log_density is not None
    phi = distribution.variance / likelihood.variance_function(distribution.mean)
    return -family.log_density(y, distribution.mean, phi / precision)


def pearson_statistic(
    likelihood: Likelihood, raw: Tensor, y: Tensor, weight: Tensor, precision: Tensor
) -> Tensor:
    r"""Pearson's :math:`X^2 = \sum_i w_i (y_i - \mu_i)^2 / V(\mu_i)`, free of phi."""
    mean = likelihood.distribution(raw).mean
    return weight @ (precision * (y - mean) ** 2 / likelihood.variance_function(mean))


def fisher_weight(likelihood: Likelihood, raw: Tensor, precision: Tensor) -> Tensor:
    r"""The working weight of iteratively reweighted least squares, without phi, ``(B,)``.

    .. math:: \omega = (d\mu / d\eta)^2\, w / V(\mu)
    """
    raw = raw.detach().requires_grad_()
    with torch.enable_grad():
        mean = likelihood.distribution(raw).mean
        (slope,) = torch.autograd.grad(mean.sum(), raw)
    variance = likelihood.variance_function(mean.detach())
    # A probability that rounds to 0 or 1 has no variance left, and the row no weight.
    certain = variance <= 0
    weight = slope[:, 0] ** 2 / torch.where(certain, 1.0, variance)
    return precision * torch.where(certain, 0.0, weight)
