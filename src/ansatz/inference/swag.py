"""A normal distribution fitted to the path of the weights in training."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from ansatz import optim
from ansatz.fitting.contracts.inference import Build, Fitted, Inference, Posterior
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.contracts.structure import Facts, Structure
from ansatz.fitting.job import Job
from ansatz.fitting.recipe import FEW, Recipe
from ansatz.fitting.task import TrainingPlan
from ansatz.fitting.training import finish_pair
from ansatz.inference.draws import DrawsPosterior, rebuild_draws, thin
from ansatz.inference.posterior_fit import (
    ALL_AT_ONCE,
    PriorPenalty,
    begin,
    gradient_step,
    posterior_recipe,
    priors_note,
    run,
)
from ansatz.inference.weights import WeightVector, flatten
from ansatz.likelihoods import Likelihood
from ansatz.seeds import generator
from ansatz.training import Callback
from ansatz.training.run import Run

RANK = 20
LOOKS = 40  # at the weights, in the last part of the training
LAST = 0.4  # of the steps: the rate is constant there
RATE = 0.3  # of the peak of the rate, in that part
SAMPLES = 100


class Moments(Callback):
    r"""Mean, mean square and last deviations of the weights on the last part of their path.

    .. math:: \bar\theta = \frac1T \sum_t \theta_t, \qquad
        \mathrm{diag}\Sigma = \overline{\theta^2} - \bar\theta^2, \qquad
        \hat D = [\theta_t - \bar\theta_t]_{t = T-K+1, \dots, T}
    """

    def __init__(self, start: int, every: int, rank: int = RANK) -> None:
        self.start, self.every, self.rank, self.count = start, every, rank, 0
        self.mean = self.square = torch.zeros(0)
        self.deviations: list[Tensor] = []

    def on_step(self, run: Run, logs: dict[str, float]) -> None:
        """Looks at the weights from time to time."""
        after = run.number - self.start
        if after <= 0 or after % self.every:
            return
        assert run.step is not None
        theta = flatten(run.step.network, run.step.objective).double()
        self.count += 1
        if self.count == 1:
            self.mean, self.square = theta.clone(), theta.square()
        else:
            self.mean = self.mean + (theta - self.mean) / self.count
            self.square = self.square + (theta.square() - self.square) / self.count
        self.deviations = [*self.deviations, theta - self.mean][-self.rank :]

    def sample(self, count: int, source: torch.Generator) -> Tensor:
        r"""Draws of the weights, ``(S, D)``.

        .. math:: \theta = \bar\theta + \tfrac{1}{\sqrt2} \Sigma_{diag}^{1/2} z_1
            + \tfrac{1}{\sqrt{2 (K-1)}} \hat D z_2
        """
        sd = (self.square - self.mean.square()).clamp(min=0).sqrt()
        columns = torch.stack(self.deviations)  # (K, D)
        first = torch.randn(count, len(sd), generator=source, dtype=sd.dtype)
        second = torch.randn(count, len(columns), generator=source, dtype=sd.dtype)
        low = second @ columns / max(1, len(columns) - 1) ** 0.5
        found: Tensor = self.mean + (sd * first + low) / 2**0.5
        return found

    def state_dict(self) -> dict[str, Any]:
        """All of it."""
        columns = dict(zip(map(str, range(self.rank)), self.deviations, strict=False))
        return {"count": self.count, "mean": self.mean, "square": self.square, "columns": columns}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what ``state_dict`` gave."""
        self.count, self.mean, self.square = state["count"], state["mean"], state["square"]
        self.deviations = [state["columns"][key] for key in sorted(state["columns"], key=int)]


class Swag(Inference):
    """Fits a normal distribution to the weights on the last part of a training.

    The rate of the last 40 % of the steps is constant; the noise of the minibatches then moves the
    weights around a mode. Their mean, their variances and their last 20 deviations make a normal
    distribution with a covariance of diagonal plus low rank. The loss includes the prior, as for
    ``map``.

    References:
        Maddox et al. (2019), A simple baseline for Bayesian uncertainty in deep learning.
        https://arxiv.org/abs/1902.02476
    """

    name: ClassVar[str] = "swag"
    words: ClassVar[str] = "a normal posterior along the path of the training"
    averages: ClassVar[bool] = False
    few: ClassVar[float] = FEW
    settings: ClassVar[frozenset[str]] = frozenset({"priors", "samples"})

    def recipe(self, base: Recipe, facts: Facts, options: Mapping[str, Any]) -> Recipe:
        found = posterior_recipe(base, facts)
        if facts.rows <= ALL_AT_ONCE:  # without minibatches there is no noise
            found = found.model_copy(update={"batch_size": 16, "steps": 4_000})
        return found

    def fit(
        self,
        plan: TrainingPlan,
        job: Job,
        likelihood: Likelihood,
        previous: Posterior | None = None,
    ) -> Fitted:
        start = begin(plan, job, likelihood, self.name)
        steps, size = plan.recipe.steps, plan.options.get("samples") or SAMPLES
        last = max(1, round(LAST * steps))
        moments = Moments(steps - last, max(1, last // LOOKS))
        step = gradient_step(
            plan, start, PriorPenalty(start.prior, start.outcomes), _then_constant(steps)
        )
        history = run(plan, job, step, start.source, (moments,))
        trained = finish_pair(plan, start.encoder, start.network, start.objective)
        WeightVector(trained).load(moments.mean)
        draws, note = thin(moments.sample(size, generator(plan.seed, "swag")).float())
        notes = [priors_note(start.prior), *([] if note is None else [note])]
        state = {"prior": start.prior.words()}
        posterior = DrawsPosterior(
            self.name, plan.structure, start.encoder, trained, draws, plan.options, state=state
        )
        return Fitted(posterior, history, notes=tuple(notes))

    def rebuild(
        self,
        structure: Structure,
        encoder: Encoder,
        record: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        build: Build,
    ) -> DrawsPosterior:
        return rebuild_draws(self.name, structure, encoder, record, tensors, build)


def _then_constant(steps: int) -> optim.Schedule:
    """A warm-up, the peak, a straight way down, and a constant rate for the last steps."""
    last = 1 - LAST

    def multiplier(step: int) -> float:
        place = step / steps
        if place < 0.05:
            return (step + 1) / (0.05 * steps + 1)
        if place < last / 2:
            return 1.0
        return max(RATE, 1 - (1 - RATE) * (place - last / 2) / (last / 2))

    return multiplier
