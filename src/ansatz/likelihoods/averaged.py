"""Several fitted likelihoods of one kind as one: what an ensemble is evaluated and served by."""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.likelihoods.dispersion import PositiveHead
from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.likelihoods.mixture import ClassMixture, Mixture, VectorMixture
from ansatz.likelihoods.normal import Normal
from ansatz.likelihoods.normal_mixture_distribution import NormalMixtureDistribution
from ansatz.likelihoods.ordinal import OrdinalDistribution
from ansatz.likelihoods.scaled import Scaled
from ansatz.likelihoods.vector_distribution import VectorDistribution
from ansatz.spec import TargetSpec

# Likelihoods of the whole line: their mixture is stretched about its mean.
STRETCHED = ("normal", "laplace", "student_t", "normal_mixture")


class Averaged(Likelihood):
    r"""The mixture of S members' likelihoods, each with the shapes that it learned itself.

    .. math:: p(y \mid x) = \sum_s \pi_s\, p_s(y \mid r_s(x))

    It is a likelihood, so that everything that evaluates or serves one model does so for an
    ensemble; it is not trained. One factor recalibrates it as a whole: the mixture of a likelihood
    of the whole line is stretched about its mean, the dispersions of other likelihoods are
    multiplied.

    Args:
        likelihoods: one per member, fitted.
        log_weights: ``(S,)``; equal weights if not given.
        factor: 1 leaves the mixture as it is.

    Shapes:
        - raw: ``(N, S, ..., P)``: the members' axis follows that of the rows.
        - y: as for the likelihood.
    """

    def __init__(
        self,
        candidates: Sequence[Likelihood],
        log_weights: Tensor | None = None,
        *,
        factor: float = 1.0,
    ) -> None:
        super().__init__()
        self.likelihoods = nn.ModuleList(copy.deepcopy(likelihood) for likelihood in candidates)
        weights = torch.zeros(len(candidates)) if log_weights is None else log_weights
        self.log_weights = torch.log_softmax(weights.double(), 0)
        self.factor = float(factor)
        likelihood = self.likelihood
        own = vars(self)
        own["name"], own["options"], own["link_name"] = (
            likelihood.name,
            likelihood.options,
            likelihood.link_name,
        )
        own["has_distribution"], own["event_ndim"] = (
            likelihood.has_distribution,
            likelihood.event_ndim,
        )
        if likelihood.name not in STRETCHED:
            for part in self.likelihoods.modules():
                if isinstance(part, PositiveHead):
                    part.factor = self.factor

    @property
    def likelihood(self) -> Likelihood:
        """The first member's likelihood, for what all have in common."""
        first = self.likelihoods[0]
        assert isinstance(first, Likelihood)
        return first

    def __getattr__(self, name: str) -> Any:
        """What only some likelihoods have (``causes``, ``classes``) is the same for all members."""
        if name in ("causes", "classes", "cuts", "levels"):
            return getattr(self.likelihood, name)
        return super().__getattr__(name)

    def outputs(self, target: TargetSpec) -> int:
        """Those of one member."""
        return self.likelihood.outputs(target)

    def check(self, y: Any) -> None:
        """The support is the members'."""
        self.likelihood.check(y)

    def _members(self, raw: Tensor) -> list[tuple[Any, Tensor]]:
        return list(zip(self.likelihoods, raw.unbind(1), strict=True))

    def distribution(self, raw: Tensor, **given: Any) -> Distribution:
        """The mixture, stretched by the factor where the likelihood is one of the whole line."""
        return self._mix(
            [likelihood.distribution(part, **given) for likelihood, part in self._members(raw)]
        )

    def given(self, raw: Tensor, y: Any) -> tuple[Distribution, Tensor]:
        """The mixture of what the members say of each outcome."""
        pairs = [likelihood.given(part, y) for likelihood, part in self._members(raw)]
        return self._mix([distribution for distribution, _ in pairs]), pairs[0][1]

    def _mix(self, parts: list[Distribution]) -> Distribution:
        mixed: Distribution
        if type(self.likelihood) is Normal:  # with closed forms of its quantiles and its crps
            mixed = NormalMixtureDistribution(
                self.log_weights.to(parts[0].mean),
                torch.stack([part.mean for part in parts], -1),
                torch.stack([part.stddev for part in parts], -1),
            )
        elif isinstance(parts[0], VectorDistribution):
            mixed = VectorMixture(parts, self.log_weights)
        elif isinstance(parts[0], OrdinalDistribution):
            mixed = ClassMixture(parts, self.log_weights)
        else:
            mixed = Mixture(parts, self.log_weights)
        stretched = self.likelihood.name in STRETCHED and self.factor != 1
        return Scaled(mixed, self.factor) if stretched else mixed

    def loss(self, raw: Tensor, y: Any) -> Tensor:
        """Minus the log of the members' mean likelihood."""
        if self.likelihood.name in STRETCHED and self.factor != 1:
            return -self.distribution(raw).log_prob(y)
        losses = torch.stack([likelihood.loss(part, y) for likelihood, part in self._members(raw)])
        weights = self.log_weights.to(losses).reshape(-1, *(1,) * (losses.ndim - 1))
        return -torch.logsumexp(weights - losses, 0)

    def probs(self, raw: Tensor) -> Tensor:
        """The mean of the members' class probabilities, ``(..., K)``."""
        parts = torch.stack([likelihood.probs(part) for likelihood, part in self._members(raw)], -1)
        mean: Tensor = (parts * self.log_weights.exp().to(parts)).sum(-1)
        return mean

    def point(self, raw: Tensor) -> Tensor:
        """The mean of the members' points; of classes the most probable one."""
        if hasattr(type(self.likelihood), "probs"):
            return self.probs(raw).argmax(-1)
        parts = torch.stack([likelihood.point(part) for likelihood, part in self._members(raw)], -1)
        return (parts * self.log_weights.exp().to(parts)).sum(-1)
