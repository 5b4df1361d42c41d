"""Points that stand for a normal distribution."""

import numpy as np
import torch
from torch import Tensor

MOST = 1_000  # dimensions that low-discrepancy points fill


def normal_points(samples: int, outputs: int, seed: int) -> Tensor:
    """Standard normal numbers ``(S, Q)`` that fill the space evenly, with mean 0 and variance 1."""
    if outputs <= MOST:
        engine = torch.quasirandom.SobolEngine(outputs, scramble=True, seed=seed)
        uniform = engine.draw(samples, dtype=torch.float64).clamp(1e-6, 1 - 1e-6)
        found: Tensor = torch.special.ndtri(uniform)
    else:
        source = torch.Generator().manual_seed(seed)
        found = torch.randn(samples, outputs, generator=source, dtype=torch.float64)
    found = found - found.mean(0)
    if samples < 2:
        return found
    return found / found.std(0, correction=0)


def normal_nodes(outputs: int, count: int = 32, samples: int = 128) -> tuple[Tensor, Tensor]:
    """Points ``(S, Q)`` and their weights ``(S,)``: Gauss-Hermite for one, even points for more."""
    if outputs == 1:
        nodes, shares = np.polynomial.hermite_e.hermegauss(count)
        return torch.from_numpy(nodes)[:, None], torch.from_numpy(shares / shares.sum())
    weights = torch.full((samples,), 1 / samples, dtype=torch.float64)
    return normal_points(samples, outputs, 0), weights


def root(covariance: Tensor) -> Tensor:
    """The symmetric root of covariances ``(..., Q, Q)``, which moves continuously with them."""
    if covariance.shape[-1] == 1:
        return covariance.clamp(min=0).sqrt()
    values, vectors = torch.linalg.eigh(covariance)
    found: Tensor = (vectors * values.clamp(min=0).sqrt().unsqueeze(-2)) @ vectors.mT
    return found
