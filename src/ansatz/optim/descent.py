"""Gradient descent with momentum, by signs, and with a proximal step."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ansatz.errors import UsageError


class Descent(torch.optim.Optimizer):
    """Moves each parameter by its gradient; a subclass defines the move."""

    @torch.no_grad()
    def step(self, closure: Callable[[], Tensor] | None = None) -> Any:  # type: ignore[override]
        """One move; ``closure`` may recompute the gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._move(parameter, parameter.grad, group)
            self._finish(group)
        return loss

    def _move(self, parameter: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        raise NotImplementedError

    def _finish(self, group: dict[str, Any]) -> None:
        """Does what concerns all parameters of a group, after their moves."""


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


class HeavyBall(Descent):
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

    def _move(self, parameter: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        move = self.state[parameter].setdefault("move", torch.zeros_like(parameter))
        move.mul_(group["beta"]).sub_(g, alpha=group["lr"])
        parameter.add_(move)


class SignDescent(Descent):
    r"""Every coordinate moves by the rate, against its gradient's sign.

    .. math:: \theta \leftarrow \theta - \eta \frac{g}{\sqrt{g^2} + \epsilon}
              \;\to\; \theta - \eta\, \text{sign}(g) \quad (\epsilon = 0)

    Some notes print this under the name of AdaGrad, with :math:`v = g^2` in place of the running
    sum; AdaGrad accumulates :math:`G \leftarrow G + g^2`. It is Adam with both betas 0.

    Args:
        parameters: what to train, or groups of it.
        lr: :math:`\eta`.
        eps: :math:`\epsilon`; above 0, gradients well below it are damped.

    Example:
        >>> import torch
        >>> from ansatz.optim import SignDescent
        >>> theta = torch.nn.Parameter(torch.zeros(3))
        >>> theta.grad = torch.tensor([1e-3, -50.0, 0.0])
        >>> SignDescent([theta], lr=0.1).step()
        >>> theta.data
        tensor([-0.1000,  0.1000,  0.0000])

    References:
        Bernstein et al. (2018), signSGD. https://arxiv.org/abs/1802.04434
    """

    def __init__(self, parameters: Any, lr: float = 1e-3, *, eps: float = 0.0) -> None:
        if not eps >= 0:
            raise UsageError(f"eps of sign_descent must be >= 0, got {eps}.")
        super().__init__(parameters, {"lr": lr, "eps": eps})

    def _move(self, parameter: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        eps = group["eps"]
        direction = g / (g.abs() + eps) if eps else g.sign()  # 0 / 0 would be nan
        parameter.sub_(direction, alpha=group["lr"])


def soft_threshold(x: Tensor, threshold: float) -> Tensor:
    r"""The minimiser of :math:`\frac12 (u - x)^2 + \tau |u|` over u, elementwise.

    .. math:: S_\tau(x) = \text{sign}(x) \max(|x| - \tau, 0)

    Example:
        >>> import torch
        >>> from ansatz.optim import soft_threshold
        >>> soft_threshold(torch.tensor([-3.0, 0.5, 2.0]), 1.0)
        tensor([-2.,  0.,  1.])
    """
    return torch.sign(x) * (x.abs() - threshold).clamp(min=0)


class ProximalSGD(Descent):
    r"""Gradient descent on the loss, then the exact minimiser of the penalty nearby.

    .. math::
        \theta \leftarrow \frac{S_{\eta\lambda_1}(\theta - \eta \nabla h(\theta))}{1+\eta\lambda_2}
        \quad\text{minimises}\quad
        h(\theta) + \lambda_1 \|\theta\|_1 + \tfrac12\lambda_2\|\theta\|_2^2

    A gradient of :math:`|\theta|` never lands on 0; the soft threshold does. Give biases a group of
    their own with ``l1=0, l2=0``. In scikit-learn's terms, for :math:`h` half the mean squared
    error: ``Lasso(alpha)`` is ``l1=alpha``; ``ElasticNet(alpha, l1_ratio)`` is
    ``l1=alpha * l1_ratio, l2=alpha * (1 - l1_ratio)``.

    Args:
        parameters: what to train, or groups of it.
        lr: :math:`\eta`; below 2 / L it converges where h has curvature at most L.
        l1: :math:`\lambda_1`.
        l2: :math:`\lambda_2`.

    Example:
        >>> import torch
        >>> from ansatz.optim import ProximalSGD
        >>> theta = torch.nn.Parameter(torch.tensor([3.0, 0.5]))
        >>> theta.grad = torch.zeros(2)
        >>> ProximalSGD([theta], lr=1.0, l1=1.0).step()
        >>> theta.data
        tensor([2., 0.])

    References:
        Parikh and Boyd (2014), Proximal algorithms, sections 4.2 and 6.5.2.
    """

    def __init__(
        self, parameters: Any, lr: float = 1e-3, *, l1: float = 0.0, l2: float = 0.0
    ) -> None:
        if not (l1 >= 0 and l2 >= 0):
            raise UsageError(f"l1 and l2 of proximal_sgd must be >= 0, got {l1} and {l2}.")
        super().__init__(parameters, {"lr": lr, "l1": l1, "l2": l2})

    def _move(self, parameter: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        rate, l1, l2 = group["lr"], group["l1"], group["l2"]
        parameter.sub_(g, alpha=rate)
        if l1:
            parameter.copy_(soft_threshold(parameter, rate * l1))
        if l2:
            parameter.div_(1 + rate * l2)
