"""Quantiles of counts by a bracketed search that asks the cdf only where it must."""

from collections.abc import Callable

import torch
from torch import Tensor

from ansatz.likelihoods.distribution import Distribution


def count_search(
    likelihood: Callable[..., Distribution],
    parameters: tuple[Tensor, ...],
    q: Tensor,
    guess: Tensor,
    upper: Tensor | None = None,
) -> Tensor:
    r"""The smallest count with cdf >= q, by Newton's method on the normal scale in a bracket.

    .. math:: y \leftarrow y + (\Phi^{-1}(q) - z)\, \phi(z) / p(y), \qquad z = \Phi^{-1}(F(y))

    rounded to whole numbers and kept between the largest y known to be too small and the smallest
    known to be enough; where that has not ended after eight steps, by halving. Only the elements
    still open are computed. The cdf has the last word, so a poor guess costs time and no accuracy.

    Args:
        likelihood: makes the distribution of some elements from their parameters.
        parameters: of the likelihood, tensors of q's shape in double precision.
        q: levels; 0 or less gives 0, 1 the upper end, anything else nan.
        guess: where to begin.
        upper: the largest count of each element; None where there is none.
    """
    end = torch.full_like(q, torch.inf) if upper is None else upper.to(q).expand_as(q)
    answer = torch.where(q >= 1, end, 0.0)
    answer = torch.where((q >= 0) & (q <= 1), answer, torch.nan)
    active = ((q > 0) & (q < 1)).nonzero(as_tuple=True)
    level = q[active]
    low, high = torch.full_like(level, -1.0), end[active]  # cdf(low) < q <= cdf(high)
    y = torch.minimum(guess[active].round().clamp(min=0), high.clamp(max=2.0**62))
    step = 0
    while level.numel():
        part = likelihood(*(p[active] for p in parameters))
        value = part.cdf(y)
        enough = value >= level
        low, high = torch.where(enough, low, y), torch.where(enough, y, high)
        # Beyond 2^53 neighbours are more than one apart.
        gap = torch.maximum(torch.ones_like(high), 4e-16 * high)
        done = high - low <= torch.where(high.isfinite(), gap, 0.0)
        answer[tuple(i[done] for i in active)] = high[done]
        y = _newton(part, y, value, level) if step < 8 else _halve(low, high)
        y = torch.maximum(torch.minimum(y.round(), high - 1), low + 1)
        active = tuple(i[~done] for i in active)
        level, low, high, y = (v[~done] for v in (level, low, high, y))
        step += 1
    return answer


def _newton(distribution: Distribution, y: Tensor, value: Tensor, level: Tensor) -> Tensor:
    inside = value.clamp(1e-300, 1 - 1e-16)
    z, target = torch.special.ndtri(inside), torch.special.ndtri(level)
    slope = distribution.log_prob(y).exp() * (0.5 * z * z).exp() * (2 * torch.pi) ** 0.5  # dz / dy
    # cdf(y) is the normal scale's value at y + 1/2: aim for the middle of the step that holds q.
    move = (target - z) / slope.clamp(min=1e-300) + 0.5
    return y + torch.nan_to_num(move, nan=1.0).clamp(-1e300, 1e300)


def _halve(low: Tensor, high: Tensor) -> Tensor:
    return torch.where(high.isfinite(), low + (high - low) / 2, 2 * low + 2)
