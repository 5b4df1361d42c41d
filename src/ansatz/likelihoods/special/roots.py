"""Roots of monotone functions and quantiles, many at once."""

from collections.abc import Callable

import torch
from torch import Tensor

from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.special.tensors import tensors_of

Function = Callable[..., tuple[Tensor, Tensor]]


def find_root(
    function: Function,
    low: Tensor,
    high: Tensor,
    start: Tensor,
    *parameters: Tensor,
    tolerance: float = 1e-10,
) -> Tensor:
    """Finds the zero of an increasing function in a bracket, by Newton steps.

    A step that leaves the bracket, or does not halve it often enough, becomes a bisection; a point
    that has converged is left alone, so that the cost is that of the points still moving.
    ``function(x, *parameters)`` gives value and slope, elementwise for any selection of points
    along the first axis. Once the value is below ``tolerance``, a last Newton step squares it.
    """
    low, high = low.clone(), high.clone()
    x = start.clamp(low, high)
    found = x.clone()
    where = torch.arange(len(x), device=x.device)
    eps = torch.finfo(x.dtype).eps
    for step in range(200):
        value, slope = function(x, *parameters)
        low, high = torch.where(value <= 0, x, low), torch.where(value >= 0, x, high)
        newton = x - value / slope
        close = value.abs() <= tolerance
        inside = (newton >= low) & (newton <= high) & (close | (step % 8 != 7))
        fresh = torch.where(inside, newton, low + (high - low) / 2)
        # nan is a point that cannot be solved for: it stays nan and stops
        done = ~((fresh - x).abs() > 2 * eps * x.abs()) | close
        stay = close & ~inside  # a bisection would only lead away
        found[where[done]] = torch.where(stay, x, fresh)[done]
        moving = ~done
        if not bool(moving.any()):
            return found
        where, x, low, high = (t[moving] for t in (where, fresh, low, high))
        parameters = tuple(p[moving] for p in parameters)
    found[where] = x
    return found


Tail = Callable[[Tensor, Tensor], Tensor]


def positive_quantile(
    tail: Tail, log_density: Callable[[Tensor], Tensor], below: Tensor, above: Tensor, x: Tensor
) -> tuple[Tensor, Tensor]:
    r"""Solves P(Y <= e^x) = below, or P(Y > e^x) = above where that is the smaller one.

    Logarithms of tails are nearly concave in x = log y, so that Newton's method converges from
    afar; a step is at most 3. ``tail(x, low)`` is log P(Y <= e^x) where ``low`` holds, log P(Y >
    e^x) elsewhere, ``log_density(x)`` is log(y p(y)) at y = e^x. ``above`` is given by itself so
    that it keeps its digits. Returns x, and True where it does not solve the equation.
    """
    low = below < above
    target = torch.where(low, below, above).log()
    for _ in range(30):
        value = tail(x, low)
        step = (target - value) * (value - log_density(x)).exp()
        step = torch.where(low, step, -step).clamp(-3, 3)
        x = x + torch.where(step.isnan(), 0.0, step)
        if bool((step.abs() < 1e-8).all()):  # the next step would be its square
            break
    gap = (tail(x, low) - target).abs()
    return x, ~(gap < 1e-10 * (1 - target))


_FARTHEST = 2.0**62


def count_search(
    distribution: Distribution, q: Tensor, guess: Tensor, upper: Tensor | None = None
) -> Tensor:
    r"""Finds the smallest count with cdf >= q, by Newton's method on the normal scale.

    .. math:: y \leftarrow y + (\Phi^{-1}(q) - z)\, \phi(z) / p(y), \qquad z = \Phi^{-1}(F(y))

    rounded to whole numbers and kept between the largest y known to be too small and the smallest
    known to be enough; where that has not ended after eight steps, by halving. Only the elements
    still open are computed. The cdf has the last word, so a poor guess costs time and no accuracy.
    """
    kind, parameters = type(distribution), tensors_of(distribution)
    end = torch.full_like(q, torch.inf) if upper is None else upper.to(q).expand_as(q)
    answer = torch.where(q >= 1, end, 0.0)
    answer = torch.where((q >= 0) & (q <= 1), answer, torch.nan)
    inside = (q > 0) & (q < 1)
    # Beyond 2^62 a guess has all the digits there are, and a rate that overflowed has no cdf.
    far = inside & ~(guess < _FARTHEST)
    answer = torch.where(far, torch.minimum(guess, end), answer)
    active = (inside & ~far).nonzero(as_tuple=True)
    level = q[active]
    low, high = torch.full_like(level, -1.0), end[active]  # cdf(low) < q <= cdf(high)
    y = torch.minimum(guess[active].round().clamp(min=0), high.clamp(max=_FARTHEST))
    step = 0
    while level.numel():
        part = kind(*(p[active] for p in parameters))
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
