"""Any likelihood of numbers of which only a part can be seen."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.likelihoods.constant_fit import fit_constant
from ansatz.likelihoods.inner_likelihood import inner_likelihood
from ansatz.likelihoods.interval_mass import minus_log_mass
from ansatz.likelihoods.likelihood import Likelihood, refuse_where, require_same_shape
from ansatz.likelihoods.truncated_distribution import TruncatedDistribution
from ansatz.spec import TargetSpec


class Truncated(Likelihood):
    r"""A likelihood restricted to lower < Y <= upper: outcomes outside are never recorded.

    .. math:: -\log p(y) + \log(F(u) - F(l))

    Not to be taken for censoring, where one is told of the outcomes outside: incomes of those who
    pay tax are truncated, counts from 1 upwards are ``Truncated("poisson", lower=0)``. The raw
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
        self.likelihood, remake = inner_likelihood(self.name, likelihood, options)
        self.__dict__["link_name"] = (
            self.likelihood.link_name
        )  # of this likelihood, not of the class
        self.options = {**remake, "lower": lower, "upper": upper}
        self.lower = -math.inf if lower is None else float(lower)
        self.upper = math.inf if upper is None else float(upper)
        if not self.lower < self.upper:
            raise UsageError(f"truncated needs lower < upper, got {lower} and {upper}.")

    def outputs(self, target: TargetSpec) -> int:
        """As the likelihood inside."""
        return self.likelihood.outputs(target)

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

    def relax_shapes(self) -> None:
        """As the likelihood inside."""
        self.likelihood.relax_shapes()

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The negative log-likelihood."""
        require_same_shape(self.name, raw, y)
        ends = (torch.full_like(raw[..., 0], end) for end in (self.lower, self.upper))
        return self.likelihood.loss(raw, y) - minus_log_mass(self.likelihood, raw, *ends)

    def distribution(self, raw: Tensor) -> TruncatedDistribution:
        """The likelihood inside given that the outcome lies within the bounds."""
        return TruncatedDistribution(self.likelihood.distribution(raw), self.lower, self.upper)
