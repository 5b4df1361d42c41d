"""The posterior of a network of infinite width: a linear map of kernels with the training rows."""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor

from ansatz.fitting.contracts.inference import Posterior, Predictive
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.model import Trained
from ansatz.inference.latent_posterior import objective_record
from ansatz.kernels import Twin
from ansatz.likelihoods import Likelihood
from ansatz.training import Supervised

BLOCK = 2_048  # rows that are answered at once
PROBIT = torch.pi / 8  # MacKay (1992), The evidence framework applied to classification networks


class Solution(NamedTuple):
    r"""What predicts: mean :math:`\Theta_* M y` and variance of the functions.

    .. math:: V(x) = v \big( \Sigma(x, x) - 2 \Sigma_* M^\top \Theta_*^\top +
        \Theta_* S\, \Theta_*^\top \big)

    with the covariance :math:`\Sigma` of the twin and :math:`\Theta` its tangent kernel, or
    :math:`\Sigma` again.
    """

    solved: Tensor  # M y, (N, Q)
    inner: Tensor | None  # M, (N, N); None where the kernels are one, then S = M
    outer: Tensor  # S, (N, N)
    scale: float  # v
    noise: float | None = None  # by the evidence, for a number


class WidePosterior(Posterior):
    r"""Functions of a network of infinite width, given the training rows, which it holds.

    The mean and the variance at x follow from the twin's kernels (:class:`Solution`). For numbers
    the outcome is normal around the function with a constant noise. Classes are regressed: one
    centred indicator for each; the logits are

    .. math:: \log \pi_c + \beta\, m_c(x) / \sqrt{1 + \tfrac\pi8 \beta^2 V(x)}

    with the shares :math:`\pi` of the classes and :math:`\beta` fitted to held-out rows.

    Args:
        name: of the inference.
        encoder: from rows to inputs.
        twin: of the network.
        trained: the finite network at its start.
        inputs: of the training rows.
        solution: what predicts.
        state: ``level`` (the noise or beta) and what else the inference records.
    """

    keeps_rows: ClassVar[bool] = True
    networks: tuple[Trained, ...] = ()  # of the contract, read only

    def __init__(
        self,
        name: str,
        encoder: Encoder,
        twin: Twin,
        objective: Supervised,
        inputs: tuple[Tensor, ...],
        solution: Solution,
        state: Mapping[str, Any],
    ) -> None:
        self._name, self._encoder, self.twin, self.objective = name, encoder, twin, objective
        self.state = dict(state)
        # Rows of a matrix after one another, as a loaded model has them: it predicts the same bits.
        self.inputs = tuple(each.contiguous() for each in inputs)
        inner = None if solution.inner is None else solution.inner.contiguous()
        self.solution = solution._replace(
            solved=solution.solved.contiguous(), inner=inner, outer=solution.outer.contiguous()
        )
        self.options: dict[str, Any] = {}

    @property
    def name(self) -> str:
        return self._name

    @property
    def likelihood(self) -> Likelihood:
        found: Likelihood = self.objective.likelihood
        return found

    @property
    def encoder(self) -> Encoder:
        return self._encoder

    @property
    def parameters(self) -> int:
        """The scale of the functions, the noise or the scale of the logits, and the constants."""
        assert self.objective.shift is not None
        return 2 + self.objective.shift.numel()

    def functional(self, inputs: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """Mean ``(M, Q)`` and variance ``(M,)`` of the functions, which all functions share."""
        solution = self.solution
        if solution.inner is None:
            covariance = self.twin.nngp(inputs, self.inputs)
            tangent = covariance
            crossed = None
        else:
            covariance, tangent = self.twin.both(inputs, self.inputs)
            crossed = tangent @ solution.inner
        mean = tangent @ solution.solved
        outer = ((tangent @ solution.outer) * tangent).sum(1)
        own = self.twin.variance(inputs)
        variance = (
            own - outer if crossed is None else own - 2 * (crossed * covariance).sum(1) + outer
        )
        return mean, solution.scale * variance.clamp(min=0)

    def answer(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        raws = []
        for first in range(0, max(len(inputs[0]), 1), BLOCK):
            mean, variance = self.functional(tuple(t[first : first + BLOCK] for t in inputs))
            raws.append(raw_of(self.objective, mean, variance, float(self.state["level"])))
        raw = torch.cat(raws)
        if offset is None:
            return raw
        return torch.cat([raw[:, :1] + offset.double().reshape(-1, 1), raw[:, 1:]], 1)

    def predictive(
        self, rows: Any, offset: Tensor | None = None, *, notes: list[str] | None = None
    ) -> Predictive:
        inputs = self._encoder.inputs(rows, notes=notes)
        return Predictive(self.likelihood, self.answer(inputs, offset))

    def components(self, rows: Any, offset: Tensor | None = None) -> list[tuple[float, Predictive]]:
        return [(1.0, self.predictive(rows, offset))]

    def without_recalibration(self) -> Self:
        return self

    def tensors(self) -> dict[str, Tensor]:
        found = {f"objective.{n}": value for n, value in self.objective.state_dict().items()}
        found |= {f"inputs.{k}": each.contiguous() for k, each in enumerate(self.inputs)}
        found |= {"solved": self.solution.solved, "outer": self.solution.outer}
        if self.solution.inner is not None:
            found["inner"] = self.solution.inner
        return found

    def record(self) -> dict[str, Any]:
        own = {"scale": self.solution.scale, "likelihood": objective_record(self.objective)}
        return {**self.state, **own}


def raw_of(objective: Supervised, mean: Tensor, variance: Tensor, level: float) -> Tensor:
    """The likelihood's numbers of functions with this mean and variance.

    Args:
        objective: with the likelihood and the constant model.
        mean: ``(M, Q)``.
        variance: ``(M,)``.
        level: the variance of the noise, or for classes beta.
    """
    assert objective.shift is not None and objective.scale is not None
    likelihood: Any = objective.likelihood
    if likelihood.name == "normal":
        shift, unit = objective.shift[0], objective.scale[0]
        sd = unit * (variance + level).sqrt()
        return torch.stack([shift + unit * mean[:, 0], likelihood.dispersion.start(sd)], 1)
    slope = level / (1 + PROBIT * level**2 * variance).sqrt()
    return objective.shift + slope[:, None] * mean
