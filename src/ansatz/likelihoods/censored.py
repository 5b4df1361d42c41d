"""Any law of numbers, with outcomes that are known up to an interval."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ansatz.errors import DataError
from ansatz.likelihoods.censored_outcome import check_bounds
from ansatz.likelihoods.constant_fit import fit_constant
from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.inner_law import inner_law
from ansatz.likelihoods.likelihood import (
    Likelihood,
    expand_weight,
    refuse_where,
    require_same_shape,
)
from ansatz.likelihoods.log_link import soft_cap
from ansatz.likelihoods.truncated_distribution import TruncatedDistribution
from ansatz.spec import TargetSpec

LARGEST = 1e30  # of a loss, from where on it grows like a logarithm: float32 holds its gradient


class Censored(Likelihood):
    r"""A law whose outcomes may be censored on the left, the right or both sides, or truncated.

    An outcome is (lower, upper, entry). With f, F and S the density, cdf and survival function of
    the law, its loss is

    .. math:: \begin{cases}
        -\log f(y) & \text{lower = upper = y: observed} \\
        -\log S(l) & \text{lower = l, upper} = \infty \text{: right-censored, } Y > l \\
        -\log F(u) & \text{lower} = -\infty \text{, upper = u: left-censored, } Y \le u \\
        -\log (F(u) - F(l)) & \text{interval-censored, } l < Y \le u
      \end{cases} \quad + \log S(e)

    the last term where there is an entry e: the row is known only because Y > e (left truncation;
    -inf for none). Bounds outside the support say nothing. The same holds for laws of counts.
    Raw numbers, links and floors are those of the law inside; units come from the finite ends.
    Censoring must be independent of the outcome given x: no model can tell from the data.

    Args:
        law: a registry name, or a likelihood of single numbers.
        options: of the law given by name.

    Shapes:
        - raw: ``(..., P)`` as the law inside.
        - y: ``(..., 3)``, as ``right_censored`` and ``interval_censored`` make it.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Censored, right_censored
        >>> law = Censored("gamma", options={"dispersion": 1.0})
        >>> y = right_censored(torch.tensor([1.0, 2.0, 6.0]), torch.tensor([1, 0, 1]))
        >>> law.loss(torch.zeros(3, 1), y)
        tensor([1., 2., 6.])
        >>> law.start(y, torch.ones(3))[0].exp()  # events / time at risk = 2 / 9
        tensor([4.5000])

    References:
        Klein and Moeschberger (2003), Survival Analysis, section 3.5.
    """

    name = "censored"
    event_ndim = 1

    def __init__(
        self, law: str | Likelihood = "weibull", *, options: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__()
        self.law, self.options = inner_law(self.name, law, options)
        self.__dict__["link_name"] = self.law.link_name  # of this law, not of the class

    @property
    def spread(self) -> Any:
        """The dispersion's head of the law inside."""
        return self.law.spread

    def outputs(self, target: TargetSpec) -> int:
        """As the law inside."""
        return self.law.outputs(TargetSpec(target.shape))

    def check(self, y: Tensor) -> None:
        """Ordered ends with a part in the support; exact outcomes as the law inside has them."""
        check_bounds(y)
        lower, upper, _ = y.unbind(-1)
        exact = lower == upper
        fill = next((v for v in (0.5, 1.0, *lower[exact][:1].tolist()) if self._takes(v, y)), None)
        if fill is None:
            self.law.check(lower[exact])
        else:
            self.law.check(torch.where(exact, lower, fill))
        law = self._example(y)
        ends = f"({law.lower}, {law.upper})"
        words = f"{self.law.name} outcomes lie in {ends}: an interval must meet it"
        advice = "Repair the row, or choose a law whose support is wider."
        refuse_where(~exact & (lower >= law.upper), lower, words, advice)
        below = upper < law.lower if self._mass_at_lower(law) else upper <= law.lower
        refuse_where(~exact & below, upper, words, advice)

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Units and floors of the law inside, from one finite number of each row."""
        lower, upper, _ = y.unbind(-1)
        weight = expand_weight(weight, lower)
        for known, word in ((lower, "right"), (upper, "left")):
            other = upper if word == "right" else lower
            if bool(((weight <= 0) | other.isinf()).all()):
                raise DataError(
                    f"no outcome was observed: every row is {word}-censored, and the likelihood "
                    f"has no maximum. Got {known.shape[0]} rows."
                )
        self.law.observe(*self._complete(y, weight))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The maximum-likelihood constant, from that of the rows taken as observed."""
        shift, scale = self.law.start(*self._complete(y, expand_weight(weight, y[..., 0])))
        if bool(((y[..., 0] == y[..., 1]) & (y[..., 2] == -math.inf)).all()):
            return shift, scale
        return fit_constant(self, y, weight, shift, scale), scale

    def loosen(self) -> None:
        """As the law inside."""
        self.law.loosen()

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The negative log-likelihood; every branch gets harmless numbers on rows of another."""
        require_same_shape(self.name, raw, y, event=(3,))
        lower, upper, entry = y.to(raw.dtype).unbind(-1)
        exact = lower == upper
        if _none(~exact):
            total = self.law.loss(raw, lower)
        else:
            total = self._unseen(raw, torch.maximum(lower, entry), upper, ~exact)
        if not (_none(exact) or _none(~exact)):
            own = torch.where(exact.unsqueeze(-1), raw, 0.0)
            fill = 1.0 if self.law.distribution(own).discrete else 0.5
            total = torch.where(exact, self.law.loss(own, torch.where(exact, lower, fill)), total)
        late = entry > -math.inf
        if not _none(late):
            late = late & ~self._nothing_below(self._only(late, raw, entry)[0], entry)
            total = total - self._tail("log_survival", raw, entry, late).to(raw.dtype)
        return total

    def distribution(self, raw: Tensor) -> Distribution:
        """That of the law inside: of the outcome itself, censored or not."""
        return self.law.distribution(raw)

    def given(self, raw: Tensor, y: Tensor) -> tuple[Distribution, Tensor]:
        """The law given Y > entry, and the outcome: nan where it is not known exactly."""
        law, entry = self.law.distribution(raw), y[..., 2]
        if bool((entry > -math.inf).any()):
            law = TruncatedDistribution(law, lower=entry)
        return law, torch.where(y[..., 0] == y[..., 1], y[..., 0], math.nan)

    def point(self, raw: Tensor) -> Tensor:
        """As the law inside."""
        return self.law.point(raw)

    def _unseen(self, raw: Tensor, lower: Tensor, upper: Tensor, mine: Tensor) -> Tensor:
        """-log P(lower < Y <= upper) on the rows of ``mine``, by as few tails as they need."""
        law = self.law.distribution(torch.where(mine.unsqueeze(-1), raw, 0.0))
        below, above = self._nothing_below(law, lower), upper == math.inf
        total = self._tail("log_survival", raw, lower, mine & above & ~below)
        total = total + self._tail("log_cdf", raw, upper, mine & below & ~above)
        between = mine & ~(below | above)
        if not _none(between):
            total = total + self._between(raw, lower, upper, between)
        return total.to(raw.dtype)

    def _tail(self, tail: str, raw: Tensor, y: Tensor, rows: Tensor) -> Tensor:
        """-log of a tail on some rows, 0 elsewhere; in double precision, finite for wild raw."""
        if _none(rows):
            return torch.zeros_like(y)
        law, y = self._only(rows, raw, y)
        return torch.where(rows, soft_cap(-getattr(law, tail)(y), LARGEST), 0.0)

    def _between(self, raw: Tensor, lower: Tensor, upper: Tensor, rows: Tensor) -> Tensor:
        law, low = self._only(rows, raw, lower)
        high = torch.where(rows, upper.to(low), low + 1)
        total = -law.log_interval(low, high)
        lost = rows & ~total.isfinite()
        if not _none(lost):
            # So far out that both tails are equal to the last digit: what counts is the density.
            law, _ = self._only(rows & ~lost, raw, lower)
            total = torch.where(lost, 0.0, -law.log_interval(low, torch.where(lost, low + 1, high)))
            law, low = self._only(lost, raw, lower)
            high = torch.where(lost, upper.to(low), low + 1)
            total = torch.where(lost, -_log_density_between(law, low, high), total)
        return torch.where(rows, soft_cap(total, LARGEST), 0.0)

    def _only(self, rows: Tensor, raw: Tensor, y: Tensor) -> tuple[Distribution, Tensor]:
        """The law and outcomes of some rows; at raw 0 and 1/2 (1 for counts) on the others."""
        if raw.device.type != "mps":  # has no doubles
            raw, y = raw.double(), y.double()
        law = self.law.distribution(torch.where(rows.unsqueeze(-1), raw, 0.0))
        return law, torch.where(rows, y, 1.0 if law.discrete else 0.5)

    @torch.no_grad()
    def _nothing_below(self, law: Distribution, value: Tensor) -> Tensor:
        """Where P(Y <= value) is 0 by the support alone."""
        below, edge = value < law.lower, value == law.lower
        if _none(edge):
            return below | (value == -math.inf)
        return below | (edge & ~(law.cdf(value) > 0)) | (value == -math.inf)

    def _mass_at_lower(self, law: Distribution) -> bool:
        if law.lower == -math.inf:
            return False
        return bool((law.cdf(torch.full_like(law.mean, law.lower)) > 0).any())

    def _example(self, y: Tensor) -> Distribution:
        """The law at raw 0, for its support."""
        shape = (*y.shape[1:-1], self.law.outputs(TargetSpec(tuple(y.shape[1:-1]))))
        with torch.no_grad():
            return self.law.distribution(torch.zeros(1, *shape, dtype=y.dtype, device=y.device))

    def _takes(self, value: float, y: Tensor) -> bool:
        try:
            self.law.check(torch.full_like(y[:1, ..., 0], value))
        except DataError:
            return False
        return True

    def _complete(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Each row by one finite number inside its interval and the support, or weight 0."""
        lower, upper, _ = y.unbind(-1)
        law = self._example(y)
        low = lower.clamp(min=law.lower) if law.lower > -math.inf else lower
        middle = upper.floor() if law.discrete else low + (upper - low) / 2
        value = torch.where(upper == math.inf, low, torch.where(low == -math.inf, upper, middle))
        value = torch.where(lower == upper, lower, value)
        if law.discrete:
            value = value.ceil()
        with torch.no_grad():
            possible = value.isfinite() & (law.log_prob(value) > -math.inf)
        weight = torch.where(possible, weight, 0.0)
        if not bool((weight > 0).any(0).all()):
            raise DataError("no row holds a number inside the support: nothing can be estimated.")
        centre = torch.where(weight > 0, value, math.nan).nanmedian(0).values
        return torch.where(weight > 0, value, centre), weight


def _log_density_between(law: Distribution, lower: Tensor, upper: Tensor) -> Tensor:
    """log P(lower < Y <= upper) far out, by Simpson's rule, or the ends' probabilities."""
    if law.discrete:
        return torch.logaddexp(law.log_prob(lower.floor() + 1), law.log_prob(upper.floor()))
    points = torch.stack([lower, (lower + upper) / 2, upper])
    weight = torch.tensor([1.0, 4.0, 1.0], dtype=lower.dtype, device=lower.device) / 6
    weight = weight.reshape(3, *(1,) * lower.ndim)
    return (law.log_prob(points) + weight.log()).logsumexp(0) + (upper - lower).log()


def _none(rows: Tensor) -> bool:
    """Whether no row is meant, so that its branch may be left out; False where nobody can know."""
    try:
        return not bool(rows.any())
    except RuntimeError:  # inside vmap, and on the meta device
        return False
