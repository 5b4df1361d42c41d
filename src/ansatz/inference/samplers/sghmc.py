"""Stochastic gradient Hamiltonian Monte Carlo: momentum, friction and noise."""

from typing import NamedTuple

import torch
from torch import Tensor

from ansatz.inference.samplers.density import Density
from ansatz.inference.samplers.sgld import Info as Info


class State(NamedTuple):
    """Where the chains are and how they move."""

    position: Tensor  # (C, D)
    momentum: Tensor  # (C, D)


class Settings(NamedTuple):
    """Step size and friction."""

    step_size: Tensor  # eta, (C,) or ()
    friction: Tensor  # gamma: the momentum decays by the factor 1 - eta gamma


def start(position: Tensor, density: Density | None = None) -> State:
    """The chains at rest at ``position``, ``(C, D)``."""
    return State(position, torch.zeros_like(position))


def step(
    state: State, density: Density, settings: Settings, generator: torch.Generator | None = None
) -> tuple[State, Info]:
    r"""One semi-implicit step: the momentum first, and the position by the new momentum.

    .. math:: v' = (1 - \eta \gamma) v + \eta \hat g(\theta) + \sqrt{2 \gamma \eta}\, z,
        \qquad \theta' = \theta + \eta v'

    :math:`\hat g` estimates the gradient of log p, the sum over all rows: a minibatch must be
    scaled to them. A position moved by the old momentum, as often printed, is less stable.

    Args:
        state: of the chains.
        density: an unbiased estimate of log p, and its gradient.
        settings: step size and friction.
        generator: of the noise.

    Example:
        >>> import torch
        >>> from ansatz.inference.samplers import sghmc, with_gradient
        >>> density = with_gradient(lambda x: -(x**2).sum(1) / 2)
        >>> settings = sghmc.Settings(torch.tensor(0.1), torch.tensor(1.0))
        >>> state, _ = sghmc.step(sghmc.start(torch.zeros(4, 2)), density, settings)
        >>> state.momentum.shape
        torch.Size([4, 2])

    References:
        Chen, Fox and Guestrin (2014), Stochastic gradient Hamiltonian Monte Carlo.
        https://arxiv.org/abs/1402.4102
    """
    eta, gamma = settings.step_size.reshape(-1, 1), settings.friction.reshape(-1, 1)
    value, gradient = density(state.position)
    noise = torch.randn(state.position.shape, generator=generator, dtype=state.position.dtype)
    momentum = (1 - eta * gamma) * state.momentum + eta * gradient
    momentum = momentum + (2 * gamma * eta).sqrt() * noise
    return State(state.position + eta * momentum, momentum), Info(value)
