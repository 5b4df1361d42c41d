"""Draws from the von Mises law."""

import math
from typing import Any

import torch
from torch import Tensor

_ROUNDS = 200  # at least 65 % are accepted in each: 0.35^200 is nothing


def best_fisher(kappa: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Angles in [-pi, pi] around a mean direction 0, one per concentration.

    Rejection from a wrapped Cauchy law, in double precision. Below 1e-8 the law is uniform to all
    digits that the algorithm could give, and beyond 1e8 normal with variance 1 / kappa. A kappa
    that is nan gives nan: the number of rounds is limited, so that nothing hangs.

    Args:
        kappa: any shape, >= 0.
        generator: whose numbers are used; torch's own by default.

    Example:
        >>> import torch
        >>> best_fisher(torch.tensor([0.0, 1e20]), torch.Generator().manual_seed(0))[1].abs() < 1e-8
        tensor(True)

    References:
        Best and Fisher (1979), Efficient simulation of the von Mises distribution.
        https://doi.org/10.2307/2346732
    """
    k = kappa.double()
    options: dict[str, Any] = {"generator": generator, "dtype": k.dtype, "device": k.device}
    uniform = math.pi * (2 * torch.rand(k.shape, **options) - 1)
    normal = torch.randn(k.shape, **options) / k.clamp(min=1e8).sqrt()
    angle = torch.where(k > 1e8, normal, uniform)
    pending = ~((k > 1e8) | (k < 1e-8))
    angle = torch.where(pending, math.nan, angle)
    where = pending.reshape(-1).nonzero().squeeze(-1)
    flat, k = angle.reshape(-1).clone(), k.reshape(-1)[where]
    r = _proposal(k)
    for _ in range(_ROUNDS):
        if not len(where):
            break
        u = torch.rand((3, len(where)), **options)
        z = torch.cos(math.pi * u[0])
        f = (1 + r * z) / (r + z)
        c = k * (r - f)
        accept = (c * (2 - c) > u[1]) | ((c / u[1]).log() + 1 >= c)
        drawn = torch.sign(u[2] - 0.5) * torch.acos(f.clamp(-1, 1))
        flat[where[accept]] = drawn[accept]
        where, k, r = where[~accept], k[~accept], r[~accept]
    return flat.reshape(kappa.shape).to(kappa.dtype)


def _proposal(k: Tensor) -> Tensor:
    """r = (1 + rho^2) / (2 rho)."""
    # rho = (tau - sqrt(2 tau)) / (2 k), tau = 1 + sqrt(1 + 4 k^2); with h = tau - 2 small for
    # small k, tau - sqrt(2 tau) = sqrt(tau) h / (sqrt(tau) + sqrt(2)).
    root = torch.sqrt(1 + 4 * k * k)
    tau, h = 1 + root, 4 * k * k / (root + 1)
    rho = tau.sqrt() * h / (tau.sqrt() + math.sqrt(2)) / (2 * k)
    return (1 + rho * rho) / (2 * rho)
