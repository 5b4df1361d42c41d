"""The mean square of a signal through the layers of random networks."""

import torch
from torch import Tensor

from ansatz.layers import activations, initializers


def mean_squares(
    init: str,
    *,
    networks: int,
    depth: int,
    width: int,
    generator: torch.Generator,
    activation: str = "relu",
    gain: float = 1.0,
) -> Tensor:
    """|h|² / width before the first layer (1) and after each: ``(networks, depth + 1)``."""
    fill, phi = initializers.get(init), activations.create(activation)
    signal = torch.randn(networks, width, dtype=torch.float64, generator=generator)
    signal *= width**0.5 / signal.norm(dim=1, keepdim=True)
    weights = torch.empty(networks, width, width, dtype=torch.float64)
    found = [torch.ones(networks, dtype=torch.float64)]
    for _ in range(depth):
        for weight in weights:
            fill(weight, generator=generator, gain=gain)
        signal = phi(torch.einsum("sij,sj->si", weights, signal))
        found.append((signal**2).mean(1))
    return torch.stack(found, 1)
