"""Gradient descent with memory: torch's SGD under the names of the textbook."""

from typing import Any

import torch


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
