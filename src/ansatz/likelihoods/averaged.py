"""Several fitted laws of one kind as one: what an ensemble is judged and served by."""

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

# Laws of the whole line: their mixture is stretched about its mean.
STRETCHED = ("normal", "laplace", "student_t", "normal_mixture")


class Averaged(Likelihood):
    r"""The mixture of S members' laws, each with the shapes that it learned itself.

    .. math:: p(y \mid x) = \sum_s \pi_s\, p_s(y \mid r_s(x))

    It is a likelihood, so that everything that judges or serves one model does so for an ensemble;
    it is not trained. One factor recalibrates it as a whole: the mixture of a law of the whole line
    is stretched about its mean, the dispersions of other laws are multiplied.

    Args:
        laws: one per member, fitted.
        log_weights: ``(S,)``; equal weights if not given.
        factor: 1 leaves the mixture as it is.

    Shapes:
        - raw: ``(N, S, ..., P)``: the members' axis follows that of the rows.
        - y: as for the law.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.likelihoods.averaged import Averaged
        >>> law = Averaged([Normal(dispersion=1.0), Normal(dispersion=1.0)])
        >>> law.distribution(torch.tensor([[[-1.0], [1.0]]])).variance
        tensor([2.])
    """

    def __init__(
        self,
        laws: Sequence[Likelihood],
        log_weights: Tensor | None = None,
        *,
        factor: float = 1.0,
    ) -> None:
        super().__init__()
        self.laws = nn.ModuleList(copy.deepcopy(law) for law in laws)
        weights = torch.zeros(len(laws)) if log_weights is None else log_weights
        self.log_weights = torch.log_softmax(weights.double(), 0)
        self.factor = float(factor)
        law = self.law
        own = vars(self)
        own["name"], own["options"], own["link_name"] = law.name, law.options, law.link_name
        own["is_law"], own["event_ndim"] = law.is_law, law.event_ndim
        if law.name not in STRETCHED:
            for part in self.laws.modules():
                if isinstance(part, PositiveHead):
                    part.factor = self.factor

    @property
    def law(self) -> Likelihood:
        """The first member's law, for what all have in common."""
        first = self.laws[0]
        assert isinstance(first, Likelihood)
        return first

    def __getattr__(self, name: str) -> Any:
        """What only some laws have (``causes``, ``classes``) is the same for all members."""
        if name in ("causes", "classes", "cuts", "levels"):
            return getattr(self.law, name)
        return super().__getattr__(name)

    def outputs(self, target: TargetSpec) -> int:
        """Those of one member."""
        return self.law.outputs(target)

    def check(self, y: Any) -> None:
        """The support is the members'."""
        self.law.check(y)

    def _members(self, raw: Tensor) -> list[tuple[Any, Tensor]]:
        return list(zip(self.laws, raw.unbind(1), strict=True))

    def distribution(self, raw: Tensor, **given: Any) -> Distribution:
        """The mixture, stretched by the factor where the law is one of the whole line."""
        return self._mix([law.distribution(part, **given) for law, part in self._members(raw)])

    def given(self, raw: Tensor, y: Any) -> tuple[Distribution, Tensor]:
        """The mixture of what the members say of each outcome."""
        pairs = [law.given(part, y) for law, part in self._members(raw)]
        return self._mix([distribution for distribution, _ in pairs]), pairs[0][1]

    def _mix(self, parts: list[Distribution]) -> Distribution:
        mixed: Distribution
        if type(self.law) is Normal:  # with closed forms of its quantiles and its crps
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
        stretched = self.law.name in STRETCHED and self.factor != 1
        return Scaled(mixed, self.factor) if stretched else mixed

    def loss(self, raw: Tensor, y: Any) -> Tensor:
        """Minus the log of the members' mean likelihood."""
        if self.law.name in STRETCHED and self.factor != 1:
            return -self.distribution(raw).log_prob(y)
        losses = torch.stack([law.loss(part, y) for law, part in self._members(raw)])
        weights = self.log_weights.to(losses).reshape(-1, *(1,) * (losses.ndim - 1))
        return -torch.logsumexp(weights - losses, 0)

    def probs(self, raw: Tensor) -> Tensor:
        """The mean of the members' class probabilities, ``(..., K)``."""
        parts = torch.stack([law.probs(part) for law, part in self._members(raw)], -1)
        mean: Tensor = (parts * self.log_weights.exp().to(parts)).sum(-1)
        return mean

    def point(self, raw: Tensor) -> Tensor:
        """The mean of the members' points; of classes the most probable one."""
        if hasattr(type(self.law), "probs"):
            return self.probs(raw).argmax(-1)
        parts = torch.stack([law.point(part) for law, part in self._members(raw)], -1)
        return (parts * self.log_weights.exp().to(parts)).sum(-1)
