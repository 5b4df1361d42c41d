"""Hamiltonian Monte Carlo: proposals along paths of constant energy."""

from typing import NamedTuple

import torch
from torch import Tensor

from ansatz.inference.samplers.density import Density
from ansatz.inference.samplers.mala import State as State
from ansatz.inference.samplers.mala import start as start
from ansatz.inference.samplers.metric import Metric
from ansatz.inference.samplers.metropolis import accept


class Settings(NamedTuple):
    """The paths."""

    step_size: Tensor  # (C,) or ()
    metric: Metric
    length: float = 1.5707963267948966  # of a path in time; a quarter of a period of a normal law
    most_steps: int = 1024


class Info(NamedTuple):
    """What a diagnostician wants to know."""

    acceptance: Tensor  # (C,) the probability that the path was accepted
    accepted: Tensor  # (C,) bool
    energy: Tensor  # (C,) of the accepted position and the momentum drawn for it
    diverging: Tensor  # (C,) bool: the energy grew by more than 1,000
    steps: int


def leapfrog(
    state: State, momentum: Tensor, density: Density, size: Tensor, metric: Metric, steps: int
) -> tuple[State, Tensor]:
    r"""Follows Hamilton's equations, reversibly and keeping volumes.

    .. math:: v \leftarrow v + \tfrac{\epsilon}{2} \nabla \log p(\theta), \quad
        \theta \leftarrow \theta + \epsilon M^{-1} v, \quad
        v \leftarrow v + \tfrac{\epsilon}{2} \nabla \log p(\theta)

    The energy error of a path is :math:`O(\epsilon^2)`. Euler's explicit method, often printed in
    its place, gains energy without end; so does a velocity without the mass.

    Args:
        state: position, log density and gradient where the path begins.
        momentum: ``(C, D)``.
        density: log p and its gradient.
        size: :math:`\epsilon`, ``(C, 1)``; negative goes back.
        metric: the inverse mass.
        steps: number of steps.

    Returns:
        The state and the momentum at the end.

    References:
        Neal (2011), MCMC using Hamiltonian dynamics. https://arxiv.org/abs/1206.1901
    """
    position, value, gradient = state
    momentum = momentum + 0.5 * size * gradient
    for number in range(steps):
        position = position + size * metric.velocity(momentum)
        value, gradient = density(position)
        momentum = momentum + (1.0 if number < steps - 1 else 0.5) * size * gradient
    return State(position, value, gradient), momentum


def step(
    state: State, density: Density, settings: Settings, generator: torch.Generator | None = None
) -> tuple[State, Info]:
    r"""One path of random length for each chain, accepted or not.

    .. math:: H(\theta, v) = -\log p(\theta) + \tfrac12 v^\top M^{-1} v, \qquad
        \alpha = \min\{1, e^{H(\theta, v) - H(\theta', v')}\}

    The number of steps is drawn anew each time, between one and twice the mean: a fixed length may
    return to where it came from.

    Args:
        state: of the chains.
        density: log p and its gradient, as of :func:`~ansatz.inference.samplers.with_gradient`.
        settings: step size, metric and mean length.
        generator: of the noise.

    Example:
        >>> import torch
        >>> from ansatz.inference.samplers import Metric, hmc, with_gradient
        >>> density = with_gradient(lambda x: -(x**2).sum(1) / 2)
        >>> state = hmc.start(torch.zeros(4, 2), density)
        >>> settings = hmc.Settings(torch.tensor(0.5), Metric.of(torch.ones(2)))
        >>> state, info = hmc.step(state, density, settings)
        >>> bool((info.acceptance > 0.7).all())
        True

    References:
        Neal (2011), MCMC using Hamiltonian dynamics. https://arxiv.org/abs/1206.1901
    """
    metric, size = settings.metric, settings.step_size.reshape(-1, 1)
    mean = settings.length / float(size.mean())
    drawn = float(torch.rand((), generator=generator))
    steps = max(1, min(settings.most_steps, round(2 * drawn * mean + 0.5)))
    momentum = metric.draw(state.position, generator)
    began = metric.kinetic(momentum) - state.log_density
    proposal, end = leapfrog(state, momentum, density, size, metric, steps)
    energy = metric.kinetic(end) - proposal.log_density
    acceptance, accepted = accept(began - energy, generator)
    kept = accepted.unsqueeze(1)
    moved = State(
        torch.where(kept, proposal.position, state.position),
        torch.where(accepted, proposal.log_density, state.log_density),
        torch.where(kept, proposal.gradient, state.gradient),
    )
    diverging = ~(energy - began < 1000)
    return moved, Info(acceptance, accepted, torch.where(accepted, energy, began), diverging, steps)
