"""Momentum: heavy ball and Nesterov, and torch's SGD by their names."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ansatz.errors import UsageError


def momentum(
    parameters: Any, lr: float = 1e-3, *, momentum: float = 0.9, weight_decay: float = 0.0
) -> torch.optim.SGD:
    r"""SGD with momentum: the gradient drives a velocity, the velocity the parameters.

    .. math:: v \leftarrow \mu v + g, \qquad \theta \leftarrow \theta - \eta v

    This is ``torch.optim.SGD(momentum=)``. The exponential average
    :math:`m \leftarrow \mu m + (1-\mu) g` of other books takes the same path at the rate
    :math:`\eta / (1-\mu)`.

    Args:
        parameters: what to train, or groups of it.
        lr: :math:`\eta`.
        momentum: :math:`\mu` in [0, 1).
        weight_decay: L2 penalty.

    Example:
        >>> import torch
        >>> from ansatz.optim import momentum
        >>> momentum([torch.nn.Parameter(torch.ones(1))]).defaults["momentum"]
        0.9

    References:
        Sutskever et al. (2013), On the importance of initialization and momentum in deep learning.
    """
    return torch.optim.SGD(parameters, lr, momentum=momentum, weight_decay=weight_decay)


def nesterov(
    parameters: Any, lr: float = 1e-3, *, momentum: float = 0.9, weight_decay: float = 0.0
) -> torch.optim.SGD:
    r"""Nesterov's acceleration: the gradient is taken where the momentum is about to lead.

    .. math:: \chi = \theta + \beta (\theta - \theta_{-}), \qquad
              \theta_{+} = \chi - \eta \nabla h(\chi)

    ``torch.optim.SGD(nesterov=True)`` keeps :math:`\chi` in the parameters instead of
    :math:`\theta` (:math:`\chi = \theta - \eta\beta v`), so that the gradient is taken at the
    parameters as they stand.

    Args:
        parameters: what to train, or groups of it.
        lr: :math:`\eta`.
        momentum: :math:`\beta` in (0, 1).
        weight_decay: L2 penalty.

    Example:
        >>> import torch
        >>> from ansatz.optim import nesterov
        >>> nesterov([torch.nn.Parameter(torch.ones(1))]).defaults["nesterov"]
        True

    References:
        Nesterov (1983), A method of solving a convex programming problem with convergence rate
        O(1/k^2).
    """
    options: dict[str, Any] = {"momentum": momentum, "weight_decay": weight_decay}
    return torch.optim.SGD(parameters, lr, nesterov=True, **options)


class HeavyBall(torch.optim.Optimizer):
    r"""Gradient descent that keeps part of its last move.

    .. math:: \theta_{t+1} = \theta_t - \eta \nabla h(\theta_t) + \beta (\theta_t - \theta_{t-1})

    Under a constant gradient g the move is :math:`-\eta g \sum_{\tau=0}^{t} \beta^\tau`, which
    tends to :math:`-\eta g / (1 - \beta)`. (Some notes start the sum at 1; then :math:`\beta = 0`
    would not move at all.) With a constant rate this is ``torch.optim.SGD(momentum=beta)``; when
    the rate changes, the ball remembers its move, torch's velocity the gradients.

    Args:
        parameters: what to train, or groups of it.
        lr: :math:`\eta`.
        beta: :math:`\beta` in [0, 1).

    Example:
        >>> import torch
        >>> from ansatz.optim import HeavyBall
        >>> theta = torch.nn.Parameter(torch.zeros(1))
        >>> ball = HeavyBall([theta], lr=0.1, beta=0.5)
        >>> for _ in range(2):
        ...     theta.grad = torch.ones(1)
        ...     ball.step()
        >>> theta.data  # -0.1, then another -0.1 - 0.05
        tensor([-0.2500])

    References:
        Polyak (1964), Some methods of speeding up the convergence of iteration methods.
    """

    def __init__(self, parameters: Any, lr: float = 1e-3, *, beta: float = 0.9) -> None:
        if not 0 <= beta < 1:
            raise UsageError(f"beta of heavy_ball must be in [0, 1), got {beta}.")
        super().__init__(parameters, {"lr": lr, "beta": beta})

    @torch.no_grad()
    def step(self, closure: Callable[[], Tensor] | None = None) -> Any:  # type: ignore[override]
        """One move; ``closure`` may recompute the gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                move = state.setdefault("move", torch.zeros_like(parameter))
                move.mul_(group["beta"]).sub_(parameter.grad, alpha=group["lr"])
                parameter.add_(move)
        return loss
