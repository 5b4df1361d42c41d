"""One weight vector: the penalised maximum-likelihood estimate."""

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from ansatz.fitting.contracts.inference import Build, Fitted, Inference, Posterior
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.contracts.structure import Facts, Structure
from ansatz.fitting.job import Job
from ansatz.fitting.linear_posterior import rebuild_linear
from ansatz.fitting.model import PointPosterior
from ansatz.fitting.recipe import FEW, Recipe
from ansatz.fitting.task import TrainingPlan
from ansatz.fitting.training import train, update
from ansatz.likelihoods import Likelihood


class Point(Inference):
    """Trains one network and has no doubt about it.

    References:
        Goodfellow, Bengio and Courville (2016), Deep Learning, section 5.5.
    """

    name: ClassVar[str] = "point"
    words: ClassVar[str] = "a network"
    averages: ClassVar[bool] = False
    few: ClassVar[float] = FEW
    settings: ClassVar[frozenset[str]] = frozenset({"members"})

    def recipe(self, base: Recipe, facts: Facts, options: Mapping[str, Any]) -> Recipe:
        return base

    def fit(
        self,
        plan: TrainingPlan,
        job: Job,
        likelihood: Likelihood,
        previous: Posterior | None = None,
    ) -> Fitted:
        """Trains the network of the plan, from where a previous one ended if there is one."""
        encoder, start = None, None
        if previous is not None:
            encoder, before = previous.encoder, previous.networks[0]
            start = before.network, before.objective
        done = train(plan, job, likelihood, encoder=encoder, start=start)
        posterior = PointPosterior(plan.structure, done.encoder, done.trained, plan.options)
        return Fitted(posterior, done.history, step=done.step, notes=done.notes)

    def update(
        self,
        plan: TrainingPlan,
        job: Job,
        likelihood: Likelihood,
        previous: Posterior | None,
        state: dict[str, Any] | None,
    ) -> Fitted:
        encoder, start = None, None
        if previous is not None:
            encoder, before = previous.encoder, previous.networks[0]
            start = before.network, before.objective
        done = update(plan, job, likelihood, encoder=encoder, start=start, state=state)
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
        return rebuild_linear(structure, encoder, build(tensors), tensors)
