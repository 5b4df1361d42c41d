"""The largest curvature of a loss, from products of its Hessian with a vector."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def power_iteration(
    loss: Callable[[Sequence[Tensor]], Tensor],
    at: Sequence[Tensor],
    start: Sequence[Tensor],
    steps: int,
    members: int = 0,
) -> Tensor:
    """Rayleigh quotients of the Hessian along v <- Hv / |Hv|: ``(steps,)``.

    With ``members`` > 0 every tensor has that many independent problems on its first axis, the
    loss is their sum, and the quotients are ``(steps, members)``.
    """
    axes = 1 if members else 0
    points = [point.detach().requires_grad_() for point in at]
    gradient = torch.autograd.grad(loss(points), points, create_graph=True)

    def inner(a: Sequence[Tensor], b: Sequence[Tensor]) -> Tensor:
        parts = [(u * v).flatten(axes).sum(-1) for u, v in zip(a, b, strict=True)]
        return torch.stack(parts).sum(0)

    def scaled(a: Sequence[Tensor]) -> list[Tensor]:
        size = inner(a, a).sqrt()
        return [u / size.reshape(size.shape + (1,) * (u.ndim - axes)) for u in a]

    v, quotients = scaled(start), []
    for _ in range(steps):
        product = torch.autograd.grad(gradient, points, v, retain_graph=True)
        quotients.append(inner(v, product))
        v = scaled(product)
    return torch.stack(quotients).detach()
