"""Mean-field variational inference."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ansatz.data import Batch
from ansatz.errors import UsageError
from ansatz.fitting.contracts.inference import Build, Fitted, Inference, Posterior
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.contracts.structure import Facts, Structure
from ansatz.fitting.job import Job
from ansatz.fitting.recipe import FEW, Recipe
from ansatz.fitting.task import TrainingPlan
from ansatz.fitting.training import finish_pair
from ansatz.inference.draws import DrawsPosterior, rebuild_draws, thin
from ansatz.inference.mean_field import MeanField, kl_of_normals, log_density
from ansatz.inference.posterior_fit import (
    begin,
    gradient_step,
    posterior_recipe,
    priors_note,
    run,
)
from ansatz.inference.weight_prior import WeightPrior
from ansatz.likelihoods import Likelihood
from ansatz.seeds import generator
from ansatz.training import GradientStep, Loss, Supervised

SAMPLES = 100
WARMUP = 0.5  # of the steps, until the divergence counts in full


class NoisyObjective(nn.Module):
    """The loss of a network whose weights are drawn anew for every row.

    Args:
        objective: of the network.
        field: of its weights.
        prior: whose scales are trained with them; None where they are given.
    """

    def __init__(
        self, objective: Supervised, field: MeanField, prior: WeightPrior | None = None
    ) -> None:
        super().__init__()
        self.objective, self.field, self.prior = objective, field, prior

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood of the outcomes."""
        return self.objective.likelihood

    def forward(self, network: nn.Module, batch: Batch) -> Loss:
        with self.field.noise():
            loss: Loss = self.objective(network, batch)
        return loss

    def evaluate(self, network: nn.Module, batch: Batch) -> Loss:
        """The loss at the means."""
        return self.objective.evaluate(network, batch)


class Divergence:
    r"""The divergence of the weights from their prior for each outcome.

    .. math:: \frac1N \big( KL(q(\theta) \| p(\theta \mid u)) - \log p(u) - \log p(\sigma) \big)

    with scales u and the likelihood's own parameters at a point. It counts in full from step
    ``warmup`` on, before in proportion: else the weights fall to the prior before they have seen
    the outcomes.
    """

    def __init__(
        self, field: MeanField, prior: WeightPrior, outcomes: float, warmup: int = 0
    ) -> None:
        self.field, self.prior, self.outcomes = field, prior, outcomes
        self.warmup, self.step = warmup, None

    step: GradientStep | None  # whose number says how far the warm-up is

    def kl(self) -> Tensor:
        """KL of the drawn weights, and minus the log density of those that are not drawn."""
        prior, field = self.prior, self.field
        widths, sds = prior.sds(), iter(field.sds())
        total = prior.layers.new_zeros(())
        for place, mean in enumerate(field.network[0].parameters()):
            center = prior.means[place]
            if place in field.places:
                total = total + kl_of_normals(mean, next(sds), center, widths[place])
            else:
                total = total - log_density(mean, center, widths[place])
        return total

    def __call__(self, network: nn.Module) -> Tensor:
        prior = self.prior
        whole = self.kl() - prior.log_prob_of_scales() - prior.log_prob_of_likelihood()
        share = 1.0
        if self.step is not None and self.warmup:
            share = min(1.0, (self.step.number + 1) / self.warmup)
        return share * whole / self.outcomes


class Variational(Inference):
    r"""Fits independent normal weights by the evidence lower bound.

    .. math:: \max_q\; E_q \sum_i w_i \log p(y_i \mid x_i, \theta) - KL(q(\theta) \| p(\theta)),
        \qquad q(\theta) = \prod_j N(\theta_j; m_j, \sigma_j^2)

    by local reparameterisation: every row of a batch has weights of its own. The scales of the
    prior and the dispersion of the likelihood are trained too, at a point. A mean field is narrower
    than the posterior where weights are correlated: see the claim ``vi-too-narrow``.

    References:
        Blundell et al. (2015), Weight uncertainty in neural networks.
        https://arxiv.org/abs/1505.05424
    """

    name: ClassVar[str] = "vi"
    words: ClassVar[str] = "a mean-field posterior"
    averages: ClassVar[bool] = False
    few: ClassVar[float] = FEW
    settings: ClassVar[frozenset[str]] = frozenset({"priors", "samples"})

    def recipe(self, base: Recipe, facts: Facts, options: Mapping[str, Any]) -> Recipe:
        found = posterior_recipe(base, facts)
        return found if found.batch_size else found.model_copy(update={"steps": 4_000})

    def fit(
        self,
        plan: TrainingPlan,
        job: Job,
        likelihood: Likelihood,
        previous: Posterior | None = None,
    ) -> Fitted:
        start = begin(plan, job, likelihood, self.name)
        field = MeanField(start.network, start.prior.sds())
        if not field.places:
            raise UsageError(f"inference vi: {plan.network_name} has no linear maps to draw.")
        noisy: Any = NoisyObjective(start.objective, field, start.prior)
        warmup = round(WARMUP * plan.recipe.steps)
        divergence = Divergence(field, start.prior, start.outcomes, warmup)
        schedule = plan.recipe.make_schedule()
        step = gradient_step(plan, start._replace(objective=noisy), divergence, schedule)
        divergence.step = step
        history = run(plan, job, step, start.source)
        with torch.no_grad():
            likelihoods = [p.detach().reshape(-1) for p in start.objective.parameters()]
            others = torch.cat([torch.zeros(0), *likelihoods])
            size = plan.options.get("samples") or SAMPLES
            draws, note = thin(field.sample(size, others, generator(plan.seed, "vi")).float())
            kl = float(divergence.kl())
        trained = finish_pair(plan, start.encoder, start.network, start.objective)
        state = {"prior": start.prior.words(), "kl": kl}
        posterior = DrawsPosterior(
            self.name, plan.structure, start.encoder, trained, draws, plan.options, state=state
        )
        notes = [priors_note(start.prior), f"KL to the prior: {kl:.1f} nats."]
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
