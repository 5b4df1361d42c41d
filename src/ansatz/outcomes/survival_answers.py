"""Medians and curves of survival times as operations that can be traced."""

import math

import torch
from torch import Tensor

from ansatz.likelihoods import CurveDistribution, DiscreteHazard, Likelihood

CURVES = {  # outputs of an exported graph
    "survival": "P(T > t | x) at the times in 'times'",
    "incidence": "P(T <= t, event of this cause | x), (N, causes, times)",
}
CURVE_INTERVAL = (
    "the times at which the output 'survival' falls below (1 + level) / 2 and (1 - level) / 2; its "
    "times are in 'times'."
)


def survival_answers(law: Likelihood, raw: Tensor) -> dict[str, Tensor]:
    """Medians; of laws without a formula the curves at their times, too."""
    distribution = law.distribution(raw)
    if not isinstance(distribution, CurveDistribution):
        return {"prediction": distribution.median}
    found = {"survival": distribution.survival}
    if isinstance(law, DiscreteHazard) and law.causes > 1:
        by_cause = [law.incidence(raw, law.cuts, cause) for cause in range(1, law.causes + 1)]
        return {**found, "incidence": torch.stack(by_cause, 1)}  # (N, causes, T)
    return {"prediction": curve_median(distribution), **found}


def curve_median(curve: CurveDistribution) -> Tensor:
    """The first time at which survival is one half, without a search in a sorted list."""
    hazard, knots, slope = curve.hazard, curve.knots, curve.slope  # (N, T + 1), (T + 1,)
    half = torch.tensor(math.log(2), dtype=hazard.dtype)
    place = (hazard < half).sum(-1)  # of the first knot with H >= log 2
    if curve.interpolation == "step":
        return torch.cat([knots, knots.new_full((1,), math.inf)])[place]
    before = (place - 1).clamp(min=0)
    at = before.unsqueeze(-1)
    level, rise = hazard.gather(-1, at).squeeze(-1), slope.gather(-1, at).squeeze(-1)
    return knots[before] + (half - level).clamp(min=0) / rise
