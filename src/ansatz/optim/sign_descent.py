"""Descent by the signs of the gradient."""

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
