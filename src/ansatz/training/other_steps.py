"""Steps for special cases: Newton's method for small models, extragradient for games."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.data.batch import Batch
from ansatz.optim.extragradient import Extragradient
from ansatz.optim.newton import Newton
from ansatz.training.diagnosis import numerical_error
from ansatz.training.gradient_step import GradientStep
from ansatz.training.objectives import Loss, evaluate_batch


class NewtonStep:
    r"""One step of Newton's method on the mean loss of the batch, which should be all the data.

    .. math:: \theta \leftarrow \theta - s\, [\nabla^2 h(\theta)]^{-1} \nabla h(\theta)

    with the safeguards of :class:`ansatz.optim.Newton` (curvature by size, pseudo-inverse, halving
    of s). For a linear network and a likelihood with its canonical link (normal with known or
    constant variance, bernoulli, poisson) this is iteratively reweighted least squares: a handful
    of steps give the maximum-likelihood estimate of the GLM to machine precision.

    Args:
        network: at most some thousand parameters in all.
        objective: ``objective(network, batch) -> Loss(total, count)``.
        damping: added to every curvature.
        optimizer: one like :class:`ansatz.optim.Newton`, in place of ``damping``.
        penalty: ``penalty(network) -> scalar``, added to the mean.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch
        >>> from ansatz.likelihoods import Poisson
        >>> from ansatz.training import NewtonStep, Supervised
        >>> step = NewtonStep(torch.nn.Linear(1, 1), Supervised(Poisson()))
        >>> batch = Batch.of(torch.tensor([[0.0], [0.0], [1.0]]), torch.tensor([1.0, 3.0, 7.0]))
        >>> for _ in range(10):
        ...     logs = step.step(batch)
        >>> round(step.network.bias.exp().item(), 3)  # the mean count where x = 0
        2.0

    References:
        McCullagh and Nelder (1989), Generalized Linear Models, section 2.5.
    """

    def __init__(
        self,
        network: nn.Module,
        objective: nn.Module,
        *,
        damping: float = 0.0,
        optimizer: torch.optim.Optimizer | None = None,
        penalty: Callable[[nn.Module], Tensor] | None = None,
    ) -> None:
        self.network, self.objective, self.penalty = network, objective, penalty
        self.number = 0  # steps so far
        parameters = [p for m in (network, objective) for p in m.parameters() if p.requires_grad]
        self.optimizer: Any = optimizer or Newton(parameters, damping=damping)

    def step(self, batch: Batch) -> dict[str, float]:
        """Updates once; ``loss`` is the mean before it."""
        self.network.train()
        self.objective.train()

        def mean() -> Tensor:
            total, count = self.objective(self.network, batch)
            return total / count + (0.0 if self.penalty is None else self.penalty(self.network))

        loss = self.optimizer.step(mean)
        if not loss.isfinite():
            what = f"the loss is {float(loss):g}"
            raise numerical_error(self.network, self.objective, batch, what, number=self.number + 1)
        self.number += 1
        return {"loss": float(loss), "count": float(batch.weight.sum())}

    def evaluate(self, batch: Batch) -> Loss:
        """Computes the plain loss of the batch in evaluation mode, without a gradient."""
        return evaluate_batch(self.network, self.objective, batch)

    def state_dict(self) -> dict[str, Any]:
        """The number of steps: Newton's method remembers nothing else."""
        return {"number": self.number}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what ``state_dict`` gave."""
        self.number = int(state["number"])


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
