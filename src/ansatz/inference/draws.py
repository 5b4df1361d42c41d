"""A posterior made of draws of the weights of one network."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from ansatz.data.batch import count_rows, take_rows
from ansatz.errors import ModelError, UsageError
from ansatz.fitting.contracts.inference import Build, Composition, Predictive
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.model import Trained
from ansatz.inference.combination import Combination
from ansatz.inference.weights import WeightVector, at_weights, in_turn
from ansatz.likelihoods import Likelihood

MOST_BYTES = 256 * 2**20  # of draws in a model
MOST_MEMBERS = 50  # of an exported graph
SERVED = 2**22  # raw numbers of all draws that are mixed at once


class DrawsPosterior:
    r"""S draws of the weights of one network, equally likely.

    .. math:: p(y \mid x) = \frac1S \sum_{s=1}^S p(y \mid x, \theta_s)

    A draw is one vector: the weights of the network, then the parameters of the likelihood, in the
    order of ``named_parameters`` (:class:`~ansatz.inference.weights.WeightVector`). Buffers, shift
    and scale are those of ``trained``, whose own weights are the centre of the posterior.

    Args:
        name: of the inference that made the draws.
        structure: of x.
        encoder: from rows to inputs.
        trained: the network at the centre.
        draws: ``(S, D)``.
        options: of the fit.
        state: what else the inference records, as JSON.
        others: further tensors that the inference saves, by name.
    """

    keeps_rows: ClassVar[bool] = False

    def __init__(
        self,
        name: str,
        structure: Structure,
        encoder: Encoder,
        trained: Trained,
        draws: Tensor,
        options: Mapping[str, Any] | None = None,
        *,
        state: Mapping[str, Any] | None = None,
        others: Mapping[str, Tensor] | None = None,
    ) -> None:
        self.name, self.structure, self.encoder = name, structure, encoder
        self.trained, self.draws, self.options = trained, draws, dict(options or {})
        self.state, self.others = dict(state or {}), dict(others or {})
        self.weights = WeightVector(trained)
        if draws.ndim != 2 or not len(draws) or draws.shape[1] != self.weights.size:
            raise ModelError(
                f"draws should be (S, {self.weights.size}) for this network, "
                f"got {tuple(draws.shape)}."
            )
        likelihoods = [self.weights.likelihood(draw) for draw in draws]
        self.combination = Combination(
            likelihoods, torch.full((len(draws),), 1 / len(draws), dtype=torch.float64)
        )

    @property
    def likelihood(self) -> Likelihood:
        return self.combination.likelihood

    @property
    def parameters(self) -> int:
        """D: the draws are of the same parameters."""
        return self.weights.size

    @property
    def networks(self) -> Sequence[Trained]:
        """The network at the centre of the posterior."""
        return [self.trained]

    def predictive(
        self, rows: Any, offset: Tensor | None = None, *, notes: list[str] | None = None
    ) -> Predictive:
        if self.trained.objective.axis == -1:
            asked: list[Any] = [_Served(self)]
            raws = [next(iter(each)) for each in self._chunks(asked, rows, offset, notes)]
        else:
            chunks = self._chunks(list(in_turn(self.trained, self.draws)), rows, offset, notes)
            raws = [self.combination.serve_in_turn(each) for each in chunks]
        return Predictive(self.likelihood, torch.cat(raws))

    def _chunks(
        self, asked: list[Any], rows: Any, offset: Tensor | None, notes: list[str] | None
    ) -> Any:
        return self.structure.raws(
            asked, self.encoder, rows, offset, notes=notes, options=self.options
        )

    def answer(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        with torch.no_grad():
            raws = self.weights.raws(self.draws, inputs, offset).double()
            return self.combination.serve(list(raws))

    def components(self, rows: Any, offset: Tensor | None = None) -> list[tuple[float, Predictive]]:
        """The predictive of every draw."""
        draws = list(in_turn(self.trained, self.draws))
        found: list[list[Tensor]] = [[] for _ in draws]
        for each in self._chunks(draws, rows, offset, []):
            for own, raw in zip(found, each, strict=True):
                own.append(raw)
        pairs = zip(self.combination.likelihoods, found, strict=True)
        parts = [Predictive(likelihood, torch.cat(raws)) for likelihood, raws in pairs]
        if self.combination.merged:
            parts = [self.combination.of_member(part) for part in parts]
        return [(1 / len(parts), part) for part in parts]

    def without_recalibration(self) -> Self:
        return self

    def composition(self, kind: torch.dtype) -> Composition:
        if len(self.draws) > MOST_MEMBERS:
            raise UsageError(
                f"an exported graph holds {MOST_MEMBERS} draws at most, this model has "
                f"{len(self.draws)}. Fit with fewer draws, or export a fit with inference point."
            )
        mixed = copy.deepcopy(self.combination)
        for likelihood in mixed.likelihoods:
            likelihood.to(kind)
        return Composition(
            [(self.encoder, at_weights(self.trained, draw)) for draw in self.draws],
            mixed.likelihood.to(kind),
            mixed.serve,
            {"draws": len(self.draws)},
        )

    def tensors(self) -> dict[str, Tensor]:
        """The network at the centre, the draws, and what else the inference keeps."""
        return {**self.trained.tensors(), "draws": self.draws, **self.others}

    def record(self) -> dict[str, Any]:
        return {**self.state, "draws": len(self.draws)}


class _Served:
    """All draws of a network as one, whose answer is their mixture's."""

    def __init__(self, posterior: DrawsPosterior) -> None:
        self.posterior = posterior
        trained = posterior.trained
        self.network, self.answering = trained.network, trained.answering
        self.objective = trained.objective

    def __call__(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        rows, draws = count_rows(inputs), len(self.posterior.draws)
        shift = self.objective.shift
        size = max(1, SERVED // (draws * (1 if shift is None else shift.numel())))
        parts = [slice(first, first + size) for first in range(0, max(rows, 1), size)]
        return torch.cat(
            [
                self.posterior.answer(
                    take_rows(inputs, part), None if offset is None else offset[part]
                )
                for part in parts
            ]
        )


def rebuild_draws(
    name: str,
    structure: Structure,
    encoder: Encoder,
    record: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    build: Build,
) -> DrawsPosterior:
    """The posterior of a saved model, from its record and tensors."""
    own = {n: t for n, t in tensors.items() if n.startswith(("network.", "objective."))}
    draws = tensors.get("draws")
    if draws is None or len(draws) != record["draws"]:
        raise ModelError(f"expected {record['draws']} draws of the weights.")
    others = {n: t for n, t in tensors.items() if n not in own and n != "draws"}
    state = {n: value for n, value in record.items() if n != "draws"}
    return DrawsPosterior(name, structure, encoder, build(own), draws, state=state, others=others)


def thin(draws: Tensor, most: int = MOST_BYTES) -> tuple[Tensor, str | None]:
    """Draws that a model can hold, evenly spaced, and a note where some were left out.

    Example:
        >>> import torch
        >>> from ansatz.inference.draws import thin
        >>> kept, note = thin(torch.zeros(10, 4), most=5 * 4 * 4)
        >>> kept.shape, note
        (torch.Size([5, 4]), '5 of 10 draws are kept: all would take 0.0 GB.')
    """
    size = draws.element_size() * max(1, draws.shape[1])
    count = max(1, most // size)
    if len(draws) <= count:
        return draws, None
    places = torch.linspace(0, len(draws) - 1, count).round().long()
    total = len(draws) * size / 1e9
    return draws[places], f"{count} of {len(draws)} draws are kept: all would take {total:.1f} GB."
