"""The posterior of a solved linear model: its coefficients, and the error of their estimation."""

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.errors import ModelError
from ansatz.fitting.contracts.inference import Composition, Predictive
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.model import PointPosterior, Trained
from ansatz.likelihoods import Likelihood
from ansatz.likelihoods.marginal import Marginal, averaged_over_error, stays_itself
from ansatz.linear.predictive import EstimationError
from ansatz.training import Supervised

_PREFIX = "error."


class _AsItIs(Supervised):
    """Numbers that no offset and no scale changes."""

    def attach(self, output: Tensor, offset: Tensor | None = None) -> Tensor:
        return output


class LinearPosterior(PointPosterior):
    """A linear model whose predictive distribution accounts for the error of its coefficients.

    See :class:`ansatz.likelihoods.marginal.Marginal` for the distribution. ``likelihood`` is the
    averaged one; ``trained`` has the maximum-likelihood coefficients and their likelihood.
    """

    def __init__(
        self,
        structure: Structure,
        encoder: Encoder,
        trained: Trained,
        error: EstimationError,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(structure, encoder, trained, options)
        self.error = Trained(error, _AsItIs(trained.likelihood), "estimation_error", {})
        *_, last = (m for m in trained.network.modules() if isinstance(m, nn.Linear))
        self.averaged = averaged_over_error(
            trained.likelihood,
            last.out_features // len(error.root),
            error.varying,
            df=float(error.df),
            inflation=float(error.inflation),
        )

    @property
    def likelihood(self) -> Likelihood:
        likelihood: Likelihood = self.trained.likelihood
        return likelihood if stays_itself(likelihood) else self.averaged

    def serve(self, raws: list[Tensor]) -> Tensor:
        """The raw numbers of ``likelihood``, from the coefficients' and the root of their error."""
        together = torch.cat(raws, -1)
        if stays_itself(self.trained.likelihood):
            assert isinstance(self.averaged, Marginal)
            return self.averaged.merged(together)
        return together

    def predictive(
        self, rows: Any, offset: Tensor | None = None, *, notes: list[str] | None = None
    ) -> Predictive:
        chunks = self.structure.raws(
            [self.trained, self.error],
            self.encoder,
            rows,
            offset,
            notes=notes,
            options=self.options,
        )
        return Predictive(self.likelihood, torch.cat([self.serve(list(each)) for each in chunks]))

    def answer(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        return self.serve([self.trained(inputs, offset), self.error(inputs, offset)])

    def composition(self, kind: torch.dtype) -> Composition:
        members = [(self.encoder, self.trained), (self.encoder, self.error)]
        likelihood, words = copy.deepcopy(self.likelihood).to(kind), {}
        if isinstance(likelihood, Marginal) and not likelihood.is_exact:
            words["weights"] = likelihood.log_weights.exp().tolist()
        return Composition(members, likelihood, self.serve, words)

    def tensors(self) -> dict[str, Tensor]:
        state = self.error.network.state_dict()
        return self.trained.tensors() | {f"{_PREFIX}{name}": value for name, value in state.items()}


def rebuild_linear(
    structure: Structure, encoder: Encoder, trained: Trained, tensors: Mapping[str, Tensor]
) -> PointPosterior:
    """The posterior of saved tensors, with the error of its estimation where that was saved."""
    state = {n.removeprefix(_PREFIX): t for n, t in tensors.items() if n.startswith(_PREFIX)}
    if not state:
        return PointPosterior(structure, encoder, trained)
    names = ("root", "df", "inflation", "several")
    if set(state) != set(names) or not _fits(trained, state):
        raise ModelError("the estimation error of the linear model does not fit its coefficients.")
    return LinearPosterior(
        structure, encoder, trained, EstimationError(*(state[name].double() for name in names))
    )


def _fits(trained: Trained, state: Mapping[str, Tensor]) -> bool:
    """Whether the tensors of an estimation error have the shapes of the coefficients."""
    root, numbers = state["root"], [state[name] for name in ("df", "inflation", "several")]
    if root.ndim != 4 or any(each.numel() != 1 for each in numbers):
        return False
    if not all(bool(torch.isfinite(each).all()) for each in (root, *numbers)):
        return False
    matrices = [p for p in trained.network.parameters() if p.ndim == 2]
    outputs, shift = matrices[0].shape[0], trained.objective.shift
    several, (targets, raw) = False, (1, outputs)
    if shift is not None and shift.ndim == 2:
        several, (targets, raw) = True, shift.shape
    return (
        targets * raw == outputs
        and root.shape[:2] == (targets, sum(p.shape[-1] for p in matrices) + 1)
        and 1 <= root.shape[2] <= raw
        and bool(numbers[2]) == several
        and min(float(each) for each in numbers[:2]) > 0
    )
