"""Posteriors drawn by minibatches: stochastic gradient Langevin and Hamiltonian dynamics."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.fitting.contracts.inference import Build, Fitted, Inference, Posterior
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.contracts.structure import Facts, Structure
from ansatz.fitting.job import Job
from ansatz.fitting.recipe import FEW, Recipe
from ansatz.fitting.task import TrainingPlan
from ansatz.fitting.training import finish_pair
from ansatz.inference.draws import DrawsPosterior, rebuild_draws, thin
from ansatz.inference.langevin_step import LangevinStep
from ansatz.inference.posterior_fit import begin, posterior_recipe, priors_note, run
from ansatz.inference.weights import WeightVector
from ansatz.likelihoods import Likelihood

STEP_SIZE, LARGEST = 1e-4, 0.1  # eta, and eta N: the rate of the mean loss
FRICTION = 0.1
CYCLES = 4
DRAWS = 100
BATCH = 128


class SGLD(Inference):
    r"""Draws weights by stochastic gradient Langevin dynamics, in cycles of the step size.

    .. math:: \theta' = \theta + \tfrac h2 \hat g(\theta) + \sqrt h\, z

    without a Metropolis test: the draws are those of the posterior only as h goes to 0. Each cycle
    finds its own region; the predictive is the mixture over all of them. The default step size is
    1e-4, or 0.1 / N where that is smaller.

    References:
        Welling and Teh (2011), Bayesian learning via stochastic gradient Langevin dynamics.
    """

    name: ClassVar[str] = "sgld"
    method: ClassVar[Literal["sgld", "sghmc"]] = "sgld"
    words: ClassVar[str] = "draws of the posterior by minibatches"
    averages: ClassVar[bool] = False
    few: ClassVar[float] = FEW
    settings: ClassVar[frozenset[str]] = frozenset({"priors", "step_size", "cycles", "draws"})

    def recipe(self, base: Recipe, facts: Facts, options: Mapping[str, Any]) -> Recipe:
        found = posterior_recipe(base, facts)
        size = found.batch_size if facts.spec is not None and facts.spec.size else BATCH
        steps = max(8_000, found.steps)
        return found.model_copy(update={"batch_size": size, "steps": steps})

    def fit(
        self,
        plan: TrainingPlan,
        job: Job,
        likelihood: Likelihood,
        previous: Posterior | None = None,
    ) -> Fitted:
        start = begin(plan, job, likelihood, self.name)
        cycles, draws = _whole(plan, "cycles", CYCLES), _whole(plan, "draws", DRAWS)
        default = min(STEP_SIZE, LARGEST / max(1.0, start.outcomes))
        step = LangevinStep(
            start.network,
            start.objective,
            start.prior,
            method=self.method,
            outcomes=start.outcomes,
            step_size=_number(plan, "step_size", default),
            friction=_number(plan, "friction", FRICTION, most=1.0),
            cycles=cycles,
            steps=plan.recipe.steps,
            draws=draws,
        )
        history = run(plan, job, step, start.source)
        drawn = step.draws or [step.vector()]
        kept, note = thin(torch.stack(drawn).float())
        trained = finish_pair(plan, start.encoder, start.network, start.objective)
        WeightVector(trained).load(kept[-1])
        state = {"prior": start.prior.words(), "step_size": step.step_size, "cycles": cycles}
        posterior = DrawsPosterior(
            self.name, plan.structure, start.encoder, trained, kept, plan.options, state=state
        )
        notes = [
            priors_note(start.prior),
            f"{len(kept)} draws of {cycles} cycles with step sizes up to {step.step_size:.2g}: an "
            "ensemble of local posteriors, whose held-out score decides.",
        ]
        return Fitted(posterior, history, notes=(*notes, *([] if note is None else [note])))

    def rebuild(
        self,
        structure: Structure,
        encoder: Encoder,
        record: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        build: Build,
    ) -> DrawsPosterior:
        return rebuild_draws(self.name, structure, encoder, record, tensors, build)


class SGHMC(SGLD):
    r"""Draws weights by stochastic gradient Hamiltonian dynamics, in cycles of the step size.

    .. math:: v' = (1 - \alpha) v + \eta\, \hat g(\theta) + N(0, 2 \alpha \eta), \qquad
        \theta' = \theta + v'

    with the friction :math:`\alpha`. See ``sgld`` for cycles and the default step size.

    References:
        Chen, Fox and Guestrin (2014), Stochastic gradient Hamiltonian Monte Carlo.
        https://arxiv.org/abs/1402.4102
    """

    name: ClassVar[str] = "sghmc"
    method: ClassVar[Literal["sgld", "sghmc"]] = "sghmc"
    settings: ClassVar[frozenset[str]] = SGLD.settings | {"friction"}


def _whole(plan: TrainingPlan, name: str, default: int) -> int:
    value = plan.options.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{name} must be a whole number from 1, got {value!r}.")
    return value


def _number(plan: TrainingPlan, name: str, default: float, most: float = float("inf")) -> float:
    value = plan.options.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
        limit = "" if most == float("inf") else f" up to {most:g}"
        raise UsageError(f"{name} must be a positive number{limit}, got {value!r}.")
    return float(value)
