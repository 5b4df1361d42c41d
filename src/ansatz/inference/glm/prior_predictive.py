"""What the priors say about outcomes before any are seen."""

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.inference.glm.target import LinearTarget
from ansatz.seeds import derive

Array = NDArray[np.float64]
DRAWS = 200
ROWS = 200


def prior_range(target: LinearTarget, seed: int) -> tuple[float, float, str] | None:
    """The middle 90 % of outcomes drawn from the priors, and what they are.

    None where a prior cannot be drawn from, or where outcomes are vectors or classes.
    """
    likelihood = target.model.likelihood
    if likelihood.event_ndim or target.model.target.classes:
        return None
    draw = torch.Generator().manual_seed(derive(seed, "prior predictive") % 2**63)
    theta = _draws(target, draw)
    if theta is None:
        return None
    step = max(1, len(target.rows.y) // ROWS)
    z = target.density.z(theta)[:, ::step]
    is_chance = likelihood.name == "bernoulli"
    found = []
    outputs = target.model.outputs
    with torch.no_grad():
        for one, own in zip(z, theta, strict=True):
            fitted = target.model.fitted(target.criterion, torch.from_numpy(own))
            law = fitted.distribution(torch.from_numpy(one[:, :outputs].copy()))
            found.append((law.mean if is_chance else law.sample((), generator=draw)).flatten())
    values = torch.cat(found).double().numpy()
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    low, high = np.quantile(values, [0.05, 0.95])
    return float(low), float(high), "probabilities" if is_chance else "outcomes"


def _draws(target: LinearTarget, draw: torch.Generator) -> Array | None:
    """Coordinates drawn from their priors, ``(S, D)``; None where one is flat."""
    of_groups = {place for e in target.effects for place in range(e.start + e.k, e.stop)}
    found = np.zeros((DRAWS, target.size))
    for k, each in enumerate(target.coordinates):
        if k in of_groups:
            noise = torch.randn(DRAWS, generator=draw, dtype=torch.float64).numpy()
            is_angle = any(e.start + e.k <= k < e.middle for e in target.effects)
            found[:, k] = 0.5 * noise if is_angle else noise
            continue
        if not each.prior.is_proper or not each.prior.is_of_numbers:
            return None
        value = each.prior.sample((DRAWS,), draw).numpy() / each.scale
        found[:, k] = each.range.coordinate(value)
    return found
