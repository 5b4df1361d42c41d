"""Several fitted likelihoods of one kind as one: what evaluates and serves an ensemble."""

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.special import roots_genlaguerre
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from ansatz.likelihoods.bernoulli import Bernoulli
from ansatz.likelihoods.categorical import Categorical
from ansatz.likelihoods.cox import Cox
from ansatz.likelihoods.cross_entropy import CrossEntropy
from ansatz.likelihoods.dice import Dice
from ansatz.likelihoods.discrete_hazard import DiscreteHazard
from ansatz.likelihoods.dispersion import PositiveHead, softplus_inverse
from ansatz.likelihoods.distribution import Distribution, VectorDistribution
from ansatz.likelihoods.focal import Focal
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.likelihoods.mixture import ClassMixture, Mixture, VectorMixture
from ansatz.likelihoods.normal import Normal
from ansatz.likelihoods.normal_mixture_distribution import NormalMixtureDistribution
from ansatz.likelihoods.ordinal import OrdinalDistribution
from ansatz.likelihoods.plackett_luce import PlackettLuce
from ansatz.likelihoods.quantiles import Quantiles
from ansatz.likelihoods.special.von_mises import concentration
from ansatz.likelihoods.student_t import StudentTDistribution
from ansatz.likelihoods.sum import Sum
from ansatz.likelihoods.transformed import Scaled
from ansatz.likelihoods.von_mises import VonMises
from ansatz.spec import TargetSpec

# Likelihoods of the whole line: their mixture is stretched about its mean.
STRETCHED = ("normal", "laplace", "student_t", "normal_mixture")


class Averaged(Likelihood):
    r"""The mixture of S members' distributions, each with the shapes that it learned itself.

    .. math:: p(y \mid x) = \sum_s \pi_s\, p_s(y \mid r_s(x))

    It is a likelihood, so that everything that evaluates or serves one model does so for an
    ensemble; it is not trained. One factor recalibrates it as a whole: the mixture of a likelihood
    of the whole line is stretched about its mean, the dispersions of other likelihoods are
    multiplied. raw is ``(N, S, ..., P)``: the members' axis follows that of the rows.
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
        self.factor = 1.0
        likelihood = self.likelihood
        for name in ("name", "options", "link_name", "has_distribution", "event_ndim"):
            vars(self)[name] = getattr(likelihood, name)
        self.extra = max(_extra(each) for each in self.likelihoods)
        self.recalibrate(factor)

    def recalibrate(self, factor: float) -> None:
        """Sets the factor of recalibration."""
        ratio, self.factor = float(factor) / self.factor, float(factor)
        if self.likelihood.name not in STRETCHED and ratio != 1:
            for part in self.likelihoods.modules():
                if isinstance(part, PositiveHead):
                    part.factor *= ratio

    @property
    def likelihood(self) -> Likelihood:
        """The first member's likelihood, for what all have in common."""
        first = self.likelihoods[0]
        assert isinstance(first, Likelihood)
        return first

    def __getattr__(self, name: str) -> Any:
        """Attributes that only some likelihoods have, from the first member."""
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
        width = raw.shape[-1] - self.extra
        parts = zip(self.likelihoods, raw.unbind(1), strict=True)
        return [(each, part[..., : width + _extra(each)]) for each, part in parts]

    def distribution(self, raw: Tensor, **given: Any) -> Distribution:
        """The mixture, stretched by the factor where the likelihood is one of the whole line."""
        return self._mix(
            [likelihood.distribution(part, **given) for likelihood, part in self._members(raw)]
        )

    def given(self, raw: Tensor, y: Any) -> tuple[Distribution, Tensor]:
        """The mixture of the members' distributions of each outcome."""
        pairs = [likelihood.given(part, y) for likelihood, part in self._members(raw)]
        return self._mix([distribution for distribution, _ in pairs]), pairs[0][1]

    def _mix(self, parts: list[Distribution]) -> Distribution:
        mixed: Distribution
        if type(self.likelihood) is Normal:  # with closed forms of its quantiles and its crps
            mixed = _normal_mixture(parts, self.log_weights)
            weights = self.log_weights.exp().tolist()
            mixed.members = lambda: list(zip(weights, parts, strict=True))
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


def _extra(likelihood: Any) -> int:
    """The numbers of raw behind those that a likelihood of this kind usually takes."""
    return int(getattr(likelihood, "extra", 0))


def _normal_mixture(parts: list[Distribution], log_weights: Tensor) -> Distribution:
    """Normal distributions mixed; mixtures of them, as Student's t is one, are taken apart."""
    weights, means, sds = [], [], []
    for part, weight in zip(parts, log_weights.tolist(), strict=True):
        if isinstance(part, NormalMixtureDistribution):
            own, mean, sd = part.log_weights, part.means, part.sds
        elif isinstance(part, StudentTDistribution):
            ratios, shares = log_chi_ratios(float(part.nu.reshape(-1)[0]), 16)
            scale = part.scale.unsqueeze(-1)
            sd = scale * torch.from_numpy(ratios / 2).to(scale).exp()
            own, mean = torch.from_numpy(shares).to(scale).log(), part.location.unsqueeze(-1)
        else:
            mean, sd = part.mean.unsqueeze(-1), part.stddev.unsqueeze(-1)
            own = torch.zeros_like(mean)
        shape = torch.broadcast_shapes(mean.shape, sd.shape)
        weights.append((own + weight).to(sd).expand(shape))
        means.append(mean.expand(shape))
        sds.append(sd.expand(shape))
    return NormalMixtureDistribution(*(torch.cat(each, -1) for each in (weights, means, sds)))


def log_chi_ratios(df: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of log(df / chi-square).

    By the Gauss-Laguerre rule; with many degrees of freedom by the normal with the same moments.
    """
    if not math.isfinite(df):
        return np.zeros(1), np.ones(1)
    if df <= 300:
        nodes, weights = roots_genlaguerre(count, df / 2 - 1)
        return np.log(df / (2 * nodes)), weights / weights.sum()
    half = torch.tensor(df / 2, dtype=torch.float64)
    mean = float(half.log() - torch.digamma(half))
    nodes, weights = hermite(count)
    return mean + math.sqrt(float(torch.special.polygamma(1, half))) * nodes, weights


def hermite(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of a standard normal number."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


def merges(likelihood: Likelihood) -> bool:
    """Tests whether :func:`merge` can merge several members of this likelihood."""
    kept = (Bernoulli, Categorical, Cox, DiscreteHazard, PlackettLuce, VonMises)
    return not likelihood.has_distribution or isinstance(likelihood, kept)


def merge(likelihood: Likelihood, raw: Tensor, weights: Tensor) -> Tensor:
    """Merges the raw numbers of the members, for likelihoods whose mixture is of their kind.

    Exactly the mixture: classes (the mean of the probabilities, those of pixels by ``dice`` and
    ``sum`` too) and discrete hazards (the mean of the survival curves and incidences at the cuts).
    A convention: log-risks of ``cox``, scores of ``plackett_luce`` and predictions of losses are
    averaged, quantiles too; ``focal`` averages its q, from which its probabilities follow;
    ``von_mises`` has the mixture's mean direction and length.
    """
    weights = weights.to(raw).reshape(-1, *(1,) * (raw.ndim - 1))
    one_logit = isinstance(likelihood, Dice | Focal | Sum) and raw.shape[-1] == 1
    if isinstance(likelihood, Bernoulli) or one_logit:
        return _log_mean(logsigmoid(raw), weights) - _log_mean(logsigmoid(-raw), weights)
    if isinstance(likelihood, Categorical):
        merged = _log_mean(torch.log_softmax(likelihood.logits(raw), -1), weights)
        return (merged - merged[..., :1])[..., 1:] if likelihood.reference else merged
    if isinstance(likelihood, CrossEntropy):
        mean = _log_mean(torch.log_softmax(likelihood.unweighted(raw), -1), weights)
        return mean + likelihood.log_weights.to(mean)
    if isinstance(likelihood, Dice | Focal | Sum):
        return _log_mean(torch.log_softmax(raw, -1), weights)
    if isinstance(likelihood, DiscreteHazard):
        return _hazards(likelihood, raw, weights)
    if isinstance(likelihood, Quantiles):
        return _quantiles(likelihood, raw, weights)
    if isinstance(likelihood, VonMises):
        return _directions(likelihood, raw, weights)
    return (weights * raw).sum(0)


def _log_mean(log_values: Tensor, weights: Tensor) -> Tensor:
    return torch.logsumexp(log_values + weights.log(), 0)


def _hazards(likelihood: DiscreteHazard, raw: Tensor, weights: Tensor) -> Tensor:
    """Chances of each cause in each interval, weighted by who is still there in each member."""
    logits, together, hazard = likelihood._hazards(raw)  # (S, ..., J, K), (S, ..., J) twice
    before = hazard - hazard.cumsum(-1)  # log S at the start of each interval
    there = torch.log_softmax(before + weights.log(), 0)  # who is still there, by member
    log_none = _log_mean(there - hazard, torch.ones_like(weights))
    shares = logits - torch.logaddexp(together, torch.zeros_like(together)).unsqueeze(-1)
    log_cause = torch.logsumexp(shares + there.unsqueeze(-1), 0)
    merged = (log_cause - log_none.unsqueeze(-1)).flatten(-2)
    return torch.cat([merged, raw[0][..., merged.shape[-1] :]], -1)


def _quantiles(likelihood: Quantiles, raw: Tensor, weights: Tensor) -> Tensor:
    """The mean of each quantile, as a median and steps outward from it."""
    q = (weights * likelihood.quantiles(raw)).sum(0)
    gaps = q.diff(dim=-1) / likelihood.unit.value.to(q).unsqueeze(-1)
    steps = softplus_inverse(gaps.clamp(min=1e-300))
    up, down = steps[..., likelihood.middle :], steps[..., : likelihood.middle].flip(-1)
    return torch.cat([q[..., likelihood.middle : likelihood.middle + 1], up, down], -1)


def _directions(likelihood: VonMises, raw: Tensor, weights: Tensor) -> Tensor:
    """The natural parameters with the first moment of the mixture."""
    members = likelihood.distribution(raw)
    length = 1 - members.variance  # the mean resultant length of each member
    angle = members.mean
    moment = torch.stack([length * angle.cos(), length * angle.sin()], -1)
    moment = (weights * moment).sum(0)
    total = moment.norm(dim=-1, keepdim=True)
    kappa = concentration((1 - total).clamp(min=1e-12))
    return torch.where(total > 0, moment * (kappa / total.clamp(min=1e-300)), 0.0)
