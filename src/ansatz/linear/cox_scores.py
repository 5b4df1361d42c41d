"""What each row adds to the score of a Cox model."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ansatz.likelihoods.risk_sets import RiskSets

if TYPE_CHECKING:
    from ansatz.linear.cox import PartialLikelihood


def score_residuals(partial: "PartialLikelihood", theta: Tensor) -> Tensor:
    r"""The score residuals :math:`w_i \int (x_i - \bar x(t))\, dM_i(t)`, ``(N, Q)``.

    They add up to the gradient of the log partial likelihood. With L tied deaths at a time,
    Efron's term takes the l-th of them from a risk set in which each of the dead counts
    :math:`1 - l/L`; L is the weight that dies there, rounded to a whole number.

    Args:
        partial: columns, outcomes and weights.
        theta: ``(Q,)`` coefficients.

    References:
        Therneau and Grambsch (2000), Modeling Survival Data, section 4.6 and appendix A.
    """
    x, weight = partial.x, partial.weight
    time, event, entry = partial.y.unbind(1)
    eta = partial.linear(theta)[:, 0]
    if partial.offset is not None:
        eta = eta + partial.offset
    sets = RiskSets.of(time, event, entry, weight)
    value = eta + weight.log()
    peak = value.max()
    others, dead = ((log_sum - peak).exp() for log_sum in sets.log_sums(value))  # (K,)
    mean_others, mean_dead = sets.means(value, x)  # (K, Q)
    steps = torch.ones(len(sets.times), dtype=torch.long)
    if partial.ties == "efron":
        steps = sets.weight.round().clamp(min=1).long()
    k = torch.arange(len(sets.times)).repeat_interleave(steps)  # one entry per death and time
    before = steps.cumsum(0) - steps
    share = (torch.arange(len(k)) - before[k]).double() / steps[k]  # l / L
    left = (1 - share) * dead[k]
    total = others[k] + left
    mean = (others[k].unsqueeze(1) * mean_others[k] + left.unsqueeze(1) * mean_dead[k]) / (
        total.unsqueeze(1)
    )
    hazard = sets.weight[k] / steps[k] / total  # at the peak's risk

    def by_time(terms: Tensor) -> Tensor:
        return terms.new_zeros(len(sets.times), *terms.shape[1:]).index_add(0, k, terms)

    def during(terms: Tensor) -> Tensor:
        """Sums over the event times that a row is at risk at, its own left out."""
        running = torch.cat([torch.zeros_like(terms[:1]), terms.cumsum(0)])
        return running[sets.last.maximum(sets.first)] - running[sets.first]

    risk = (value - peak).exp()
    result = risk.unsqueeze(1) * (
        during(by_time(hazard.unsqueeze(1) * mean)) - x * during(by_time(hazard)).unsqueeze(1)
    )
    i, own = sets.events, sets.place
    dying = hazard * (1 - share)
    pull = by_time(dying.unsqueeze(1) * mean)[own] - x[i] * by_time(dying)[own].unsqueeze(1)
    centre = by_time(mean / steps[k].unsqueeze(1))[own]
    mine = weight[i].unsqueeze(1) * (x[i] - centre) + risk[i].unsqueeze(1) * pull
    return result.index_add(0, i, mine)
