"""Langevin dynamics by minibatches as a step of the trainer."""

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ansatz.data import Batch
from ansatz.errors import NumericalError
from ansatz.inference.samplers import sghmc, sgld
from ansatz.inference.weight_prior import WeightPrior
from ansatz.training import Loss, Supervised
from ansatz.training.objectives import evaluate_batch

LEAST_RATE = 0.1  # of the step size at the end of a cycle


class LangevinStep:
    r"""One step of ``sgld`` or ``sghmc`` with the gradient of a minibatch, as the trainer takes it.

    .. math:: \hat g = \frac Nn \sum_{i \in \text{batch}} \nabla \log p(y_i \mid x_i, \theta(z, u))
        + \nabla \log p(z, u), \qquad \theta = \mathrm{sd}(u)\, z, \quad z, u \sim N(0, I)

    Weights and the scales of their prior move together, as standard normal numbers before the data:
    steps are then alike in all layers. The step size of cycle position c in [0, 1) is
    :math:`\eta (0.1 + 0.9 (1 + \cos \pi c) / 2)`; draws are kept in the second half of each cycle.

    For ``sghmc``, with :math:`\eta` and the friction :math:`\alpha` in (0, 1) as in eq. 15 of Chen
    et al., :math:`v' = (1 - \alpha) v + \eta \hat g + N(0, 2 \alpha \eta)`, which is the sampler's
    step with the time :math:`\sqrt\eta` and the friction :math:`\alpha / \sqrt\eta`.

    Args:
        network: whose weights are drawn.
        objective: the negative log-likelihood.
        prior: of the weights; its scales are drawn too.
        method: ``"sgld"`` or ``"sghmc"``.
        outcomes: N.
        step_size: :math:`\eta`.
        friction: :math:`\alpha`.
        cycles: of the step size.
        steps: in all.
        draws: kept, in all.

    References:
        Welling and Teh (2011); Chen, Fox and Guestrin (2014), https://arxiv.org/abs/1402.4102;
        Zhang et al. (2020), Cyclical stochastic gradient MCMC. https://arxiv.org/abs/1902.03932
    """

    def __init__(
        self,
        network: nn.Module,
        objective: Supervised,
        prior: WeightPrior,
        *,
        method: Literal["sgld", "sghmc"],
        outcomes: float,
        step_size: float,
        friction: float,
        cycles: int,
        steps: int,
        draws: int,
    ) -> None:
        self.network, self.prior = network, prior
        self.objective: nn.Module = objective
        self.method, self.outcomes = method, outcomes
        self.step_size, self.friction = step_size, friction
        self.cycle = max(2, steps // max(1, cycles))
        self.every = max(1, cycles * (self.cycle - self.cycle // 2) // max(1, draws))
        self.number, self.most = 0, draws
        self.draws: list[Tensor] = []
        self._joint = _Joint(network, objective)
        self._own = list(network.parameters())
        self._extra = [prior.layers.numel(), prior.columns.numel()]
        with torch.no_grad():
            sds = prior.sds()
            z = [
                ((p - mean) / sd).reshape(-1)
                for p, mean, sd in zip(self._own, prior.means, sds, strict=True)
            ]
            scales = [prior.layers.reshape(-1), prior.columns.reshape(-1)]
            others = [p.reshape(-1) for p in objective.parameters()]
            self.position = torch.cat([*z, *scales, *others]).unsqueeze(0)
        self.momentum = torch.zeros_like(self.position)

    @property
    def rate(self) -> float:
        """The step size now."""
        place = (self.number % self.cycle) / self.cycle
        share = (1 + math.cos(math.pi * place)) / 2
        return self.step_size * (LEAST_RATE + (1 - LEAST_RATE) * share)

    def step(self, batch: Batch) -> dict[str, float]:
        """Moves the weights once."""
        self.network.train()
        seen: dict[str, float] = {}

        def density(position: Tensor) -> tuple[Tensor, Tensor]:
            with torch.enable_grad():
                leaf = position[0].detach().requires_grad_()
                total, count = functional_call(self._joint, self._weights(leaf), (batch,))
                mean = total / count
                value = -self.outcomes * mean + self._log_prior(leaf)
                (gradient,) = torch.autograd.grad(value, leaf)
            seen.update(loss=float(mean.detach()), count=float(count))
            if not bool(gradient.isfinite().all()):
                raise NumericalError(
                    f"the gradient is not finite at step {self.number + 1} of {self.method}. Take "
                    f"a smaller step size: --set step_size={self.step_size / 10:.1g}."
                )
            return value.detach().unsqueeze(0), gradient.unsqueeze(0)

        eta = torch.tensor(self.rate, dtype=self.position.dtype)
        if self.method == "sgld":
            state, _ = sgld.step(sgld.State(self.position), density, sgld.Settings(eta))
            self.position = state.position
        else:
            time = eta.sqrt()
            settings = sghmc.Settings(time, self.friction / time)
            before = sghmc.State(self.position, self.momentum)
            moved, _ = sghmc.step(before, density, settings)
            self.position, self.momentum = moved.position, moved.momentum
        self._apply()
        self.number += 1
        place = self.number % self.cycle
        kept = place >= self.cycle - self.cycle // 2 and place % self.every == 0
        if kept and len(self.draws) < self.most:
            self.draws.append(self.vector())
        return seen

    def _parts(self, position: Tensor) -> tuple[list[Tensor], Tensor, Tensor, list[Tensor]]:
        """The whitened weights, the scales of layers and columns, the likelihood's numbers."""
        others = list(self.objective.parameters())
        sizes = [p.numel() for p in self._own]
        parts = position.split([*sizes, *self._extra, *(p.numel() for p in others)])
        n = len(sizes)
        weights = [part.view_as(p) for part, p in zip(parts[:n], self._own, strict=True)]
        last = [part.view_as(p) for part, p in zip(parts[n + 2 :], others, strict=True)]
        return weights, parts[n], parts[n + 1], last

    def _theta(self, position: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        z, layers, columns, others = self._parts(position)
        sds, means = self.prior.sds(layers, columns), self.prior.means
        found = [mean + sd * each for each, sd, mean in zip(z, sds, means, strict=True)]
        return found, others

    def _weights(self, position: Tensor) -> dict[str, Tensor]:
        weights, others = self._theta(position)
        names = [name for name, _ in self._joint.named_parameters()]
        return dict(zip(names, [*weights, *others], strict=True))

    def _log_prior(self, position: Tensor) -> Tensor:
        *_, others = self._parts(position)
        whitened = position[: len(position) - sum(other.numel() for other in others)]
        own = dict(zip([n for n, _ in self.objective.named_parameters()], others, strict=True))
        of_likelihood = self.prior.log_prob_of_likelihood(own)
        return -0.5 * whitened.square().sum() + of_likelihood

    def _apply(self) -> None:
        """Gives the network the weights of the position."""
        with torch.no_grad():
            weights, others = self._theta(self.position[0])
            for parameter, value in zip(self._joint.parameters(), [*weights, *others], strict=True):
                parameter.copy_(value)

    def vector(self) -> Tensor:
        """The weights as one vector."""
        return torch.cat([p.detach().reshape(-1) for p in self._joint.parameters()]).clone()

    def evaluate(self, batch: Batch) -> Loss:
        """The loss at the weights as they are."""
        return evaluate_batch(self.network, self.objective, batch)

    def state_dict(self) -> dict[str, Any]:
        """Position, momentum and the draws so far."""
        drawn = {str(k): draw for k, draw in enumerate(self.draws)}
        return {
            "number": self.number,
            "position": self.position,
            "momentum": self.momentum,
            "draws": drawn,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what ``state_dict`` gave."""
        self.number = int(state["number"])
        self.position, self.momentum = state["position"], state["momentum"]
        self.draws = [state["draws"][key] for key in sorted(state["draws"], key=int)]


class _Joint(nn.Module):
    """A network and its objective as one module, which ``functional_call`` needs."""

    def __init__(self, network: nn.Module, objective: Supervised) -> None:
        super().__init__()
        self.network, self.objective = network, objective

    def forward(self, batch: Batch) -> Loss:
        loss: Loss = self.objective(self.network, batch)
        return loss
