"""Where a mixture of one likelihood is, or is served as, one distribution of that likelihood."""

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ansatz.likelihoods.bernoulli import Bernoulli
from ansatz.likelihoods.bessel import concentration
from ansatz.likelihoods.categorical import Categorical
from ansatz.likelihoods.cox import Cox
from ansatz.likelihoods.cross_entropy import CrossEntropy
from ansatz.likelihoods.dice import Dice
from ansatz.likelihoods.discrete_hazard import DiscreteHazard
from ansatz.likelihoods.dispersion import softplus_inverse
from ansatz.likelihoods.focal import Focal
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.likelihoods.plackett_luce import PlackettLuce
from ansatz.likelihoods.quantiles import Quantiles
from ansatz.likelihoods.sum import Sum
from ansatz.likelihoods.von_mises import VonMises


def merges(likelihood: Likelihood) -> bool:
    """Whether :func:`merge` knows what several members of this likelihood are together."""
    kept = (Bernoulli, Categorical, Cox, DiscreteHazard, PlackettLuce, VonMises)
    return not likelihood.has_distribution or isinstance(likelihood, kept)


def merge(likelihood: Likelihood, raw: Tensor, weights: Tensor) -> Tensor:
    """The raw numbers of the members' mixture, for likelihoods that stay what they are.

    Exactly the mixture: classes (the mean of the probabilities, those of cells by ``dice`` and
    ``sum`` too) and discrete hazards (the mean of the survival curves and incidences at the cuts).
    A convention: log-risks of ``cox``, scores of ``plackett_luce`` and predictions of losses are
    averaged, quantiles too; ``focal`` averages its q, from which its probabilities follow;
    ``von_mises`` has the mixture's mean direction and length.

    Args:
        likelihood: for which :func:`merges` holds.
        raw: ``(S, ..., P)``.
        weights: ``(S,)``, adding up to 1.
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
