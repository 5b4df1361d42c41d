"""Joint paths over the steps of a horizon: a Gaussian copula of validation PITs."""

from typing import Any

import torch
from torch import Tensor

from ansatz.fitting.contracts.inference import Predictive
from ansatz.likelihoods import Likelihood, Quantiles

EDGE = 1e-6  # of probabilities, beyond which normal scores are cut
ROWS = 256  # rows whose paths are drawn at once


def pits(likelihood: Likelihood, raw: Tensor, y: Tensor) -> Tensor:
    """F(y) of each outcome, ``(N, H)``; of counts the middle of F(y - 1) and F(y)."""
    with torch.no_grad():
        if isinstance(likelihood, Quantiles):
            return _between(likelihood, raw, y)
        distribution = likelihood.distribution(raw)
        upper = distribution.cdf(y)
        if distribution.discrete:
            return (upper + distribution.cdf(y - 1)) / 2
        return upper


def _between(likelihood: Quantiles, raw: Tensor, y: Tensor) -> Tensor:
    """The level of y, linear between the quantiles, and cut at the outer ones."""
    q = likelihood.quantiles(raw)
    levels = torch.tensor(likelihood.levels, dtype=q.dtype)
    above = (y.unsqueeze(-1) > q).sum(-1)
    low, high = (above - 1).clamp(min=0), above.clamp(max=len(levels) - 1)
    a, b = q.gather(-1, low.unsqueeze(-1)), q.gather(-1, high.unsqueeze(-1))
    share = ((y - a.squeeze(-1)) / (b - a).squeeze(-1).clamp(min=1e-12)).clamp(0, 1)
    return levels[low] + share * (levels[high] - levels[low])


def copula_of(predictive: Predictive, y: Tensor, weight: Tensor) -> Tensor | None:
    r"""The correlation of the steps' normal scores, ``(H, H)``.

    .. math:: z_{ih} = \Phi^{-1}(F_{ih}(y_{ih})), \qquad
        R_{hk} = \operatorname{corr}_i(z_{ih}, z_{ik})

    over the rows where both steps were observed, made positive definite by raising its
    eigenvalues to at least 1e-6.
    """
    likelihood, raw = predictive
    if not likelihood.has_distribution and not isinstance(likelihood, Quantiles):
        return None
    u = pits(likelihood, raw, y).double().clamp(EDGE, 1 - EDGE)
    z = torch.special.ndtri(u)
    seen = (weight.reshape(weight.shape + (1,) * (y.ndim - weight.ndim)) > 0).expand_as(z).double()
    count = seen.sum(0)
    z = torch.where(seen > 0, z - (z * seen).sum(0) / count.clamp(min=1), 0)
    both = (seen.T @ seen).clamp(min=1)
    covariance = z.T @ z / both
    scale = covariance.diagonal().clamp(min=1e-12).sqrt()
    found = covariance / scale / scale.unsqueeze(1)
    found = torch.where(both >= 10, found, torch.eye(len(found), dtype=found.dtype))
    values, vectors = torch.linalg.eigh((found + found.T) / 2)
    found = (vectors * values.clamp(min=1e-6)) @ vectors.T
    scale = found.diagonal().sqrt()
    correlation: Tensor = found / scale / scale.unsqueeze(1)
    return correlation


def sample_paths(
    predictive: Predictive, copula: Tensor, count: int, generator: torch.Generator
) -> Tensor:
    r"""Draws paths over the horizon, ``(N, S, H)``.

    .. math:: \varepsilon \sim N(0, R), \qquad y_h = F_h^{-1}(\Phi(\varepsilon_h))
    """
    likelihood, raw = predictive
    root = torch.linalg.cholesky(copula.double() + 1e-9 * torch.eye(len(copula)).double())
    shape = (len(raw), count, len(copula))
    draws = torch.randn(shape, generator=generator, dtype=torch.float64) @ root.T
    u = torch.special.ndtr(draws).clamp(EDGE, 1 - EDGE)  # (N, S, H)
    found = []
    for first in range(0, len(raw), ROWS):
        part = slice(first, first + ROWS)
        found.append(_inverse(likelihood, raw[part], u[part].movedim(1, 0)).movedim(0, 1))
    return torch.cat(found)


def _inverse(likelihood: Likelihood, raw: Tensor, u: Tensor) -> Any:
    """The quantiles of levels u ``(S, B, H)``; of a likelihood of quantiles linear between them."""
    with torch.no_grad():
        if not isinstance(likelihood, Quantiles):
            return likelihood.distribution(raw).icdf(u)
        q = likelihood.quantiles(raw)  # (B, H, Q)
        levels = torch.tensor(likelihood.levels, dtype=q.dtype)
        above = torch.searchsorted(levels, u.contiguous())
        low, high = (above - 1).clamp(min=0), above.clamp(max=len(levels) - 1)
        wide = q.expand(*u.shape, q.shape[-1])
        a, b = (wide.gather(-1, each.unsqueeze(-1)).squeeze(-1) for each in (low, high))
        gap = (levels[high] - levels[low]).clamp(min=1e-12)
        share = ((u - levels[low]) / gap).clamp(0, 1)
        return a + share * (b - a)
