"""The probability of an interval under a likelihood, in the farthest tails too."""

import math

import torch
from torch import Tensor

from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.likelihoods.special.logarithms import soft_cap
from ansatz.likelihoods.special.tensors import none

LARGEST = 1e30  # of a loss, from where on it grows like a logarithm: float32 holds its gradient


def minus_log_mass(
    likelihood: Likelihood, raw: Tensor, lower: Tensor, upper: Tensor, rows: Tensor | None = None
) -> Tensor:
    r"""-log P(lower < Y <= upper), by as few tails as the rows need; 0 on rows not meant.

    In double precision and with a gradient that is finite wherever the raw numbers are: a branch
    that a row does not need sees harmless numbers, and an interval so far out that both of its
    tails agree to the last digit is evaluated by the density.
    """
    if rows is None:
        rows = torch.ones_like(lower, dtype=torch.bool)
    example = likelihood.distribution(torch.where(rows.unsqueeze(-1), raw, 0.0))
    below, above = nothing_below(example, lower), upper == math.inf
    total = _tail("log_survival", likelihood, raw, lower, rows & above & ~below)
    total = total + _tail("log_cdf", likelihood, raw, upper, rows & below & ~above)
    between = rows & ~(below | above)
    if not none(between):
        total = total + _between(likelihood, raw, lower, upper, between)
    return total.to(raw.dtype)


def minus_log_survival(likelihood: Likelihood, raw: Tensor, y: Tensor, rows: Tensor) -> Tensor:
    """-log P(Y > y) on some rows, 0 elsewhere and where all of the support lies beyond y."""
    rows = rows & ~nothing_below(_only(likelihood, rows, raw, y)[0], y)
    return _tail("log_survival", likelihood, raw, y, rows).to(raw.dtype)


@torch.no_grad()
def nothing_below(distribution: Distribution, value: Tensor) -> Tensor:
    """True where P(Y <= value) is 0 by the support alone."""
    below, edge = value < distribution.lower, value == distribution.lower
    if none(edge):
        return below | (value == -math.inf)
    return below | (edge & ~(distribution.cdf(value) > 0)) | (value == -math.inf)


def _tail(tail: str, likelihood: Likelihood, raw: Tensor, y: Tensor, rows: Tensor) -> Tensor:
    if none(rows):
        return torch.zeros_like(raw[..., 0])
    one, y = _only(likelihood, rows, raw, y)
    return torch.where(rows, soft_cap(-getattr(one, tail)(y), LARGEST), 0.0)


def _between(
    likelihood: Likelihood, raw: Tensor, lower: Tensor, upper: Tensor, rows: Tensor
) -> Tensor:
    one, low = _only(likelihood, rows, raw, lower)
    high = torch.where(rows, upper.to(low), low + 1)
    total = -one.log_interval(low, high)
    lost = rows & ~total.isfinite()
    if not none(lost):
        # So far out that both tails are equal to the last digit: what counts is the density.
        one, _ = _only(likelihood, rows & ~lost, raw, lower)
        total = torch.where(lost, 0.0, -one.log_interval(low, torch.where(lost, low + 1, high)))
        one, low = _only(likelihood, lost, raw, lower)
        high = torch.where(lost, upper.to(low), low + 1)
        total = torch.where(lost, -_log_density_between(one, low, high), total)
    return torch.where(rows, soft_cap(total, LARGEST), 0.0)


def _only(
    likelihood: Likelihood, rows: Tensor, raw: Tensor, y: Tensor
) -> tuple[Distribution, Tensor]:
    """The likelihood and outcomes of some rows; at raw 0 and 1/2 (1 for counts) on the others."""
    if raw.device.type != "mps":  # has no doubles
        raw, y = raw.double(), y.double()
    one = likelihood.distribution(torch.where(rows.unsqueeze(-1), raw, 0.0))
    return one, torch.where(rows, y, 1.0 if one.discrete else 0.5)


def _log_density_between(distribution: Distribution, lower: Tensor, upper: Tensor) -> Tensor:
    """log P(lower < Y <= upper) far out, by Simpson's rule, or the ends' probabilities."""
    if distribution.discrete:
        return torch.logaddexp(
            distribution.log_prob(lower.floor() + 1), distribution.log_prob(upper.floor())
        )
    points = torch.stack([lower, (lower + upper) / 2, upper])
    weight = torch.tensor([1.0, 4.0, 1.0], dtype=lower.dtype, device=lower.device) / 6
    weight = weight.reshape(3, *(1,) * lower.ndim)
    return (distribution.log_prob(points) + weight.log()).logsumexp(0) + (upper - lower).log()
