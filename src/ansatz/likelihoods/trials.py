"""Outcomes that are pairs: successes and trials."""

import torch
from torch import Tensor

from ansatz.errors import DataError
from ansatz.likelihoods.likelihood import expand_weight, refuse_where, weighted_mean


def check_trials(y: Tensor, likelihood: str) -> None:
    """Refuses what is no pair (successes, trials) with 0 <= successes <= trials and trials >= 1."""
    if y.ndim < 2 or y.shape[-1] != 2:
        raise DataError(
            f"{likelihood} outcomes are pairs (successes, trials), y of shape (N, 2), got "
            f"{tuple(y.shape)}. For 0 and 1 use bernoulli; for proportions without their number "
            "of trials use beta."
        )
    whole = y.isfinite() & (y >= 0) & (y == y.round())
    refuse_where(
        ~whole, y, f"{likelihood} outcomes must be whole numbers >= 0", "Repair or drop the row."
    )
    none = torch.zeros_like(y, dtype=torch.bool)
    none[..., 1] = y[..., 1] < 1
    refuse_where(
        none, y, f"{likelihood} trials must be at least 1", "A row without trials says nothing."
    )
    many = torch.zeros_like(y, dtype=torch.bool)
    many[..., 0] = y[..., 0] > y[..., 1]
    advice = "The pair is (successes, trials), not (successes, failures)."
    refuse_where(many, y, f"{likelihood} successes must be at most the trials", advice)


def pooled_probability(y: Tensor, weight: Tensor) -> Tensor:
    """Successes over trials of all rows; half a one is added where it would be 0 or 1."""
    k, n = y.to(weight.dtype).unbind(-1)
    successes, trials = weighted_mean(k, weight), weighted_mean(n, weight)
    half = 0.5 / (trials * expand_weight(weight, k).sum(0) + 1)
    p = successes / trials
    return torch.where(p > 0, torch.where(p < 1, p, 1 - half), half)


def as_trials(trials: Tensor | int, raw: Tensor) -> Tensor:
    """A number of trials as a tensor like ``raw``."""
    return torch.as_tensor(trials, dtype=raw.dtype, device=raw.device)
