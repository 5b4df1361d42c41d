"""The posterior of functions behind a likelihood: a mixture over their normal distribution."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self

import torch
from torch import Tensor

from ansatz import likelihoods
from ansatz.fitting.contracts.inference import Posterior, Predictive
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.model import Trained
from ansatz.inference.combination import Combination
from ansatz.inference.normal_points import normal_nodes, root
from ansatz.kernels.inputs import as_numbers
from ansatz.likelihoods import Likelihood
from ansatz.spec import TargetSpec
from ansatz.storage import load_into
from ansatz.training import Supervised

BLOCK = 4_096  # rows that are answered at once
_PREFIX = "objective."


class Functions(Protocol):
    """Normal functions of x, as tensors and JSON."""

    def predict(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean ``(M, Q)`` and covariance ``(M, Q, Q)`` at rows ``(M, D)``."""
        ...


class LatentPosterior(Posterior):
    r"""Functions that are normal given the rows, with a likelihood behind them.

    .. math:: p(y \mid x) = \int p(y \mid f)\, N(f; m(x), V(x))\, df

    by Gauss-Hermite quadrature for one function and by even normal points for more, the
    same for every row.

    Args:
        name: of the inference that made it.
        encoder: from rows to inputs.
        functions: what predicts f.
        objective: with the likelihood and the constant model that f is added to.
        state: what the inference records, as JSON.
        kept: the tensors that the inference saves, by name.
        parameters: the number of estimated parameters.
    """

    keeps_rows: ClassVar[bool] = True
    networks: tuple[Trained, ...] = ()  # of the contract, read only

    def __init__(
        self,
        name: str,
        encoder: Encoder,
        functions: Functions,
        objective: Supervised,
        *,
        state: Mapping[str, Any],
        kept: Mapping[str, Tensor],
        parameters: int,
    ) -> None:
        self._name, self._encoder, self.functions = name, encoder, functions
        self.objective = objective.double().eval().requires_grad_(False)
        self.options: dict[str, Any] = {}
        self._state, self._kept, self._parameters = dict(state), dict(kept), parameters
        shift = objective.shift
        self.normals, weights = normal_nodes(1 if shift is None else shift.numel())
        own = self.objective.likelihood
        self.combination = Combination([own] * len(weights), weights)

    @property
    def name(self) -> str:
        return self._name

    @property
    def likelihood(self) -> Likelihood:
        return self.combination.likelihood

    @property
    def encoder(self) -> Encoder:
        return self._encoder

    @property
    def parameters(self) -> int:
        """The kernel's parameters, and those of the likelihood."""
        return self._parameters

    def _draws(self, inputs: tuple[Tensor, ...], offset: Tensor | None) -> Tensor:
        mean, covariance = self.functions.predict(as_numbers(inputs, self._encoder.spec))
        draws = mean + torch.einsum("bqr,sr->sbq", root(covariance), self.normals)
        offset = None if offset is None else offset.double()
        return torch.stack([self.objective.attach(draw, offset) for draw in draws])

    def answer(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        found = []
        for first in range(0, max(len(inputs[0]), 1), BLOCK):
            part = slice(first, first + BLOCK)
            own = None if offset is None else offset[part]
            draws = self._draws(tuple(each[part] for each in inputs), own)
            found.append(self.combination.serve(list(draws)))
        return torch.cat(found)

    def predictive(
        self, rows: Any, offset: Tensor | None = None, *, notes: list[str] | None = None
    ) -> Predictive:
        inputs = self._encoder.inputs(rows, notes=notes)
        return Predictive(self.likelihood, self.answer(inputs, offset))

    def components(self, rows: Any, offset: Tensor | None = None) -> list[tuple[float, Predictive]]:
        draws = self._draws(self._encoder.inputs(rows, notes=[]), offset)
        parts = [Predictive(self.objective.likelihood, draw) for draw in draws]
        if self.combination.merged:
            parts = [self.combination.of_member(part) for part in parts]
        return list(zip(self.combination.weights.tolist(), parts, strict=True))

    def without_recalibration(self) -> Self:
        return self

    def tensors(self) -> dict[str, Tensor]:
        own = {f"{_PREFIX}{name}": value for name, value in self.objective.state_dict().items()}
        return {**own, **self._kept}

    def record(self) -> dict[str, Any]:
        return {**self._state, "likelihood": objective_record(self.objective)}


def objective_record(objective: Supervised) -> dict[str, Any]:
    """The likelihood of an objective, as JSON."""
    likelihood: Any = objective.likelihood
    return {
        "name": likelihood.name,
        "options": likelihood.options,
        "classes": getattr(likelihood, "classes", 0),
    }


def rebuild_objective(record: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Supervised:
    """The objective of a saved posterior."""
    law = record["likelihood"]
    likelihood = likelihoods.create(law["name"], **law["options"]).double()
    likelihood.outputs(TargetSpec(classes=int(law["classes"])))
    own = {n.removeprefix(_PREFIX): t for n, t in tensors.items() if n.startswith(_PREFIX)}
    objective = Supervised(likelihood, own.get("shift"), own.get("scale"))
    load_into(objective, own, where="weights.safetensors")
    return objective
