"""One weight vector: the penalised maximum-likelihood estimate."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from ansatz.fitting.contracts.encoder import Encoder
from ansatz.fitting.contracts.inference import (
    Build,
    Composition,
    Fitted,
    Inference,
    Posterior,
    Predictive,
)
from ansatz.fitting.contracts.structure import Facts, Structure
from ansatz.fitting.job import Job
from ansatz.fitting.plan import Plan
from ansatz.fitting.recipe import FEW, Recipe
from ansatz.fitting.trained import Trained
from ansatz.fitting.training import train, update
from ansatz.likelihoods import Likelihood


class PointPosterior:
    """All mass on one weight vector.

    Args:
        structure: of x.
        encoder: from rows to inputs.
        trained: the network with its objective.
        options: of the fit; the structure may have some about predictions.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> x = np.linspace(0, 1, 40)[:, None]
        >>> posterior = Regressor(epochs=2).fit(x, x[:, 0]).model_.posterior
        >>> len(posterior.networks)
        1
    """

    name: ClassVar[str] = "point"
    keeps_rows: ClassVar[bool] = False

    def __init__(
        self,
        structure: Structure,
        encoder: Encoder,
        trained: Trained,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.structure, self.encoder, self.trained = structure, encoder, trained
        self.options = dict(options or {})

    @property
    def likelihood(self) -> Likelihood:
        """The law of the predictive."""
        law: Likelihood = self.trained.likelihood
        return law

    @property
    def parameters(self) -> int:
        """How many numbers were learned."""
        return self.trained.parameters

    @property
    def networks(self) -> Sequence[Trained]:
        """The one network."""
        return [self.trained]

    def predictive(
        self, rows: Any, offset: Tensor | None = None, *, notes: list[str] | None = None
    ) -> Predictive:
        """The law at the one weight vector."""
        chunks = self.structure.raws(
            [self.trained], self.encoder, rows, offset, notes=notes, options=self.options
        )
        return Predictive(self.likelihood, torch.cat([raw for each in chunks for raw in each]))

    def answer(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        """The law's parameters at encoded inputs."""
        return self.trained(inputs, offset)

    def components(self, rows: Any, offset: Tensor | None = None) -> list[tuple[float, Predictive]]:
        """The predictive itself."""
        return [(1.0, self.predictive(rows, offset))]

    def without_recalibration(self) -> Self:
        """The same: one network is not recalibrated."""
        return self

    def composition(self, kind: torch.dtype) -> Composition:
        """The one network."""
        return Composition([(self.encoder, self.trained)])

    def tensors(self) -> dict[str, Tensor]:
        """Weights and state by name."""
        return self.trained.tensors()

    def record(self) -> dict[str, Any]:
        """Nothing besides the tensors."""
        return {}


class Point(Inference):
    """Trains one network and has no doubt about it.

    References:
        Goodfellow, Bengio and Courville (2016), Deep Learning, section 5.5.

    Example:
        >>> from ansatz.inference.point import Point
        >>> Point().averages
        False
    """

    name: ClassVar[str] = "point"
    words: ClassVar[str] = "a network"
    averages: ClassVar[bool] = False
    few: ClassVar[float] = FEW

    def recipe(self, base: Recipe, facts: Facts, options: Mapping[str, Any]) -> Recipe:
        """The structure's own recipe."""
        return base

    def fit(
        self, plan: Plan, job: Job, law: Likelihood, previous: Posterior | None = None
    ) -> Fitted:
        """Trains the network of the plan, from where a previous one ended if there is one."""
        encoder, start = None, None
        if previous is not None:
            encoder, before = previous.encoder, previous.networks[0]
            start = before.network, before.objective
        done = train(plan, job, law, encoder=encoder, start=start)
        posterior = PointPosterior(plan.structure, done.encoder, done.trained, plan.options)
        return Fitted(posterior, done.history, step=done.step, notes=done.notes)

    def update(
        self,
        plan: Plan,
        job: Job,
        law: Likelihood,
        previous: Posterior | None,
        state: dict[str, Any] | None,
    ) -> Fitted:
        """Makes one pass over the rows at a constant rate."""
        encoder, start = None, None
        if previous is not None:
            encoder, before = previous.encoder, previous.networks[0]
            start = before.network, before.objective
        done = update(plan, job, law, encoder=encoder, start=start, state=state)
        posterior = PointPosterior(plan.structure, done.encoder, done.trained, plan.options)
        return Fitted(posterior, done.history, step=done.step)

    def rebuild(
        self,
        structure: Structure,
        encoder: Encoder,
        record: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        build: Build,
    ) -> PointPosterior:
        """The posterior of a saved model."""
        return PointPosterior(structure, encoder, build(tensors))
