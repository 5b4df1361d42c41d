"""The posterior of an ensemble: members mixed by weight, and one recalibration factor."""

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ansatz.fitting.contracts.inference import Composition, Predictive
from ansatz.fitting.model import PointPosterior, Trained
from ansatz.inference.combination import Combination
from ansatz.likelihoods import Likelihood


class EnsemblePosterior:
    """Members mixed by weight, their mixture recalibrated by one factor.

    Args:
        members: of one likelihood; a linear model may be the last of them.
        weights: ``(S,)``.
        factor: of recalibration; 1 for none.
    """

    name: ClassVar[str] = "ensemble"
    keeps_rows: ClassVar[bool] = False

    def __init__(
        self, members: Sequence[PointPosterior], weights: Tensor, factor: float = 1.0
    ) -> None:
        self.members = list(members)
        self.structure, self.encoder = members[0].structure, members[0].encoder
        self.combination = Combination([member.likelihood for member in members], weights, factor)

    @property
    def options(self) -> dict[str, Any]:
        """The options of the fit, some of them about predictions."""
        return self.members[0].options

    @options.setter
    def options(self, options: dict[str, Any]) -> None:
        self.members = [copy.copy(member) for member in self.members]
        for member in self.members:
            member.options = options

    @property
    def likelihood(self) -> Likelihood:
        return self.combination.likelihood

    @property
    def weights(self) -> Tensor:
        """The weights of the members, ``(S,)``."""
        return self.combination.weights

    @property
    def factor(self) -> float:
        """The factor of recalibration; 1 for none."""
        return self.combination.factor

    @property
    def parameters(self) -> int:
        return sum(member.parameters for member in self.members)

    @property
    def networks(self) -> Sequence[Trained]:
        return [member.trained for member in self.members if member.encoder is self.encoder]

    @property
    def linear(self) -> PointPosterior | None:
        last = self.members[-1]
        return None if last.encoder is self.encoder else last

    def predictive(
        self, rows: Any, offset: Tensor | None = None, *, notes: list[str] | None = None
    ) -> Predictive:
        trained = list(self.networks)
        chunks = self.structure.raws(
            trained, self.encoder, rows, offset, notes=notes, options=self.options
        )
        if self.linear is None:
            dense = trained[0].objective.axis != -1
            serve = self.combination.serve_in_turn if dense else self._serve
            return Predictive(self.likelihood, torch.cat([serve(each) for each in chunks]))
        raws = [torch.cat(parts) for parts in zip(*map(list, chunks), strict=True)]
        last = self.linear.predictive(rows, offset, notes=[]).raw
        return Predictive(self.likelihood, self.combination.serve([*raws, last]))

    def _serve(self, raws: Any) -> Tensor:
        return self.combination.serve(list(raws))

    def answer(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        with torch.no_grad():
            return self.combination.serve([m.answer(inputs, offset) for m in self.members])

    def components(self, rows: Any, offset: Tensor | None = None) -> list[tuple[float, Predictive]]:
        shares = zip(self.weights.tolist(), self.members, strict=True)
        found = [(share, m.predictive(rows, offset, notes=[])) for share, m in shares]
        if not self.combination.merged:
            return found
        return [(share, self.combination.of_member(part)) for share, part in found]

    def without_recalibration(self) -> "EnsemblePosterior":
        if self.combination.factor == 1:
            return self
        return EnsemblePosterior(self.members, self.weights)

    def composition(self, kind: torch.dtype) -> Composition:
        mixed = copy.deepcopy(self.combination)
        for likelihood in mixed.likelihoods:
            likelihood.to(kind)
        words = {"members": len(mixed.likelihoods), "weights": mixed.weights.tolist()}
        parts = [member.composition(kind) for member in self.members]

        def combine(raws: list[Tensor]) -> Tensor:
            left, found = list(raws), []
            for part in parts:
                own, left = left[: len(part.members)], left[len(part.members) :]
                found.append(own[0] if part.combine is None else part.combine(own))
            return mixed.serve(found)

        return Composition(
            [member for part in parts for member in part.members],
            mixed.likelihood.to(kind),
            combine,
            {**words, "factor": mixed.factor},
        )

    def tensors(self) -> dict[str, Tensor]:
        """Stacks the networks' tensors; the linear model and the merged likelihood stay apart."""
        parts = [trained.tensors() for trained in self.networks]
        found = {name: torch.stack([part[name] for part in parts]) for name in parts[0]}
        if self.linear is not None:
            own = self.linear.tensors()
            found |= {f"linear.{name}": value for name, value in own.items()}
        if self.combination.merged:
            served = self.combination.likelihood.state_dict()
            found |= {f"served.{name}": value for name, value in served.items()}
        return found

    def record(self) -> dict[str, Any]:
        record: dict[str, Any] = {
            "members": len(self.networks),
            "weights": self.weights.tolist(),
            "factor": self.factor,
            "linear": None,
        }
        if self.linear is not None:
            likelihood = self.linear.trained.likelihood
            *_, last = (
                m for m in self.linear.trained.network.modules() if isinstance(m, nn.Linear)
            )
            record["linear"] = {
                "preprocessing": self.linear.encoder.state(),
                "likelihood": {"name": likelihood.name, "options": likelihood.options},
                "outputs": int(last.out_features),
            }
        return record
