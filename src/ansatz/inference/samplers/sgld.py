"""Stochastic gradient Langevin dynamics: a minibatch in place of all rows."""

from typing import NamedTuple

import torch
from torch import Tensor

from ansatz.inference.samplers.density import Density


class State(NamedTuple):
    """Where the chains are."""

    position: Tensor  # (C, D)


class Settings(NamedTuple):
    """The size of a step."""

    step_size: Tensor  # h, (C,) or ()


class Info(NamedTuple):
    """What a diagnostician wants to know."""

    log_density: Tensor  # (C,) as the minibatch estimates it


def start(position: Tensor, density: Density | None = None) -> State:
    """The chains at ``position``, ``(C, D)``."""
    return State(position)


def step(
    state: State, density: Density, settings: Settings, generator: torch.Generator | None = None
) -> tuple[State, Info]:
    r"""One step along an unbiased estimate of the gradient.

    .. math:: \theta' = \theta + \tfrac h2 \hat g(\theta) + \sqrt h\, z, \qquad
        \hat g = \nabla \log p(\theta)
        + \frac Nn \sum_{i \in \text{batch}} \nabla \log p(y_i | \theta)

    The density must scale its n rows to all N: without N / n the prior counts as N / n priors.

    Args:
        state: of the chains.
        density: an unbiased estimate of log p, and its gradient; another minibatch at each call.
        settings: the step size.
        generator: of the noise.

    Example:
        >>> import torch
        >>> from ansatz.inference.samplers import sgld, with_gradient
        >>> density = with_gradient(lambda x: -(x**2).sum(1) / 2)
        >>> state = sgld.start(torch.zeros(4, 2))
        >>> state, _ = sgld.step(state, density, sgld.Settings(torch.tensor(0.1)))
        >>> state.position.shape
        torch.Size([4, 2])

    References:
        Welling and Teh (2011), Bayesian learning via stochastic gradient Langevin dynamics.
    """
    h = settings.step_size.reshape(-1, 1)
    value, gradient = density(state.position)
    noise = torch.randn(state.position.shape, generator=generator, dtype=state.position.dtype)
    return State(state.position + 0.5 * h * gradient + h.sqrt() * noise), Info(value)
