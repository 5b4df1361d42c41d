"""Descent by signs of gradients, and with a proximal step for the L1 penalty."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ansatz.errors import UsageError


class SignDescent(torch.optim.Optimizer):
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
                g, eps = parameter.grad, group["eps"]
                direction = g / (g.abs() + eps) if eps else g.sign()  # 0 / 0 would be nan
                parameter.sub_(direction, alpha=group["lr"])
        return loss


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


class ProximalSGD(torch.optim.Optimizer):
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

    @torch.no_grad()
    def step(self, closure: Callable[[], Tensor] | None = None) -> Any:  # type: ignore[override]
        """One move; ``closure`` may recompute the gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            rate, l1, l2 = group["lr"], group["l1"], group["l2"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                parameter.sub_(parameter.grad, alpha=rate)
                if l1:
                    parameter.copy_(soft_threshold(parameter, rate * l1))
                if l2:
                    parameter.div_(1 + rate * l2)
        return loss
