"""Newton's method as a training step, for models small enough for their Hessian."""

from typing import Any

from torch import Tensor, nn

from ansatz.data.batch import Batch
from ansatz.errors import NumericalError
from ansatz.optim.newton import Newton
from ansatz.training.diagnosis import diagnose
from ansatz.training.objectives import Loss
from ansatz.training.step import evaluate_batch


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

    def __init__(self, network: nn.Module, objective: nn.Module, *, damping: float = 0.0) -> None:
        self.network, self.objective = network, objective
        self.number = 0  # steps so far
        parameters = [p for m in (network, objective) for p in m.parameters() if p.requires_grad]
        self.optimizer = Newton(parameters, damping=damping)

    def step(self, batch: Batch) -> dict[str, float]:
        """One update; ``loss`` is the mean before it."""
        self.network.train()
        self.objective.train()

        def mean() -> Tensor:
            total, count = self.objective(self.network, batch)
            return total / count

        loss = self.optimizer.step(mean)
        if not loss.isfinite():
            self._refuse(float(loss), batch)
        self.number += 1
        return {"loss": float(loss), "count": float(batch.weight.sum())}

    def evaluate(self, batch: Batch) -> Loss:
        """The plain loss of the batch in evaluation mode, without a gradient."""
        return evaluate_batch(self.network, self.objective, batch)

    def state_dict(self) -> dict[str, Any]:
        """The number of steps: Newton's method remembers nothing else."""
        return {"number": self.number}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what ``state_dict`` gave."""
        self.number = int(state["number"])

    def _refuse(self, loss: float, batch: Batch) -> None:
        finding = diagnose(self.network, self.objective, batch)
        rows = (finding.rows or batch.index.tolist())[:5]
        whose = "row" if len(rows) == 1 else "rows"
        raise NumericalError(
            f"the loss is {loss:g} at step {self.number + 1}: {finding.place} "
            f"({whose} {', '.join(map(str, rows))} of the batch). The update was not applied. "
            f"{finding.advice}"
        )
