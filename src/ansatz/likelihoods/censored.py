"""Any likelihood of numbers, with outcomes that are known up to an interval."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ansatz.errors import DataError
from ansatz.likelihoods.constant_fit import fit_constant
from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.interval_mass import minus_log_mass, minus_log_survival
from ansatz.likelihoods.likelihood import Likelihood, expand_weight, require_same_shape
from ansatz.likelihoods.special.tensors import none
from ansatz.likelihoods.support import refuse_where
from ansatz.likelihoods.survival_outcome import check_bounds
from ansatz.likelihoods.truncated import TruncatedDistribution, Wrapped
from ansatz.spec import TargetSpec


class Censored(Wrapped):
    r"""A likelihood of outcomes that may be censored on either side or both, or truncated.

    An outcome is (lower, upper, entry). With f, F and S the density, cdf and survival function of
    the likelihood, its loss is

    .. math:: \begin{cases}
        -\log f(y) & \text{lower = upper = y: observed} \\
        -\log S(l) & \text{lower = l, upper} = \infty \text{: right-censored, } Y > l \\
        -\log F(u) & \text{lower} = -\infty \text{, upper = u: left-censored, } Y \le u \\
        -\log (F(u) - F(l)) & \text{interval-censored, } l < Y \le u
      \end{cases} \quad + \log S(e)

    the last term where there is an entry e: the row is known only because Y > e (left truncation;
    -inf for none). Bounds outside the support have no effect. The same holds for likelihoods of
    counts. Raw numbers, links and floors are those of the likelihood inside; units come from the
    finite ends. Censoring must be independent of the outcome given x: data cannot show whether
    it is.

    Args:
        likelihood: a registry name, or a likelihood of single numbers.
        options: of the likelihood given by name.

    Shapes:
        - raw: ``(..., P)`` as the likelihood inside.
        - y: ``(..., 3)``, as ``right_censored`` and ``interval_censored`` make it.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Censored, right_censored
        >>> likelihood = Censored("gamma", options={"dispersion": 1.0})
        >>> y = right_censored(torch.tensor([1.0, 2.0, 6.0]), torch.tensor([1, 0, 1]))
        >>> likelihood.loss(torch.zeros(3, 1), y)
        tensor([1., 2., 6.])
        >>> likelihood.start(y, torch.ones(3))[0].exp()  # events / time at risk = 2 / 9
        tensor([4.5000])

    References:
        Klein and Moeschberger (2003), Survival Analysis, section 3.5.
    """

    name = "censored"
    event_ndim = 1

    def __init__(
        self, likelihood: str | Likelihood = "weibull", *, options: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__()
        self.options = self._hold(likelihood, options)

    @property
    def dispersion(self) -> Any:
        """The dispersion's head of the likelihood inside."""
        return self.likelihood.dispersion

    def check(self, y: Tensor) -> None:
        """Ordered ends with a part in the support; exact outcomes as the inner likelihood."""
        check_bounds(y)
        lower, upper, _ = y.unbind(-1)
        exact = lower == upper
        fill = next((v for v in (0.5, 1.0, *lower[exact][:1].tolist()) if self._takes(v, y)), None)
        if fill is None:
            self.likelihood.check(lower[exact])
        else:
            self.likelihood.check(torch.where(exact, lower, fill))
        likelihood = self._example(y)
        ends = f"({likelihood.lower}, {likelihood.upper})"
        words = f"{self.likelihood.name} outcomes lie in {ends}: an interval must meet it"
        advice = "Repair the row, or choose a likelihood whose support is wider."
        refuse_where(~exact & (lower >= likelihood.upper), lower, words, advice)
        below = (
            upper < likelihood.lower
            if self._mass_at_lower(likelihood)
            else upper <= likelihood.lower
        )
        refuse_where(~exact & below, upper, words, advice)

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Units and floors of the likelihood inside, from one finite number of each row."""
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
        self.likelihood.observe(*self._complete(y, weight))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The maximum-likelihood constant, from that of the rows taken as observed."""
        shift, scale = self.likelihood.start(*self._complete(y, expand_weight(weight, y[..., 0])))
        if bool(((y[..., 0] == y[..., 1]) & (y[..., 2] == -math.inf)).all()):
            return shift, scale
        return fit_constant(self, y, weight, shift, scale), scale

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The negative log-likelihood; every branch gets harmless numbers on rows of another."""
        require_same_shape(self.name, raw, y, event=(3,))
        lower, upper, entry = y.to(raw.dtype).unbind(-1)
        exact = lower == upper
        if none(~exact):
            total = self.likelihood.loss(raw, lower)
        else:
            total = minus_log_mass(self.likelihood, raw, torch.maximum(lower, entry), upper, ~exact)
        if not (none(exact) or none(~exact)):
            own = torch.where(exact.unsqueeze(-1), raw, 0.0)
            fill = 1.0 if self.likelihood.distribution(own).discrete else 0.5
            total = torch.where(
                exact, self.likelihood.loss(own, torch.where(exact, lower, fill)), total
            )
        late = entry > -math.inf
        if not none(late):
            total = total - minus_log_survival(self.likelihood, raw, entry, late)
        return total

    def distribution(self, raw: Tensor) -> Distribution:
        """That of the likelihood inside: of the outcome itself, censored or not."""
        return self.likelihood.distribution(raw)

    def given(self, raw: Tensor, y: Tensor) -> tuple[Distribution, Tensor]:
        """The likelihood given Y > entry, and the outcome: nan where it is not known exactly."""
        distribution, entry = self.likelihood.distribution(raw), y[..., 2]
        if bool((entry > -math.inf).any()):
            distribution = TruncatedDistribution(distribution, lower=entry)
        return distribution, torch.where(y[..., 0] == y[..., 1], y[..., 0], math.nan)

    def point(self, raw: Tensor) -> Tensor:
        """As the likelihood inside."""
        return self.likelihood.point(raw)

    def _mass_at_lower(self, distribution: Distribution) -> bool:
        if distribution.lower == -math.inf:
            return False
        return bool(
            (distribution.cdf(torch.full_like(distribution.mean, distribution.lower)) > 0).any()
        )

    def _example(self, y: Tensor) -> Distribution:
        """The likelihood at raw 0, for its support."""
        shape = (*y.shape[1:-1], self.likelihood.outputs(TargetSpec(tuple(y.shape[1:-1]))))
        with torch.no_grad():
            return self.likelihood.distribution(
                torch.zeros(1, *shape, dtype=y.dtype, device=y.device)
            )

    def _takes(self, value: float, y: Tensor) -> bool:
        try:
            self.likelihood.check(torch.full_like(y[:1, ..., 0], value))
        except DataError:
            return False
        return True

    def _complete(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Each row by one finite number inside its interval and the support, or weight 0."""
        lower, upper, _ = y.unbind(-1)
        distribution = self._example(y)
        low = lower.clamp(min=distribution.lower) if distribution.lower > -math.inf else lower
        middle = upper.floor() if distribution.discrete else low + (upper - low) / 2
        value = torch.where(upper == math.inf, low, torch.where(low == -math.inf, upper, middle))
        value = torch.where(lower == upper, lower, value)
        if distribution.discrete:
            value = value.ceil()
        with torch.no_grad():
            possible = value.isfinite() & (distribution.log_prob(value) > -math.inf)
        weight = torch.where(possible, weight, 0.0)
        if not bool((weight > 0).any(0).all()):
            raise DataError("no row holds a number inside the support: nothing can be estimated.")
        centre = torch.where(weight > 0, value, math.nan).nanmedian(0).values
        return torch.where(weight > 0, value, centre), weight
