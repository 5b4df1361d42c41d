"""What a likelihood says by itself about a row, computed from its raw numbers."""

import torch
from torch import Tensor

from ansatz.likelihoods import CurveDistribution, Distribution, Likelihood


def likelihood_parameters(likelihood: Likelihood, raw: Tensor) -> dict[str, Tensor]:
    """The parameters of the predictive distribution under the names that its distribution gives them.

    Args:
        likelihood: the likelihood.
        raw: ``(N, ..., P)``.
    """
    if not likelihood.has_distribution:
        return {}
    distribution = likelihood.distribution(raw)
    if isinstance(distribution, CurveDistribution):  # its survival curve says it all
        return {}
    found = _tensors(distribution, "likelihood")
    return {k: v if v.ndim else v.expand(raw.shape[:-1]) for k, v in found.items()}


def _tensors(distribution: Distribution, prefix: str) -> dict[str, Tensor]:
    """The tensors that a distribution was made of; one inside another adds its name."""
    found: dict[str, Tensor] = {}
    for name, value in vars(distribution).items():
        words = f"{prefix}_{name.lstrip('_')}"
        if isinstance(value, Tensor):
            found[words] = value
        elif isinstance(value, Distribution):
            found |= _tensors(value, prefix if name == "base" else words)  # base: stretched
        elif isinstance(value, list) and value and isinstance(value[0], Distribution):
            parts = [_tensors(part, prefix) for part in value]  # members: an axis behind the rows
            found |= {key: torch.stack([part[key] for part in parts], 1) for key in parts[0]}
    return found


def curve_times(likelihood: Likelihood) -> list[float]:
    """The times of the survival curves that a likelihood without a formula gives; empty for others."""
    times = getattr(likelihood, "baseline_times", getattr(likelihood, "cuts", None))
    return [] if times is None else times.tolist()
