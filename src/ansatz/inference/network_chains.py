"""Chains of the weights of a network: several local posteriors, and how far they agree."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.fitting.contracts.inference import Build, Fitted, Posterior
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.job import Job
from ansatz.fitting.task import TrainingPlan
from ansatz.fitting.training import finish_pair, typed
from ansatz.inference.chain_folder import go_through, load_run, run_state, run_tensors
from ansatz.inference.chains import Chains
from ansatz.inference.convergence import r_hat
from ansatz.inference.draws import DrawsPosterior, rebuild_draws
from ansatz.inference.network_density import NetworkDensity
from ansatz.inference.posterior_fit import begin, priors_note
from ansatz.inference.sampling import start_run
from ansatz.inference.weights import WeightVector
from ansatz.likelihoods import Likelihood
from ansatz.seeds import derive

CHAINS, WARMUP, DRAWS, KEPT = 4, 500, 500, 100  # kept: of each chain
DEPTH = 8  # a path of 255 steps: longer ones move a network little further for their cost
ROWS = 100  # at which outputs of chains are compared
STEPS = 200  # of L-BFGS, from a draw of the prior towards a mode


class NetworkDraws(DrawsPosterior):
    """Draws of the weights by several chains, equally likely.

    Weights have no verdict: units may change places. What is compared between chains is the log
    density and the raw numbers at rows.
    """

    @property
    def verdict(self) -> Mapping[str, Any]:
        """How far the chains agree; it refuses nothing."""
        found: Mapping[str, Any] = self.state["verdict"]
        return found

    @property
    def chains(self) -> int:
        """The number of chains."""
        return int(self.state["sampler"]["chains"])

    @property
    def drawn(self) -> int:
        """Draws of each chain, those thinned out included."""
        return int(self.state["sampler"]["draws"])

    def run_state(self) -> dict[str, Any]:
        """The state of the chains, so that they can go on."""
        return run_state(self.others)

    def answers(self, rows: Any) -> list[str]:
        """Compares the chains at test rows, in place of the training rows."""
        chosen = rows[np.unique(np.linspace(0, len(rows) - 1, ROWS).astype(int))]
        parts = [each.raw.double() for _, each in self.components(chosen)]
        raws = torch.stack(parts).reshape(self.chains, -1, parts[0].numel())
        self.state["verdict"] = agreement(self._log_density, raws, "test rows", self.state)
        return [words_of(self.verdict)]

    @property
    def _log_density(self) -> Tensor:
        return self.others["chains.log_density"]

    def without_recalibration(self) -> Self:
        return self


def sample_network(
    name: str, plan: TrainingPlan, job: Job, likelihood: Likelihood, previous: Posterior | None
) -> Fitted:
    """Draws the weights of a network by several chains, each around a mode of its own.

    Args:
        name: of the sampler.
        plan: of the fit.
        job: the rows.
        likelihood: of the outcomes.
        previous: draws that the chains go on from.
    """
    start = begin(plan, job, likelihood, name)
    rows = plan.structure.batch(job, start.encoder, plan.recipe)
    if rows is None:
        raise UsageError(f"inference {name} takes all rows at once; take sghmc for more of them.")
    network, objective = start.network.double().eval(), start.objective.double()
    start.prior.double()
    density = NetworkDensity(network, objective, start.prior, typed(rows, torch.float64))
    options: dict[str, Any] = {"max_depth": DEPTH}
    given = {key: plan.options.get(key) for key in ("target_accept", "max_depth")}
    options |= {key: value for key, value in given.items() if value is not None}
    draws = int(plan.options.get("draws") or DRAWS)
    thin = int(plan.options.get("thin") or max(1, draws // KEPT))
    count = int(plan.options.get("chains") or CHAINS)
    run = start_run(
        density,
        _starts(density, count, plan.seed),
        name,
        warmup=int(plan.options.get("warmup") or WARMUP),
        draws=max(1, draws // thin),
        thin=thin,
        seed=plan.seed,
        metric="diagonal",
        **options,
    )
    if isinstance(previous, NetworkDraws):
        load_run(run, previous.run_state())
    go_through(run, job.trainer_options, f"sampling by {name}")
    chains = run.chains()
    flat = chains.draws.numpy().reshape(-1, density.size)
    vectors = density.vectors(flat)
    trained = finish_pair(plan, start.encoder, network, objective)
    WeightVector(trained).load(vectors[int(chains.log_density.reshape(-1).argmax())])
    state = {
        "prior": start.prior.words(),
        "sampler": _sampler(chains, draws, run.plan.warmup, thin),
        "scales": density.prior_scales(flat),
    }
    places = torch.linspace(0, len(rows.index) - 1, min(ROWS, len(rows.index))).long()
    others = {"chains.log_density": chains.log_density, **run_tensors(run.state())}
    posterior = NetworkDraws(
        *(name, plan.structure, start.encoder, trained, vectors, plan.options),
        state=state,
        others=others,
    )
    inputs = tuple(each[places] for each in rows.inputs)
    raws = posterior.weights.raws(vectors, inputs).double()
    raws = raws.reshape(*chains.log_density.shape, -1)
    state["verdict"] = agreement(chains.log_density, raws, "training rows", state)
    posterior.state = state
    return Fitted(posterior, notes=(priors_note(start.prior),))


def _starts(density: NetworkDensity, chains: int, seed: int) -> Tensor:
    """A place near a mode for each chain, found from a draw of the prior, ``(C, D)``."""

    def function(x: np.ndarray[Any, Any]) -> tuple[float, np.ndarray[Any, Any]]:
        value, slope = density(torch.from_numpy(x)[None])
        found = -float(value)
        return (found, -slope[0].numpy()) if np.isfinite(found) else (1e300, np.zeros_like(x))

    found = []
    for chain in range(chains):
        noise = np.random.default_rng(derive(seed, "start", chain) % 2**63)
        first = noise.standard_normal(density.size)
        first[density.weights :] = 0
        options = {"maxiter": STEPS}
        done = minimize(function, first, jac=True, method="L-BFGS-B", options=options)
        found.append(torch.from_numpy(done.x))
    return torch.stack(found)


def _sampler(chains: Chains, draws: int, warmup: int, thin: int) -> dict[str, Any]:
    return {
        "chains": chains.draws.shape[0],
        "draws": draws,
        "kept": chains.draws.shape[1],
        "thin": thin,
        "warmup": warmup,
        "step_size": [round(size, 6) for size in chains.step_size.tolist()],
        "divergences": chains.diverging.sum(1).tolist(),
        "acceptance": float(chains.acceptance.mean()),
        "saturated": int((chains.depth >= chains.max_depth).sum()),
    }


def agreement(
    log_density: Tensor, raws: Tensor, where: str, state: Mapping[str, Any]
) -> dict[str, Any]:
    """How far chains agree on the log density ``(C, N)`` and on raw numbers ``(C, N, R)``."""
    sampler = state["sampler"]
    seen = r_hat(raws.numpy()) if raws.shape[1] >= 4 else np.full(raws.shape[2], np.nan)
    of_density = float(r_hat(log_density.numpy())) if raws.shape[1] >= 4 else float("nan")
    median = float(np.median(np.nan_to_num(seen, nan=np.inf)))
    agree = median < 1.01 and of_density < 1.05 and not sum(sampler["divergences"])
    local = (
        f"an ensemble of {sampler['chains']} local posteriors: chains of networks rarely agree, "
        "and the held-out score beside inference point and ensemble decides."
    )
    return {
        "status": "converged" if agree else "doubtful",
        "reasons": [] if agree else [local],
        "r_hat": median if np.isfinite(median) else None,
        "r_hat_of_log_density": of_density if np.isfinite(of_density) else None,
        "where": where,
        "rows": int(raws.shape[2]),
        "divergences": int(sum(sampler["divergences"])),
        "draws": int(raws.shape[0] * raws.shape[1]),
    }


def words_of(verdict: Mapping[str, Any]) -> str:
    """The verdict as a sentence."""
    shown = {k: "unknown" if verdict[k] is None else f"{verdict[k]:.2f}" for k in _HATS}
    numbers = (
        f"posterior {verdict['status']}: {verdict['draws']:,} draws, the median R-hat of "
        f"{verdict['rows']:,} raw numbers at {verdict['where']} is {shown['r_hat']}, that of the "
        f"log density {shown['r_hat_of_log_density']}, {verdict['divergences']} divergences."
    )
    return " ".join([numbers, *verdict["reasons"]])


_HATS = ("r_hat", "r_hat_of_log_density")


def is_of_network(record: Mapping[str, Any]) -> bool:
    """Whether a record is that of :class:`NetworkDraws`."""
    return "terms" not in record


def rebuild_network_draws(
    name: str,
    structure: Structure,
    encoder: Encoder,
    record: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    build: Build,
) -> NetworkDraws:
    """The posterior of a saved network."""
    found = rebuild_draws(name, structure, encoder, record, tensors, build)
    return NetworkDraws(
        *(name, structure, encoder, found.trained, found.draws),
        state=found.state,
        others=found.others,
    )
