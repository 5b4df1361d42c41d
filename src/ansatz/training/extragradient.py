"""Extragradient as a training step: for networks that play against each other."""

from collections.abc import Callable, Iterable
from typing import Any

from torch import nn

from ansatz.optim.extragradient import Extragradient
from ansatz.training.gradient_step import GradientStep


class ExtragradientStep(GradientStep):
    r"""One extragradient step of a zero-sum game on the mean loss of the batch.

    .. math:: \min_\theta \max_\phi \; h(\theta, \phi)

    :math:`\phi` are the ``maximizers``, :math:`\theta` all other parameters of the network and the
    objective. The batch is seen twice: at the present point, and at the half point of *both*
    players, whose gradient makes the step; see :class:`ansatz.optim.Extragradient`.

    Args:
        network: holds both players.
        objective: ``objective(network, batch) -> Loss(total, count)``.
        maximizers: the parameters that ascend; none gives minimisation with a look ahead.
        learning_rate: of both players.
        schedule: step number -> multiplier of the rate.
        clip: bound on the global norm of each gradient.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.training import ExtragradientStep, Supervised
        >>> objective = Supervised(Normal(dispersion=1.0))
        >>> step = ExtragradientStep(torch.nn.Linear(2, 1), objective, learning_rate=0.1)
        >>> batch = Batch.of(torch.randn(8, 2), torch.zeros(8))
        >>> losses = [step.step(batch)["loss"] for _ in range(20)]
        >>> losses[-1] < losses[0]
        True

    References:
        Korpelevich (1976), The extragradient method for finding saddle points.
    """

    def __init__(
        self,
        network: nn.Module,
        objective: nn.Module,
        *,
        maximizers: Iterable[nn.Parameter] = (),
        learning_rate: float = 1e-3,
        schedule: Callable[[int], float] | None = None,
        clip: float | None = None,
    ) -> None:
        up = {id(p) for p in maximizers}
        every = [p for m in (network, objective) for p in m.parameters() if p.requires_grad]
        groups: list[dict[str, Any]] = [
            {"params": [p for p in every if id(p) not in up]},
            {"params": [p for p in every if id(p) in up], "maximize": True},
        ]
        optimizer = Extragradient([g for g in groups if g["params"]], lr=learning_rate)
        super().__init__(network, objective, optimizer, schedule=schedule, clip=clip)
