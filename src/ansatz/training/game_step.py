"""A step of a game: players with losses and optimizers of their own on one batch."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from ansatz.data.batch import Batch
from ansatz.errors import NumericalError, UsageError
from ansatz.training.gradient_step import align_state
from ansatz.training.loop_state import load_optimizer
from ansatz.training.objectives import Loss, evaluate_batch

Mode = Literal["alternating", "simultaneous", "extragradient"]


class Player(NamedTuple):
    """Who moves some of the weights to lower a loss of its own.

    Args:
        name: in logs and errors.
        optimizer: of its weights, which no other player moves.
        loss: ``loss(network, batch) -> scalar``, of the whole network.

    Example:
        >>> import torch
        >>> from ansatz.training import Player
        >>> x = torch.nn.Parameter(torch.ones(1))
        >>> Player("x", torch.optim.SGD([x], lr=0.1), lambda network, batch: x.square().sum()).name
        'x'
    """

    name: str
    optimizer: torch.optim.Optimizer
    loss: Callable[[nn.Module, Batch], Tensor]

    @property
    def parameters(self) -> list[Tensor]:
        """The weights that it moves."""
        return [p for group in self.optimizer.param_groups for p in group["params"]]


class GameStep:
    r"""One step of a game: every player follows the gradient of its own loss.

    ``"alternating"``: the players move one after the other, each ``updates`` times, and see how
    those before them have moved. ``"simultaneous"``: all gradients are taken where the step
    begins. ``"extragradient"``: all look ahead by a plain gradient step and move from where they
    were by the gradients of that point,

    .. math:: w_{1/2} = w - \eta F(w), \qquad w \leftarrow w - \eta F(w_{1/2})

    which converges on a bilinear game, where simultaneous steps spiral outwards and alternating
    ones go round in circles. No player's loss measures how good the result is: ``objective`` should
    be a distance between samples and data, and that is what stops a training.

    Args:
        network: holds the weights of all players.
        objective: ``objective(network, batch) -> Loss`` for evaluations.
        players: in the order in which they move.
        updates: moves of each player per step; 1 each by default.
        mode: see above.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch
        >>> from ansatz.training import GameStep, Player
        >>> network = torch.nn.ParameterDict({"x": torch.ones(()), "y": torch.ones(())})
        >>> def player(name, sign):
        ...     optimizer = torch.optim.SGD([network[name]], lr=0.3)
        ...     return Player(name, optimizer, lambda game, batch: sign * game["x"] * game["y"])
        >>> players = [player("x", 1), player("y", -1)]
        >>> step = GameStep(network, torch.nn.Identity(), players, mode="extragradient")
        >>> for _ in range(100):
        ...     logs = step.step(Batch.of(torch.zeros(1), torch.zeros(1)))
        >>> bool(network["x"].abs() < 0.1)
        True

    References:
        Goodfellow et al. (2014), Generative adversarial nets, algorithm 1.
        https://arxiv.org/abs/1406.2661; Gidel et al. (2019), A variational inequality perspective
        on GANs, algorithm 2. https://arxiv.org/abs/1802.10551
    """

    def __init__(
        self,
        network: nn.Module,
        objective: nn.Module,
        players: Sequence[Player],
        *,
        updates: Sequence[int] | None = None,
        mode: Mode = "alternating",
    ) -> None:
        if mode not in get_args(Mode):
            known = ", ".join(get_args(Mode))
            raise UsageError(f"mode of GameStep must be one of {known}, got {mode!r}.")
        updates = [1] * len(players) if updates is None else list(updates)
        if not players or len(updates) != len(players) or any(n < 1 for n in updates):
            raise UsageError(
                f"updates of GameStep has one number >= 1 for each of its {len(players)} players, "
                f"got {tuple(updates)}."
            )
        if mode != "alternating" and any(n != 1 for n in updates):
            raise UsageError(f"players of a game in mode '{mode}' move once per step.")
        owned = [id(p) for player in players for p in player.parameters]
        if len(set(owned)) != len(owned):
            raise UsageError("two players of a game move the same weight; give each its own.")
        self.network, self.objective = network, objective
        self.players, self.updates, self.mode = list(players), updates, mode
        self.number = 0

    def step(self, batch: Batch) -> dict[str, float]:
        """Moves all players; ``loss`` is the sum of the sizes of their losses."""
        self.network.train()
        if self.mode == "alternating":
            losses = self._in_turn(batch)
        else:
            losses = self._at_once(batch)
        self.number += 1
        count = float(batch.weight.sum())
        named = {f"loss of {p.name}": loss for p, loss in zip(self.players, losses, strict=True)}
        return {"loss": sum(abs(loss) for loss in losses), "count": count, **named}

    def evaluate(self, batch: Batch) -> Loss:
        """Computes the objective in evaluation mode."""
        return evaluate_batch(self.network, self.objective, batch)

    def state_dict(self) -> dict[str, Any]:
        """The states of all optimizers, and the step number."""
        states = {p.name: p.optimizer.state_dict() for p in self.players}
        return {"number": self.number, "optimizers": states}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what ``state_dict`` gave, exactly."""
        self.number = int(state["number"])
        for player in self.players:
            load_optimizer(player.optimizer, state["optimizers"][player.name])
            align_state(player.optimizer)

    def _in_turn(self, batch: Batch) -> list[float]:
        losses = []
        for player, count in zip(self.players, self.updates, strict=True):
            for _ in range(count):
                loss = self._gradient(player, batch)
                player.optimizer.step()
            losses.append(loss)
        return losses

    def _at_once(self, batch: Batch) -> list[float]:
        losses = self._gradients(batch)
        if self.mode == "extragradient":
            origin = [[w.detach().clone() for w in p.parameters] for p in self.players]
            for player in self.players:
                _look_ahead(player)
            try:
                self._gradients(batch)
            finally:
                for player, kept in zip(self.players, origin, strict=True):
                    with torch.no_grad():
                        for parameter, value in zip(player.parameters, kept, strict=True):
                            parameter.copy_(value)
        for player in self.players:
            player.optimizer.step()
        return losses

    def _gradients(self, batch: Batch) -> list[float]:
        return [self._gradient(player, batch) for player in self.players]

    def _gradient(self, player: Player, batch: Batch) -> float:
        """Fills ``.grad`` of the player's own weights."""
        weights = player.parameters
        loss = player.loss(self.network, batch)
        value = float(loss.detach())
        found = torch.autograd.grad(loss, weights, allow_unused=True)
        finite = all(bool(g.isfinite().all()) for g in found if g is not None)
        if not (math.isfinite(value) and finite):
            raise NumericalError(
                f"the loss of the {player.name} is {value:g} at step {self.number + 1}, or its "
                "gradient is not finite; the update was not applied. Lower the learning rate of "
                "both players, or add a gradient penalty."
            )
        for weight, gradient in zip(weights, found, strict=True):
            weight.grad = gradient
        return value


@torch.no_grad()
def _look_ahead(player: Player) -> None:
    for group in player.optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None:
                parameter.add_(parameter.grad, alpha=-float(group["lr"]))
