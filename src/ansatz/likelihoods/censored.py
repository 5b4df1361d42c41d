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
from ansatz.likelihoods.interval_mass import minus_log_mass, minus_log_survival, none
from ansatz.likelihoods.likelihood import (
    Likelihood,
    expand_weight,
    refuse_where,
    require_same_shape,
)
from ansatz.likelihoods.truncated_distribution import TruncatedDistribution
from ansatz.spec import TargetSpec


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
                    f"has no maximum. Got {known.shape[0]} rows. An event is coded 1; another "
                    "value is named by --event COLUMN=VALUE."
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
        if none(~exact):
            total = self.law.loss(raw, lower)
        else:
            total = minus_log_mass(self.law, raw, torch.maximum(lower, entry), upper, ~exact)
        if not (none(exact) or none(~exact)):
            own = torch.where(exact.unsqueeze(-1), raw, 0.0)
            fill = 1.0 if self.law.distribution(own).discrete else 0.5
            total = torch.where(exact, self.law.loss(own, torch.where(exact, lower, fill)), total)
        late = entry > -math.inf
        if not none(late):
            total = total - minus_log_survival(self.law, raw, entry, late)
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
