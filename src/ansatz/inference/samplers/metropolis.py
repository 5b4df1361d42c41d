"""Random-walk Metropolis-Hastings: propose, then accept or stay."""

from typing import NamedTuple

import torch
from torch import Tensor

from ansatz.inference.samplers.density import LogDensity


class State(NamedTuple):
    """Where the chains are."""

    position: Tensor  # (C, D)
    log_density: Tensor  # (C,)


class Settings(NamedTuple):
    """The proposal: normal, ``step_size`` times the standard deviations ``scale``."""

    step_size: Tensor  # (C,) or ()
    scale: Tensor  # (D,), or (D, D) whose square is the covariance of a step of size 1


class Info(NamedTuple):
    """What a diagnostician wants to know."""

    acceptance: Tensor  # (C,) the probability that the proposal was accepted
    accepted: Tensor  # (C,) bool


def start(position: Tensor, density: LogDensity) -> State:
    """The chains at ``position``, ``(C, D)``."""
    return State(position, density(position))


def step(
    state: State, density: LogDensity, settings: Settings, generator: torch.Generator | None = None
) -> tuple[State, Info]:
    r"""One proposal for each chain.

    .. math:: \theta' = \theta + \epsilon S z, \quad z \sim N(0, I), \qquad
        \alpha = \min\{1, p(\theta') / p(\theta)\}

    The ratio of a symmetric proposal; often printed upside down, which would sample 1 / p.

    Args:
        state: of the chains.
        density: log p up to a constant, ``(C, D)`` to ``(C,)``.
        settings: of the proposal.
        generator: of the noise.

    Example:
        >>> import torch
        >>> from ansatz.inference.samplers import metropolis
        >>> density = lambda x: -(x**2).sum(1) / 2
        >>> state = metropolis.start(torch.zeros(4, 2), density)
        >>> settings = metropolis.Settings(torch.tensor(1.0), torch.ones(2))
        >>> state, info = metropolis.step(state, density, settings)
        >>> info.acceptance.shape
        torch.Size([4])

    References:
        Metropolis et al. (1953); Hastings (1970), Monte Carlo sampling methods using Markov chains.
    """
    noise = torch.randn(state.position.shape, generator=generator, dtype=state.position.dtype)
    scaled = noise * settings.scale if settings.scale.ndim == 1 else noise @ settings.scale.mT
    proposal = state.position + settings.step_size.reshape(-1, 1) * scaled
    value = density(proposal)
    acceptance, accepted = accept(value - state.log_density, generator)
    kept = accepted.unsqueeze(1)
    moved = State(
        torch.where(kept, proposal, state.position),
        torch.where(accepted, value, state.log_density),
    )
    return moved, Info(acceptance, accepted)


def accept(log_ratio: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
    """The probability min(1, e^log_ratio), 0 where that is not a number, and whether it came."""
    acceptance = log_ratio.nan_to_num(nan=-torch.inf).clamp(max=0).exp()
    drawn = torch.rand(log_ratio.shape, generator=generator, dtype=log_ratio.dtype)
    return acceptance, drawn < acceptance
