"""Any law of numbers of which only a part can be seen."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.likelihoods.constant_fit import fit_constant
from ansatz.likelihoods.inner_law import inner_law
from ansatz.likelihoods.interval_mass import minus_log_mass
from ansatz.likelihoods.likelihood import Likelihood, refuse_where, require_same_shape
from ansatz.likelihoods.truncated_distribution import TruncatedDistribution
from ansatz.spec import TargetSpec


class Truncated(Likelihood):
    r"""A law restricted to lower < Y <= upper: outcomes outside are never recorded.

    .. math:: -\log p(y) + \log(F(u) - F(l))

    Not to be taken for censoring, where one is told of the outcomes outside: incomes of those who
    pay tax are truncated, counts from 1 upwards are ``Truncated("poisson", lower=0)``. The raw
    numbers, links and floors are those of the law inside, and describe what could be seen without
    the bounds; ``distribution`` and ``predict`` describe what will be recorded.

    Args:
        law: a registry name, or a likelihood of single numbers.
        lower: l, excluded; default: none.
        upper: u, included; default: none.
        options: of the law given by name.

    Shapes:
        - raw: as the law inside.
        - y: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Truncated
        >>> law = Truncated("poisson", lower=0)
        >>> law.loss(torch.zeros(1, 1), torch.ones(1)).exp()  # (1 - 1/e) / (1/e) = e - 1
        tensor([1.7183])

    References:
        Johnson, Kotz and Balakrishnan (1994), Continuous Univariate Distributions, section 13.10.1.
    """

    name = "truncated"

    def __init__(
        self,
        law: str | Likelihood = "normal",
        *,
        lower: float | None = None,
        upper: float | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.law, remake = inner_law(self.name, law, options)
        self.__dict__["link_name"] = self.law.link_name  # of this law, not of the class
        self.options = {**remake, "lower": lower, "upper": upper}
        self.lower = -math.inf if lower is None else float(lower)
        self.upper = math.inf if upper is None else float(upper)
        if not self.lower < self.upper:
            raise UsageError(f"truncated needs lower < upper, got {lower} and {upper}.")

    def outputs(self, target: TargetSpec) -> int:
        """As the law inside."""
        return self.law.outputs(target)

    def check(self, y: Tensor) -> None:
        """Within the bounds and the support of the law inside."""
        self.law.check(y)
        bad = ~((y > self.lower) & (y <= self.upper))
        advice = "Outcomes outside the bounds are never recorded: drop the row or move the bounds."
        refuse_where(bad, y, f"truncated outcomes must be in ({self.lower}, {self.upper}]", advice)

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Units and floors of the law inside."""
        self.law.observe(y, weight)

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The maximum-likelihood constant, from that of the law without bounds."""
        shift, scale = self.law.start(y, weight)
        return fit_constant(self, y, weight, shift, scale), scale

    def loosen(self) -> None:
        """As the law inside."""
        self.law.loosen()

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The negative log-likelihood."""
        require_same_shape(self.name, raw, y)
        ends = (torch.full_like(raw[..., 0], end) for end in (self.lower, self.upper))
        return self.law.loss(raw, y) - minus_log_mass(self.law, raw, *ends)

    def distribution(self, raw: Tensor) -> TruncatedDistribution:
        """The law inside given that the outcome lies within the bounds."""
        return TruncatedDistribution(self.law.distribution(raw), self.lower, self.upper)
