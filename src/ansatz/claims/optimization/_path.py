"""The path of an optimiser on a function of one vector."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

Rule = Callable[[Sequence[Tensor]], torch.optim.Optimizer]


def follow(loss: Callable[[Tensor], Tensor], start: Tensor, rule: Rule, steps: int) -> Tensor:
    """Follows ``rule`` from ``start``: the iterates ``(steps + 1, D)``, the start first."""
    theta = nn.Parameter(start.clone())
    optimizer, path = rule([theta]), [start.clone()]
    for _ in range(steps):
        optimizer.zero_grad()
        loss(theta).backward()
        optimizer.step()
        path.append(theta.detach().clone())
    return torch.stack(path)


def descent(rate: float) -> Rule:
    """Plain gradient descent."""
    return lambda parameters: torch.optim.SGD(parameters, lr=rate)


def spectrum(condition: float, size: int) -> Tensor:
    """Curvatures from 1 / condition to 1, evenly spaced in their logarithm."""
    return torch.logspace(0, 1, size, base=1 / condition, dtype=torch.float64).flip(0)


def rotation(size: int, generator: torch.Generator) -> Tensor:
    """A random orthogonal matrix."""
    normal = torch.randn(size, size, dtype=torch.float64, generator=generator)
    return torch.linalg.qr(normal)[0]
