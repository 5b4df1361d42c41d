"""The mode of the posterior."""

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from ansatz.fitting.contracts.inference import Build, Fitted, Inference, Posterior
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.contracts.structure import Facts, Structure
from ansatz.fitting.job import Job
from ansatz.fitting.model import PointPosterior, Trained
from ansatz.fitting.recipe import FEW, Recipe
from ansatz.fitting.task import TrainingPlan
from ansatz.fitting.training import finish_pair
from ansatz.inference.glm.laplace import fit_linear_laplace, is_linear
from ansatz.inference.glm.posterior import LinearDraws, is_of_linear, rebuild_linear_draws
from ansatz.inference.posterior_fit import (
    begin,
    fit_mode,
    mode_note,
    posterior_recipe,
    priors_note,
)
from ansatz.likelihoods import Likelihood


class ModePosterior(PointPosterior):
    """All mass on the mode of a posterior."""

    name: ClassVar[str] = "map"

    def __init__(
        self,
        structure: Structure,
        encoder: Encoder,
        trained: Trained,
        options: Mapping[str, Any] | None = None,
        *,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(structure, encoder, trained, options)
        self.state = dict(state or {})

    def record(self) -> dict[str, Any]:
        """The prior, and the norm of the gradient at the mode."""
        return dict(self.state)


class Map(Inference):
    r"""Finds a mode of the posterior: the weights of the largest density, given all rows.

    .. math:: \hat\theta = \arg\max_\theta \sum_i w_i \log p(y_i \mid x_i, \theta) + \log p(\theta)

    with the prior of :class:`~ansatz.inference.weight_prior.WeightPrior` at the median of its
    scales. There is no early stopping, no weight decay and no dropout: the prior takes their place.
    The norm of the gradient says how far from a mode the training ended.

    References:
        MacKay (1992), A practical Bayesian framework for backpropagation networks.
    """

    name: ClassVar[str] = "map"
    words: ClassVar[str] = "the mode of a posterior"
    averages: ClassVar[bool] = False
    few: ClassVar[float] = FEW
    infers_linear: ClassVar[bool] = True
    settings: ClassVar[frozenset[str]] = frozenset({"priors", "random"})

    def recipe(self, base: Recipe, facts: Facts, options: Mapping[str, Any]) -> Recipe:
        return posterior_recipe(base, facts)

    def fit(
        self,
        plan: TrainingPlan,
        job: Job,
        likelihood: Likelihood,
        previous: Posterior | None = None,
    ) -> Fitted:
        if is_linear(plan):
            return fit_linear_laplace(self.name, plan, job, likelihood, sampled=False)
        start = begin(plan, job, likelihood, self.name)
        history, norm = fit_mode(plan, job, start)
        trained = finish_pair(plan, start.encoder, start.network, start.objective)
        state = {"prior": start.prior.words(), "gradient_norm": norm}
        posterior = ModePosterior(plan.structure, start.encoder, trained, plan.options, state=state)
        return Fitted(posterior, history, notes=(priors_note(start.prior), mode_note(norm)))

    def rebuild(
        self,
        structure: Structure,
        encoder: Encoder,
        record: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        build: Build,
    ) -> ModePosterior | LinearDraws:
        if is_of_linear(record):
            return rebuild_linear_draws(self.name, structure, encoder, record, tensors, build)
        return ModePosterior(structure, encoder, build(tensors), state=record)
