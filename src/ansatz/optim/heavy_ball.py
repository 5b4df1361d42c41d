"""Polyak's heavy ball."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ansatz.errors import UsageError


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
