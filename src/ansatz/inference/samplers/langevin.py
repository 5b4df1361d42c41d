"""Langevin dynamics without a Metropolis test: fast, and biased by its step size."""

from typing import NamedTuple

import torch
from torch import Tensor

from ansatz.inference.samplers.density import Density
from ansatz.inference.samplers.mala import State as State
from ansatz.inference.samplers.mala import start as start


class Settings(NamedTuple):
    """The size of a step."""

    step_size: Tensor  # h, (C,) or ()


class Info(NamedTuple):
    """What a diagnostician wants to know."""

    log_density: Tensor  # (C,)


def step(
    state: State, density: Density, settings: Settings, generator: torch.Generator | None = None
) -> tuple[State, Info]:
    r"""One step of Euler and Maruyama.

    .. math:: \theta' = \theta + \tfrac h2 \nabla \log p(\theta) + \sqrt h\, z,
        \qquad z \sim N(0, I)

    Of N(0, 1) it keeps the variance :math:`1 / (1 - h / 4)`, not 1: the bias of the step size.

    Args:
        state: of the chains.
        density: log p and its gradient.
        settings: the step size.
        generator: of the noise.

    Example:
        >>> import torch
        >>> from ansatz.inference.samplers import langevin, with_gradient
        >>> density = with_gradient(lambda x: -(x**2).sum(1) / 2)
        >>> state = langevin.start(torch.zeros(4, 2), density)
        >>> state, _ = langevin.step(state, density, langevin.Settings(torch.tensor(0.1)))
        >>> state.position.shape
        torch.Size([4, 2])

    References:
        Roberts and Tweedie (1996), Exponential convergence of Langevin distributions.
    """
    h = settings.step_size.reshape(-1, 1)
    noise = torch.randn(state.position.shape, generator=generator, dtype=state.position.dtype)
    moved = start(state.position + 0.5 * h * state.gradient + h.sqrt() * noise, density)
    return moved, Info(moved.log_density)
