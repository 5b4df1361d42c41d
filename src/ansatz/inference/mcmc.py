"""Chains of Monte Carlo as inferences: nuts, hmc, mala and mh."""

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from ansatz.errors import UsageError
from ansatz.fitting.contracts.inference import Build, Fitted, Inference, Posterior
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.contracts.structure import Facts, Structure
from ansatz.fitting.job import Job
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.task import TrainingPlan
from ansatz.inference.glm.laplace import is_linear
from ansatz.inference.glm.posterior import LinearDraws, rebuild_linear_draws
from ansatz.inference.glm.sampled import sample_linear
from ansatz.inference.network_chains import (
    NetworkDraws,
    is_of_network,
    rebuild_network_draws,
    sample_network,
)
from ansatz.inference.posterior_fit import posterior_recipe
from ansatz.likelihoods import Likelihood


class _Chains(Inference):
    """The common part of the samplers."""

    words: ClassVar[str] = "draws from a posterior"
    averages: ClassVar[bool] = False
    few: ClassVar[float] = 1.0
    infers_linear: ClassVar[bool] = True
    trains: ClassVar[bool] = False
    reads_network: ClassVar[bool] = False
    settings: ClassVar[frozenset[str]] = frozenset(
        {"chains", "warmup", "draws", "thin", "target_accept", "metric", "priors", "random"}
    )

    def recipe(self, base: Recipe, facts: Facts, options: Mapping[str, Any]) -> Recipe:
        return posterior_recipe(base, facts).model_copy(update={"dtype": "float64"})

    def fit(
        self,
        plan: TrainingPlan,
        job: Job,
        likelihood: Likelihood,
        previous: Posterior | None = None,
    ) -> Fitted:
        if is_linear(plan):
            return sample_linear(self.name, plan, job, likelihood, previous)
        if not self.reads_network:
            raise UsageError(
                f"inference {self.name} is for linear models: give network='linear', or take nuts."
            )
        if plan.options.get("random"):
            raise UsageError("terms that vary between groups are for network='linear'.")
        return sample_network(self.name, plan, job, likelihood, previous)

    def rebuild(
        self,
        structure: Structure,
        encoder: Encoder,
        record: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        build: Build,
    ) -> LinearDraws | NetworkDraws:
        if is_of_network(record):
            return rebuild_network_draws(self.name, structure, encoder, record, tensors, build)
        return rebuild_linear_draws(self.name, structure, encoder, record, tensors, build)


class Nuts(_Chains):
    """The no-U-turn sampler: Hamiltonian paths that end where they would turn back.

    References:
        Hoffman and Gelman (2014), The no-U-turn sampler. https://arxiv.org/abs/1111.4246
    """

    name: ClassVar[str] = "nuts"
    reads_network: ClassVar[bool] = True
    settings: ClassVar[frozenset[str]] = _Chains.settings | {"max_depth"}


class HamiltonianMonteCarlo(_Chains):
    """Hamiltonian Monte Carlo with paths of random length.

    References:
        Neal (2011), MCMC using Hamiltonian dynamics. https://arxiv.org/abs/1206.1901
    """

    name: ClassVar[str] = "hmc"
    reads_network: ClassVar[bool] = True


class Mala(_Chains):
    """Metropolis-adjusted Langevin: one step along the gradient, accepted or not.

    References:
        Roberts and Tweedie (1996), Exponential convergence of Langevin distributions.
    """

    name: ClassVar[str] = "mala"


class MetropolisHastings(_Chains):
    """A normal random walk, accepted or not.

    References:
        Metropolis et al. (1953), Equation of state calculations by fast computing machines.
    """

    name: ClassVar[str] = "mh"
