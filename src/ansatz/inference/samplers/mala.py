"""Metropolis-adjusted Langevin: proposals that follow the gradient."""

from typing import NamedTuple

import torch
from torch import Tensor

from ansatz.inference.samplers.density import Density
from ansatz.inference.samplers.metric import Metric
from ansatz.inference.samplers.metropolis import Info, accept


class State(NamedTuple):
    """Where the chains are."""

    position: Tensor  # (C, D)
    log_density: Tensor  # (C,)
    gradient: Tensor  # (C, D)


class Settings(NamedTuple):
    """The proposal."""

    step_size: Tensor  # (C,) or ()
    metric: Metric


def start(position: Tensor, density: Density) -> State:
    """The chains at ``position``, ``(C, D)``."""
    return State(position, *density(position))


def step(
    state: State, density: Density, settings: Settings, generator: torch.Generator | None = None
) -> tuple[State, Info]:
    r"""One step of a discretised diffusion, accepted or not.

    .. math:: \theta' = \theta + \tfrac{\epsilon^2}{2} M^{-1} \nabla \log p(\theta)
        + \epsilon M^{-1} v, \qquad v \sim N(0, M)

    Computed as one leapfrog step, with which it agrees: the acceptance probability
    :math:`\min\{1, e^{H - H'}\}` is that of Metropolis-Hastings.

    Args:
        state: of the chains.
        density: log p and its gradient, as of :func:`~ansatz.inference.samplers.with_gradient`.
        settings: step size and metric.
        generator: of the noise.

    Example:
        >>> import torch
        >>> from ansatz.inference.samplers import Metric, mala, with_gradient
        >>> density = with_gradient(lambda x: -(x**2).sum(1) / 2)
        >>> state = mala.start(torch.zeros(4, 2), density)
        >>> settings = mala.Settings(torch.tensor(0.5), Metric.of(torch.ones(2)))
        >>> state, info = mala.step(state, density, settings)
        >>> state.position.shape
        torch.Size([4, 2])

    References:
        Roberts and Tweedie (1996), Exponential convergence of Langevin distributions.
    """
    metric, size = settings.metric, settings.step_size.reshape(-1, 1)
    momentum = metric.draw(state.position, generator)
    half = momentum + 0.5 * size * state.gradient
    proposal = state.position + size * metric.velocity(half)
    value, gradient = density(proposal)
    end = half + 0.5 * size * gradient
    ratio = value - state.log_density + metric.kinetic(momentum) - metric.kinetic(end)
    acceptance, accepted = accept(ratio, generator)
    kept = accepted.unsqueeze(1)
    moved = State(
        torch.where(kept, proposal, state.position),
        torch.where(accepted, value, state.log_density),
        torch.where(kept, gradient, state.gradient),
    )
    return moved, Info(acceptance, accepted)
