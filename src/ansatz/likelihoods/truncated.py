"""Any likelihood of numbers of which only a part can be seen."""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.likelihoods.constant_fit import fit_constant
from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.interval_mass import minus_log_mass
from ansatz.likelihoods.likelihood import Likelihood, require_same_shape
from ansatz.likelihoods.registry import create
from ansatz.likelihoods.special.quadrature import gauss
from ansatz.likelihoods.support import refuse_where
from ansatz.spec import TargetSpec

UNORDERED = ("categorical", "von_mises")  # classes and angles: nothing lies beyond a value


def inner_likelihood(
    outer: str, likelihood: str | Likelihood, options: Mapping[str, Any] | None = None
) -> tuple[Likelihood, dict[str, Any]]:
    """Creates the likelihood of single numbers, and the name and options that remake it."""
    if isinstance(likelihood, str):
        likelihood = create(likelihood, **(options or {}))
    elif options:
        raise UsageError(
            f"{outer}: options belong to a likelihood given by name, but this one is an instance."
        )
    if not isinstance(likelihood, Likelihood):
        raise UsageError(f"{outer} needs a likelihood's name or a Likelihood, got {likelihood!r}.")
    if not likelihood.has_distribution:
        reason = "a loss without a density"
    elif likelihood.event_ndim or not likelihood.additive:
        reason = "whose outcomes are several numbers"
    elif likelihood.name in UNORDERED:
        reason = "whose outcomes have no order"
    else:
        return likelihood, {"likelihood": likelihood.name, "options": dict(likelihood.options)}
    raise UsageError(
        f"{outer} needs a likelihood of single numbers, got {likelihood.name!r}, {reason}. "
        "Take one like weibull, log_normal, normal or poisson."
    )


_LEVELS = (1e-13, 1e-9, 1e-6, 1e-4, 0.01, 0.1, 0.3)  # where panels of the integrals meet


class TruncatedDistribution(Distribution):
    r"""The distribution of Y given lower < Y <= upper.

    .. math:: p(y \mid l < Y \le u) = \frac{p(y)}{F(u) - F(l)}, \qquad l < y \le u

    All of it in logarithms, so that it holds its digits where what is left is one part in 1e300.
    Mean and variance come from quadrature of the cdf, good to some nine digits.

    Args:
        distribution: any univariate distribution.
        lower: number or tensor; -inf for none. Each row may have its own.
        upper: number or tensor; inf for none.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import NormalDistribution
        >>> normal = NormalDistribution(torch.zeros(1), torch.ones(1))
        >>> TruncatedDistribution(normal, lower=0.0).mean  # sqrt(2 / pi)
        tensor([0.7979])
    """

    def __init__(
        self,
        distribution: Distribution,
        lower: float | Tensor = -math.inf,
        upper: float | Tensor = math.inf,
    ) -> None:
        self.base = distribution
        shape = distribution.batch_shape
        like = distribution.mean
        self._low, self._high = (
            torch.as_tensor(v, dtype=like.dtype, device=like.device) for v in (lower, upper)
        )
        self._shape = torch.broadcast_shapes(shape, self._low.shape, self._high.shape)
        self._low, self._high = self._low.expand(self._shape), self._high.expand(self._shape)
        self.discrete = distribution.discrete
        self.reparameterized = distribution.reparameterized
        self.log_mass = distribution.log_interval(self._low, self._high)
        self.lower, self.upper = distribution.lower, distribution.upper
        if self._low.numel() and not self._low.is_meta:  # the widest of all rows
            self.lower = max(distribution.lower, float(self._low.min()))
            self.upper = min(distribution.upper, float(self._high.max()))

    @property
    def batch_shape(self) -> torch.Size:
        """That of the distribution and the bounds together."""
        return self._shape

    @property
    def mean(self) -> Tensor:
        """E[Y | l < Y <= u]."""
        return self._moments()[0]

    @property
    def variance(self) -> Tensor:
        """Var[Y | l < Y <= u]."""
        return self._moments()[1]

    @property
    def mode(self) -> Tensor:
        """The distribution's mode, or the nearest end (for distributions with a single mode)."""
        low = self._low.floor() + 1 if self.discrete else self._low
        high = self._high.floor() if self.discrete else self._high
        return torch.minimum(torch.maximum(self.base.mode, low), high)

    def log_prob(self, y: Tensor) -> Tensor:
        """Log p(y) - log(F(u) - F(l)) inside the bounds."""
        inside = (y > self._low) & (y <= self._high)
        return torch.where(inside, self.base.log_prob(y) - self.log_mass, -math.inf)

    def log_cdf(self, y: Tensor) -> Tensor:
        """Log P(l < Y <= y) - log P(l < Y <= u)."""
        inside, below = (y > self._low) & (y < self._high), y <= self._low
        part = self.base.log_interval(self._low, torch.where(inside, y, self._high))
        value = torch.where(inside, part - self.log_mass, 0.0)
        return torch.where(below, -math.inf, value.clamp(max=0))

    def log_survival(self, y: Tensor) -> Tensor:
        """Log P(y < Y <= u) - log P(l < Y <= u)."""
        inside, above = (y > self._low) & (y < self._high), y >= self._high
        part = self.base.log_interval(torch.where(inside, y, self._low), self._high)
        value = torch.where(inside, part - self.log_mass, 0.0)
        return torch.where(above, -math.inf, value.clamp(max=0))

    def _solve(self, q: Tensor) -> Tensor:
        q = q.expand(torch.broadcast_shapes(q.shape, self._shape))
        # In the lower half of the distribution its own quantiles have the digits; elsewhere bisect.
        start = self.base.cdf(self._low)
        start = torch.where(self._low == -math.inf, 0.0, start)
        level = (start + q * self.log_mass.exp()).clamp(0, 1)
        guess = self.base.icdf(level)
        guess = torch.minimum(torch.maximum(guess, self._low), self._high)
        right = (self.cdf(guess) - q).abs() <= 1e-13 * q
        if self.discrete:
            right = (self.cdf(guess) >= q) & (self.cdf(guess - 1) < q)
        y = torch.where(right, guess, self._bisect(q, guess)) if not bool(right.all()) else guess
        y = torch.where(q <= 0, self._low.clamp(min=self.base.lower), y)
        y = torch.where(q >= 1, self._high.clamp(max=self.base.upper), y)
        return torch.where((q >= 0) & (q <= 1), y, math.nan)

    def _bisect(self, q: Tensor, guess: Tensor) -> Tensor:
        """Brackets grow from the guess, or from a finite end, by doubling."""
        sd = torch.nan_to_num(self.base.stddev, nan=1.0, posinf=1.0).clamp(min=1e-30)
        ends = torch.where(self._low.isfinite(), self._low, self._high)
        centre = torch.where(guess.isfinite(), guess, torch.nan_to_num(ends, 0.0, 0.0, 0.0))
        low = high = centre
        step = 1e-3 * sd.expand_as(centre)
        for _ in range(1100):
            too_high, too_low = self.cdf(low) >= q, self.cdf(high) < q
            too_high, too_low = too_high & (low > self._low), too_low & (high < self._high)
            if not bool((too_high | too_low).any()):
                break
            low = torch.where(too_high, torch.maximum(low - step, self._low), low)
            high = torch.where(too_low, torch.minimum(high + step, self._high), high)
            step = 2 * step
        for _ in range(200):
            middle = low + (high - low) / 2
            above = self.cdf(middle) >= q
            new_low, new_high = torch.where(above, low, middle), torch.where(above, middle, high)
            if torch.equal(new_low, low) and torch.equal(new_high, high):
                break
            low, high = new_low, new_high
        if not self.discrete:
            return high
        y = high.ceil()
        return torch.where(self.cdf(y - 1) >= q, y - 1, y)

    def _moments(self) -> tuple[Tensor, Tensor]:
        """E and Var about a centre c: the integrals of F below it and of 1 - F above."""
        with torch.no_grad():
            c = self.icdf(self.log_mass.new_full(self._shape, 0.5))
        first, second = self._sums(c) if self.discrete else self._integrals(c)
        mean, variance = c + first, second - first**2
        open_end = (self._low == -math.inf) | (self._high == math.inf)
        # A tail too heavy for the distribution is too heavy for us.
        found = []
        for own, moment in ((self.base.mean, mean), (self.base.variance, variance)):
            found.append(torch.where(open_end & ~own.isfinite(), own, moment))
        return found[0], found[1]

    def _integrals(self, c: Tensor) -> tuple[Tensor, Tensor]:
        levels = [q for q in _LEVELS if q > torch.finfo(c.dtype).eps]
        nodes, weights = gauss("legendre", 24, c)
        nodes, weights = (v.reshape(-1, *(1,) * c.ndim) for v in (nodes, weights))
        first, second = torch.zeros_like(c), torch.zeros_like(c)
        for sign in (-1.0, 1.0):
            end = self._low if sign < 0 else self._high
            nearest = torch.maximum(
                1e-9 * (c - end).abs(), 64 * torch.finfo(c.dtype).eps * end.abs()
            )
            edges = [c]
            with torch.no_grad():
                for q in reversed(levels):
                    edge = self.icdf(torch.full_like(c, q if sign < 0 else 1 - q))
                    # Next to a finite end nothing is left, and differences lose their digits.
                    close = end.isfinite() & ((edge - end).abs() < nearest)
                    edges.append(torch.where(close, edges[-1], edge))
            for a, b in pairwise(edges):
                x = a + (b - a) * nodes  # (24, ...)
                tail_mass = (self.log_cdf(x) if sign < 0 else self.log_survival(x)).exp()
                area = (b - a).abs() * weights * tail_mass
                first = first + sign * area.sum(0)
                second = second + 2 * (area * (x - c).abs()).sum(0)
        return first, second

    def _sums(self, c: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            tiny = max(1e-14, torch.finfo(c.dtype).eps)
            low = float(self.icdf(torch.full_like(c, tiny)).min())
            high = float(self.icdf(torch.full_like(c, 1 - tiny)).max())
        first, second = torch.zeros_like(c), torch.zeros_like(c)
        for start in range(int(low), int(high) + 2, 1024):
            k = torch.arange(start, min(start + 1024, int(high) + 2), dtype=c.dtype)
            k = k.to(c.device).reshape(-1, *(1,) * c.ndim).expand(-1, *c.shape)
            above = k >= c
            mass = torch.where(above, self.log_survival(k).exp(), self.cdf(k))
            far = torch.where(above, 2 * (k - c) + 1, 2 * (c - k) - 1)
            first = first + torch.where(above, mass, -mass).sum(0)
            second = second + (far * mass).sum(0)
        return first, second


class Wrapped(Likelihood):
    """A likelihood with another one inside, whose raw numbers, links and shapes are its own."""

    likelihood: Likelihood

    def _hold(
        self, likelihood: str | Likelihood, options: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        self.likelihood, remake = inner_likelihood(self.name, likelihood, options)
        vars(self)["link_name"] = self.likelihood.link_name  # not of the class
        return remake

    def outputs(self, target: TargetSpec) -> int:
        """As the likelihood inside."""
        return self.likelihood.outputs(TargetSpec(target.shape, target.classes))

    def relax_shapes(self) -> None:
        """As the likelihood inside."""
        self.likelihood.relax_shapes()


class Truncated(Wrapped):
    r"""A likelihood restricted to lower < Y <= upper: outcomes outside are never recorded.

    .. math:: -\log p(y) + \log(F(u) - F(l))

    Not to be taken for censoring, where the outcomes outside are known to exist: incomes of those
    who pay tax are truncated, counts from 1 upwards are ``Truncated("poisson", lower=0)``. The raw
    numbers, links and floors are those of the likelihood inside, and describe what could be seen
    without the bounds; ``distribution`` and ``predict`` describe what will be recorded.

    Args:
        likelihood: a registry name, or a likelihood of single numbers.
        lower: l, excluded; default: none.
        upper: u, included; default: none.
        options: of the likelihood given by name.

    Shapes:
        - raw: as the likelihood inside.
        - y: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Truncated
        >>> likelihood = Truncated("poisson", lower=0)
        >>> likelihood.loss(torch.zeros(1, 1), torch.ones(1)).exp()  # (1 - 1/e) / (1/e) = e - 1
        tensor([1.7183])

    References:
        Johnson, Kotz and Balakrishnan (1994), Continuous Univariate Distributions, section 13.10.1.
    """

    name = "truncated"

    def __init__(
        self,
        likelihood: str | Likelihood = "normal",
        *,
        lower: float | None = None,
        upper: float | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        remake = self._hold(likelihood, options)
        self.options = {**remake, "lower": lower, "upper": upper}
        self.lower = -math.inf if lower is None else float(lower)
        self.upper = math.inf if upper is None else float(upper)
        if not self.lower < self.upper:
            raise UsageError(f"truncated needs lower < upper, got {lower} and {upper}.")

    def check(self, y: Tensor) -> None:
        """Within the bounds and the support of the likelihood inside."""
        self.likelihood.check(y)
        bad = ~((y > self.lower) & (y <= self.upper))
        advice = "Outcomes outside the bounds are never recorded: drop the row or move the bounds."
        refuse_where(bad, y, f"truncated outcomes must be in ({self.lower}, {self.upper}]", advice)

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Units and floors of the likelihood inside."""
        self.likelihood.observe(y, weight)

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The maximum-likelihood constant, from that of the likelihood without bounds."""
        shift, scale = self.likelihood.start(y, weight)
        return fit_constant(self, y, weight, shift, scale), scale

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The negative log-likelihood."""
        require_same_shape(self.name, raw, y)
        ends = (torch.full_like(raw[..., 0], end) for end in (self.lower, self.upper))
        return self.likelihood.loss(raw, y) - minus_log_mass(self.likelihood, raw, *ends)

    def distribution(self, raw: Tensor) -> TruncatedDistribution:
        """The likelihood inside given that the outcome lies within the bounds."""
        return TruncatedDistribution(self.likelihood.distribution(raw), self.lower, self.upper)
