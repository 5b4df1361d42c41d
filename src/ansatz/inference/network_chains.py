"""Samples the posterior of the weights of a network by chains.

Legend: C chains, D coordinates: the weights, the parameters of the likelihood, the prior's scales.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor, nn
from torch.func import functional_call, vmap

from ansatz.data import Batch
from ansatz.data.batch import take_rows
from ansatz.errors import ResourceError, UsageError
from ansatz.fitting.contracts.inference import Fitted
from ansatz.fitting.job import Job
from ansatz.fitting.task import TrainingPlan
from ansatz.fitting.training import finish_pair, typed
from ansatz.inference.chain_folder import go_through, run_tensors
from ansatz.inference.chains import Chains
from ansatz.inference.convergence import r_hat
from ansatz.inference.diagnosis import Diagnosis
from ansatz.inference.draws import DrawsPosterior, thin
from ansatz.inference.posterior_fit import Beginning, begin, priors_note
from ansatz.inference.samplers.density import with_gradient
from ansatz.inference.sampling import start_run
from ansatz.inference.weight_prior import WeightPrior
from ansatz.inference.weights import WeightVector
from ansatz.likelihoods import Likelihood
from ansatz.seeds import derive
from ansatz.training import Supervised

DEFAULTS = {"chains": 4, "warmup": 500, "draws": 100, "thin": 5}
SEEN = 100  # rows whose raw numbers the chains are compared by
MOST_ROWS = 50_000  # every step of a path takes them all


class LogPosterior(nn.Module):
    r"""The log posterior of a network's weights, of its likelihood's parameters and its scales.

    .. math:: \log p(\theta, u \mid y) = \sum_i w_i \log p(y_i \mid x_i, \theta)
        + \log p(\theta \mid u) + \log p(u)

    Called with positions ``(C, D)`` it gives ``(C,)``. The order of the coordinates is that of
    ``named_parameters``: the network's, the likelihood's, the prior's.
    """

    def __init__(
        self, network: nn.Module, objective: Supervised, prior: WeightPrior, rows: Batch
    ) -> None:
        super().__init__()
        self.network, self.objective, self.prior = network, objective, prior
        self.rows = rows
        self.names = [name for name, _ in self.named_parameters()]
        self.shapes = [parameter.shape for parameter in self.parameters()]
        self.sizes = [parameter.numel() for parameter in self.parameters()]
        self.weights = sum(
            size for name, size in zip(self.names, self.sizes, strict=True) if "prior." not in name
        )

    def forward(self) -> Tensor:
        total, _ = self.objective(self.network, self.rows)
        own = dict(self.objective.named_parameters())
        prior = self.prior.log_prob(list(self.network.parameters()))
        likelihood = self.prior.log_prob_of_likelihood(own)
        found: Tensor = prior + likelihood + self.prior.log_prob_of_scales() - total
        return found

    def named(self, positions: Tensor) -> dict[str, Tensor]:
        """Cuts positions ``(C, D)`` into tensors of the shapes of the parameters, by name."""
        parts = positions.split(self.sizes, -1)
        return {
            name: part.reshape(positions.shape[:-1] + shape)
            for name, shape, part in zip(self.names, self.shapes, parts, strict=True)
        }

    def log_density(self, positions: Tensor) -> Tensor:
        """``(C, D)`` to ``(C,)``."""

        def one(values: dict[str, Tensor]) -> Tensor:
            found: Tensor = functional_call(self, values, ())
            return found

        found: Tensor = vmap(one)(self.named(positions))
        return found

    @property
    def vector(self) -> Tensor:
        """The parameters as they are, ``(D,)``."""
        return torch.cat([p.detach().double().reshape(-1) for p in self.parameters()])


def sample_network(name: str, plan: TrainingPlan, job: Job, likelihood: Likelihood) -> Fitted:
    """Draws from the posterior of a network's weights given the rows of a job.

    Each chain begins near a mode of its own, so that the draws are those of several local
    posteriors, which seldom agree: symmetries alone keep weights apart. Agreement is therefore
    measured on the log density and the raw numbers of some rows.

    Args:
        name: of the sampler.
        plan: of the fit.
        job: the rows.
        likelihood: of the outcomes.
    """
    if plan.options.get("random"):
        raise UsageError("terms that vary between groups go with network='linear' in this version.")
    if len(job.y) > MOST_ROWS:
        raise ResourceError(
            f"{name} takes all rows at every step: {len(job.y):,} are more than {MOST_ROWS:,}. Take "
            "--inference sgld, or ensemble."
        )
    given = {k: v for k in _OF_RUN if (v := plan.options.get(k)) is not None}
    settings: dict[str, Any] = {**DEFAULTS, "metric": "diagonal", **given}
    chains = int(settings["chains"])
    start = begin(plan, job, likelihood, name)
    rows = plan.structure.batch(job, start.encoder, plan.recipe)
    if rows is None:
        raise UsageError(f"inference {name} takes rows that fit in memory.")
    batch = typed(rows, torch.float64)
    posterior = _posterior(start, batch)
    places = torch.stack(
        [_near_a_mode(plan, job, likelihood, name, batch, k) for k in range(chains)]
    )
    run = start_run(
        None,
        places,
        name,
        with_gradient(posterior.log_density),
        seed=plan.seed,
        **{key: value for key, value in settings.items() if key != "chains"},
    )
    go_through(run, job.trainer_options, f"sampling by {name}")
    found = run.chains()
    return _fitted(name, plan, start, posterior, found, run_tensors(run.state()))


_OF_RUN = ("chains", "warmup", "draws", "thin", "target_accept", "max_depth")


def _posterior(start: Beginning, batch: Batch) -> LogPosterior:
    start.prior.double()
    network = start.network.double().eval()
    return LogPosterior(network, start.objective.double(), start.prior, batch)


def _near_a_mode(
    plan: TrainingPlan, job: Job, likelihood: Likelihood, name: str, batch: Batch, chain: int
) -> Tensor:
    """Where a chain begins: a few steps of L-BFGS from initial weights of its own."""
    own = plan._replace(seed=derive(plan.seed, "chain", chain))
    posterior = _posterior(begin(own, job, likelihood, name), batch)
    density = with_gradient(posterior.log_density)
    start = posterior.vector
    scales = slice(posterior.weights, None)

    def function(x: np.ndarray[Any, Any]) -> tuple[float, np.ndarray[Any, Any]]:
        value, slope = density(torch.from_numpy(x)[None])
        slope[:, scales] = 0  # a mode of scales and weights together is at 0
        return -float(value), -slope[0].numpy()

    found = minimize(function, start.numpy(), jac=True, method="L-BFGS-B", options={"maxiter": 100})
    return torch.from_numpy(found.x)


def _fitted(
    name: str,
    plan: TrainingPlan,
    start: Beginning,
    posterior: LogPosterior,
    chains: Chains,
    others: Mapping[str, Tensor],
) -> Fitted:
    trained = finish_pair(plan, start.encoder, posterior.network, posterior.objective)
    vectors = WeightVector(trained)
    flat = chains.draws[..., : posterior.weights].flatten(0, 1)
    best = chains.log_density.flatten().argmax()
    vectors.load(flat[best])
    verdict = compare_chains(vectors, posterior.rows, chains)
    kept, note = thin(flat)
    state = {"prior": posterior.prior.words(), "verdict": verdict.to_dict()}
    made = DrawsPosterior(
        name,
        plan.structure,
        start.encoder,
        trained,
        kept,
        plan.options,
        state=state,
        others=others,
    )
    count = chains.draws.shape[0]
    words = (
        f"an ensemble of {count} local posteriors: {verdict.draws:,} draws, R-hat of raw numbers "
        f"at most {verdict.r_hat:.2f}, {verdict.divergences} divergences, mean acceptance "
        f"{verdict.acceptance:.2f}. The scores on held-out rows decide whether they are worth it."
    )
    notes = [priors_note(posterior.prior), words, *([] if note is None else [note])]
    return Fitted(made, notes=tuple(notes))


def compare_chains(vectors: WeightVector, rows: Batch, chains: Chains) -> Diagnosis:
    """The verdict by log density and raw numbers of some rows; R-hat alone never fails here."""
    count = len(rows.index)
    chosen = torch.linspace(0, count - 1, min(SEEN, count)).long()
    some: Batch = take_rows(rows, chosen)
    weights = chains.draws[..., : vectors.size].flatten(0, 1)
    with torch.no_grad():
        raws = vectors.raws(weights, some.inputs, some.offset).double()
    seen = raws.reshape(*chains.draws.shape[:2], -1)
    quantities = torch.cat([chains.log_density.unsqueeze(-1), seen], -1)
    found = chains._replace(draws=quantities).diagnose(_quantities(quantities.shape[2]))
    hats = np.nan_to_num(r_hat(quantities.numpy()), nan=np.inf)
    if found.divergences > 0.01 * chains.diverging.numel():
        return found
    status = "converged" if found.status == "converged" else "doubtful"
    return found._replace(status=status, r_hat=float(hats.max()))


def _quantities(count: int) -> Sequence[str]:
    return ["the log density", *(f"raw number {k + 1}" for k in range(count - 1))]
