"""Dropout in predictions too: an average over networks with dropped units."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.fitting.contracts.inference import (
    Build,
    Composition,
    Fitted,
    Inference,
    Posterior,
    Predictive,
)
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.contracts.structure import Facts, Structure
from ansatz.fitting.job import Job
from ansatz.fitting.model import Trained
from ansatz.fitting.recipe import FEW, Recipe
from ansatz.fitting.task import TrainingPlan
from ansatz.fitting.training import train
from ansatz.inference.combination import Combination
from ansatz.likelihoods import Likelihood
from ansatz.seeds import generator

SAMPLES = 100
SHARE = 0.1  # of the units, where the recipe drops none
_CHANNELS = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
_UNITS = (nn.Dropout, *_CHANNELS)


class MaskedDraw:
    """A trained network with some units dropped, the same ones for every row."""

    def __init__(self, trained: Trained, seed: int, number: int) -> None:
        self.trained, self.seed, self.number = trained, seed, number
        self.network, self.answering = trained.network, trained.answering
        self.objective = trained.objective

    def __call__(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        with masked(self.trained.network, self.seed, self.number):
            return self.trained(inputs, offset)


@contextmanager
def masked(network: nn.Module, seed: int, number: int) -> Iterator[None]:
    """Multiplies the units of each dropout by one mask for all rows; all else is left alone."""

    def hook(place: int) -> Any:
        def drop(part: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
            p = float(part.p)  # type: ignore[arg-type]
            shape = list(output.shape[1:])
            if isinstance(part, _CHANNELS):
                shape[1:] = [1] * (len(shape) - 1)
            source = generator(seed, "mask", number, place)
            keep = torch.rand(shape, generator=source, dtype=torch.float64) >= p
            return output * (keep.to(output) / (1 - p))

        return drop

    handles = [
        part.register_forward_hook(hook(place)) for place, part in enumerate(dropouts(network))
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def dropouts(network: nn.Module) -> list[nn.Module]:
    """The layers of a network that drop units."""
    return [part for part in network.modules() if isinstance(part, _UNITS) and part.p > 0]


class DropoutPosterior:
    """The mixture of S networks with units dropped at random."""

    name: ClassVar[str] = "dropout"
    keeps_rows: ClassVar[bool] = False

    def __init__(
        self,
        structure: Structure,
        encoder: Encoder,
        trained: Trained,
        samples: int,
        seed: int,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.structure, self.encoder, self.trained = structure, encoder, trained
        self.seed, self.options = seed, dict(options or {})
        self.draws = [MaskedDraw(trained, seed, number) for number in range(samples)]
        weights = torch.full((samples,), 1 / samples, dtype=torch.float64)
        self.combination = Combination([trained.likelihood] * samples, weights)

    @property
    def likelihood(self) -> Likelihood:
        return self.combination.likelihood

    @property
    def parameters(self) -> int:
        return self.trained.parameters

    @property
    def networks(self) -> Sequence[Trained]:
        return [self.trained]

    def _raws(self, rows: Any, offset: Tensor | None, notes: list[str] | None) -> Any:
        draws: list[Any] = list(self.draws)
        return self.structure.raws(
            draws, self.encoder, rows, offset, notes=notes, options=self.options
        )

    def predictive(
        self, rows: Any, offset: Tensor | None = None, *, notes: list[str] | None = None
    ) -> Predictive:
        dense = self.trained.objective.axis != -1
        serve: Any = self.combination.serve_in_turn if dense else self._serve
        raws = [serve(each) for each in self._raws(rows, offset, notes)]
        return Predictive(self.likelihood, torch.cat(raws))

    def _serve(self, raws: Any) -> Tensor:
        return self.combination.serve(list(raws))

    def answer(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        return self.combination.serve([draw(inputs, offset) for draw in self.draws])

    def components(self, rows: Any, offset: Tensor | None = None) -> list[tuple[float, Predictive]]:
        found: list[list[Tensor]] = [[] for _ in self.draws]
        for each in self._raws(rows, offset, []):
            for own, raw in zip(found, each, strict=True):
                own.append(raw)
        parts = [Predictive(self.trained.likelihood, torch.cat(raws)) for raws in found]
        if self.combination.merged:
            parts = [self.combination.of_member(part) for part in parts]
        return [(1 / len(parts), part) for part in parts]

    def without_recalibration(self) -> Self:
        return self

    def composition(self, kind: torch.dtype) -> Composition:
        raise UsageError(
            "a graph drops no units: inference dropout is not exported. Export a fit with "
            "inference point or ensemble."
        )

    def tensors(self) -> dict[str, Tensor]:
        return self.trained.tensors()

    def record(self) -> dict[str, Any]:
        return {"samples": len(self.draws), "seed": self.seed}


class Dropout(Inference):
    r"""Averages the predictions of a network over random masks of its units.

    .. math:: p(y \mid x) \approx \frac1S \sum_{s=1}^S p(y \mid x, \theta \odot b_s), \qquad
        b_s \sim \text{Bernoulli}(1 - p) / (1 - p)

    The network is trained as ``point``, with dropout; in predictions each of the S masks is one
    for all rows, so that a row alone and in a table has the same prediction. Batch normalisation
    keeps its running statistics.

    References:
        Gal and Ghahramani (2016), Dropout as a Bayesian approximation.
        https://arxiv.org/abs/1506.02142
    """

    name: ClassVar[str] = "dropout"
    words: ClassVar[str] = "a network with random masks"
    averages: ClassVar[bool] = False
    few: ClassVar[float] = FEW
    settings: ClassVar[frozenset[str]] = frozenset({"samples"})

    def recipe(self, base: Recipe, facts: Facts, options: Mapping[str, Any]) -> Recipe:
        return base if base.dropout else base.model_copy(update={"dropout": SHARE})

    def fit(
        self,
        plan: TrainingPlan,
        job: Job,
        likelihood: Likelihood,
        previous: Posterior | None = None,
    ) -> Fitted:
        done = train(plan, job, likelihood)
        if not dropouts(done.trained.network):
            raise UsageError(
                f"inference dropout: {plan.network_name} drops nothing. Take a network with "
                "dropout (network mlp, or --set dropout=0.1 where the network has it)."
            )
        samples = plan.options.get("samples") or SAMPLES
        posterior = DropoutPosterior(
            plan.structure, done.encoder, done.trained, samples, plan.seed, plan.options
        )
        return Fitted(posterior, done.history, notes=done.notes)

    def rebuild(
        self,
        structure: Structure,
        encoder: Encoder,
        record: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        build: Build,
    ) -> DropoutPosterior:
        return DropoutPosterior(
            structure, encoder, build(tensors), int(record["samples"]), int(record["seed"])
        )
