"""Predicted energies and forces, and their errors."""

import torch
from torch import Tensor

from ansatz.fitting.contracts.inference import Predictive
from ansatz.likelihoods.energy_forces import beside


def mean_of(predictive: Predictive) -> Tensor:
    """Energy and forces, ``(B, 1 + 3 A)``; of an ensemble the means of its members."""
    with torch.no_grad():
        found: Tensor = predictive.likelihood.distribution(predictive.raw).mean
        return found


def errors(predictive: Predictive, y: Tensor) -> tuple[Tensor, Tensor]:
    """Errors of the energy of an atom, ``(B,)``, and of forces, ``(B, 3 A)``; nan where unknown."""
    raw = predictive.raw if predictive.raw.ndim == 2 else predictive.raw[:, 0]
    rest = mean_of(predictive) - beside(y, raw)
    return rest[:, 0] / raw[:, 1].clamp(min=1), rest[:, 1:]


def combined(parts: list[tuple[float, Predictive]]) -> tuple[Tensor, Tensor]:
    """The mean of the raw numbers of an ensemble, and how far its members stray from it."""
    raws = torch.stack([part.raw for _, part in parts])
    share = torch.tensor([weight for weight, _ in parts], dtype=raws.dtype)
    share = (share / share.sum()).reshape(-1, 1, 1)
    mean = (share * raws).sum(0)
    return mean, (share * (raws - mean).square()).sum(0).sqrt()
