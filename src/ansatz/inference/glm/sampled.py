"""Samples the posterior of a linear model: from a job to draws by name."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz import networks
from ansatz.errors import UsageError
from ansatz.fitting.contracts.inference import Fitted, Posterior
from ansatz.fitting.contracts.structure import LinearDesign
from ansatz.fitting.job import Job
from ansatz.fitting.model import Trained
from ansatz.fitting.task import STEERING, TrainingPlan
from ansatz.inference.chain_folder import go_through, load_run, run_tensors
from ansatz.inference.chains import Chains
from ansatz.inference.draws import thin
from ansatz.inference.glm.groups import TermLevels
from ansatz.inference.glm.posterior import LinearDraws
from ansatz.inference.glm.prior_predictive import prior_range
from ansatz.inference.glm.target import LinearTarget
from ansatz.inference.sampling import About, start_run
from ansatz.likelihoods import Likelihood
from ansatz.linear.terms import read_terms
from ansatz.training import Supervised

Array = NDArray[np.float64]
SERVED = 200  # draws that predictions are mixed of, evenly spaced over all
_OF_RUN = ("chains", "warmup", "draws", "thin", "target_accept", "max_depth", "metric")


def sample_linear(
    name: str,
    plan: TrainingPlan,
    job: Job,
    likelihood: Likelihood,
    previous: Posterior | None = None,
) -> Fitted:
    """Draws from the posterior of a linear model of the rows of a job.

    Args:
        name: of the sampler.
        plan: of the fit; its options hold priors, terms and those of the chains.
        job: the rows.
        likelihood: of the outcomes.
        previous: draws that chains go on from; None begins anew.
    """
    design = linear_rows(plan, job, likelihood)
    terms = [TermLevels.of(each, frame_of(job)) for each in read_terms(plan.options.get("random"))]
    target = target_of(plan, job, likelihood, design, terms)
    given = {key: plan.options[key] for key in _OF_RUN if plan.options.get(key) is not None}
    run = start_run(
        target.density,
        target.start,
        name,
        seed=plan.seed,
        about=About([each.name for each in target.coordinates], target.scales_of_groups),
        **given,
    )
    if isinstance(previous, LinearDraws):
        load_run(run, previous.run_state())
    go_through(run, job.trainer_options, f"sampling by {name}")
    chains = run.chains()
    theta = chains.draws.numpy()
    diagnosis = chains.diagnose([each.name for each in target.coordinates])
    return posterior_of(
        name,
        plan,
        design,
        terms,
        target,
        theta,
        {"verdict": diagnosis.to_dict(), "sampler": _sampler(chains, run.plan.warmup)},
        run_tensors(run.state()),
    )


def linear_rows(plan: TrainingPlan, job: Job, likelihood: Likelihood) -> LinearDesign:
    """The columns of the linear model; what no posterior is for is refused."""
    given = [name for name, value in plan.options.items() if value is not None]
    odd = [name for name in given if name in STEERING and plan.options[name] is not False]
    if odd:
        raise UsageError(f"'{odd[0]}' is for the training of networks: leave it out.")
    if not likelihood.has_distribution:
        raise UsageError(
            f"{likelihood.name} is a loss without a density: a posterior needs a likelihood."
        )
    if not likelihood.additive:
        raise UsageError(
            f"{likelihood.name} couples rows: its posterior is not sampled here. Take a likelihood "
            "of times such as weibull."
        )
    if job.target.shape:
        raise UsageError("a posterior is of one target: fit several one by one.")
    if job.precision is not None or job.link is not None or job.impute is not None:
        raise UsageError("precision, link and impute are for inference='point'.")
    return plan.structure.linear_design(job)


def frame_of(job: Job) -> Any:
    """The rows as a table, where they have columns."""
    rows: Any = job.rows
    return getattr(rows, "named", None)


def target_of(
    plan: TrainingPlan,
    job: Job,
    likelihood: Likelihood,
    design: LinearDesign,
    terms: list[TermLevels],
    *,
    jacobian: bool = True,
) -> LinearTarget:
    """The density that is sampled."""
    return LinearTarget(
        likelihood,
        design.x,
        job.y,
        design.names,
        weight=job.weight,
        offset=None if job.offset is None else job.offset.reshape(-1),
        priors=plan.options.get("priors"),
        groupings=[each.grouping(frame_of(job)) for each in terms],
        class_names=plan.labels or None,
        jacobian=jacobian,
    )


def posterior_of(
    name: str,
    plan: TrainingPlan,
    design: LinearDesign,
    terms: list[TermLevels],
    target: LinearTarget,
    theta: Array,
    state: Mapping[str, Any],
    others: Mapping[str, Tensor] | None = None,
) -> Fitted:
    """The posterior of draws of the coordinates, ``(C, N, D)``."""
    flat = theta.reshape(-1, theta.shape[2])
    served = flat[np.unique(np.linspace(0, len(flat) - 1, SERVED).round().astype(int))]
    draws = target.vectors(served)
    trained = _trained(target, design, target.vectors(flat).mean(0))
    numbers, note = thin_numbers(torch.from_numpy(target.numbers(flat)), theta.shape[0])
    effects, roots = (
        target.effects_of(served, plan.seed),
        [e.root(served).lower for e in target.effects],
    )
    simulated = prior_range(target, plan.seed)
    priors = target.prior_table()
    full = {
        "names": target.names,
        "priors": priors,
        "prior_range": simulated,
        "seed": plan.seed,
        "population": target.population,
        "family": [each.name for each in target.constants],
        "link": target.model.likelihood.link_name,
        "observations": float(target.rows.weight.sum()),
        **state,
    }
    posterior = LinearDraws(
        name,
        plan.structure,
        design.encoder,
        trained,
        draws,
        terms,
        [torch.from_numpy(each) for each in effects],
        [torch.from_numpy(each) for each in roots],
        numbers,
        plan.options,
        state=full,
        others=others,
    )
    return Fitted(posterior, notes=tuple(_notes(target, full, note)))


def thin_numbers(numbers: Tensor, chains: int) -> tuple[Tensor, str | None]:
    """Draws by chain that a model can hold, ``(C, N, M)``."""
    size = numbers.shape[1]
    by_chain = numbers.reshape(chains, -1, size).transpose(0, 1).reshape(-1, chains * size)
    kept, note = thin(by_chain)
    return kept.reshape(len(kept), chains, size).transpose(0, 1).contiguous(), note


def _trained(target: LinearTarget, design: LinearDesign, mean: Tensor) -> Trained:
    """The linear network at the posterior mean."""
    outputs = target.model.outputs
    network: Any = networks.create("linear", inputs=design.encoder.spec, outputs=outputs)
    split = outputs * len(design.names)
    with torch.no_grad():
        network.double()
        network.output.weight.copy_(mean[:split].reshape(outputs, -1))
        network.output.bias.copy_(mean[split : split + outputs])
    constants = torch.zeros(target.criterion.size, dtype=torch.float64)
    for number, part in enumerate(target.criterion.parts[outputs:]):
        constants[part] = mean[split + outputs + number]
    likelihood = target.model.fitted(target.criterion, constants)
    return Trained(network, Supervised(likelihood), "linear", {})


def _sampler(chains: Chains, warmup: int) -> dict[str, Any]:
    return {
        "chains": chains.draws.shape[0],
        "draws": chains.draws.shape[1],
        "warmup": warmup,
        "step_size": [round(size, 6) for size in chains.step_size.tolist()],
        "divergences": chains.diverging.sum(1).tolist(),
    }


def _notes(target: LinearTarget, state: Mapping[str, Any], more: str | None) -> list[str]:
    found = [f"{name}: left out, {why}." for name, why in target.design.aliased.items()]
    shown = "; ".join(f"{name} {prior}" for name, prior in state["priors"][:8])
    rest = len(state["priors"]) - 8
    found.append(f"priors: {shown}{f' and {rest} more' if rest > 0 else ''}.")
    if state["prior_range"] is not None:
        low, high, what = state["prior_range"]
        found.append(f"before the data, 90 % of {what} lie between {low:.4g} and {high:.4g}.")
    verdict = state.get("verdict")
    if verdict is not None:
        found.append(verdict_words(verdict))
    return found + ([] if more is None else [more])


def verdict_words(verdict: Mapping[str, Any]) -> str:
    """A verdict as a sentence."""
    numbers = (
        f"posterior {verdict['status']}: {verdict['draws']:,} draws, R-hat at most "
        f"{verdict['r_hat']:.3f}, effective draws at least {verdict['ess_bulk']:,.0f} (bulk) and "
        f"{verdict['ess_tail']:,.0f} (tail), {verdict['divergences']} divergences."
    )
    return " ".join([numbers, *verdict["reasons"]])
