"""Networks of infinite width: their posterior, and what gradient flow makes of them."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor, nn
from torch.nn.functional import one_hot

from ansatz import likelihoods
from ansatz.errors import ResourceError, UsageError
from ansatz.fitting.contracts.inference import Build, Fitted, Inference, Posterior
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.contracts.structure import Facts, Structure
from ansatz.fitting.job import Job
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.task import TrainingPlan
from ansatz.fitting.training import build_network, start_objective
from ansatz.inference.latent_posterior import rebuild_objective
from ansatz.inference.wide_posterior import Solution, WidePosterior, raw_of
from ansatz.kernels import Twin, empirical_ntk, twin
from ansatz.kernels.regression import factorise
from ansatz.likelihoods import Likelihood
from ansatz.seeds import generator
from ansatz.training import Supervised

MOST_ROWS = 10_000  # whose kernels are factorised
WIDTHS, ACTIVATION = (512, 512), "relu"
HELD_OUT, MOST_HELD_OUT = 0.2, 500  # rows that fit the noise, or the scale of the logits
COMPARED, PROBED = 150, 50  # rows on which the finite network is compared with its twin
RIDGES = (1e-6, 1e2)  # variance of the noise in that of the functions


class Problem(NamedTuple):
    """Encoded rows and centred outcomes of a fit."""

    encoder: Encoder
    network: nn.Module
    twin: Twin
    objective: Supervised
    inputs: tuple[Tensor, ...]
    y: Tensor  # (N, Q), what is regressed
    outcome: Tensor  # (N,), what the likelihood takes
    notes: list[str]

    def at(self, rows: Tensor) -> tuple[Tensor, ...]:
        """The inputs of some rows."""
        return tuple(t[rows] for t in self.inputs)


class Wide(Inference):
    """What both inferences share."""

    averages: ClassVar[bool] = False
    few: ClassVar[float] = math.inf
    likelihoods: ClassVar[tuple[str, ...]] = ("normal", "bernoulli", "categorical")
    trains: ClassVar[bool] = False
    reads_network: ClassVar[bool] = True

    def recipe(self, base: Recipe, facts: Facts, options: Mapping[str, Any]) -> Recipe:
        changes = {"widths": WIDTHS, "activation": ACTIVATION, "dropout": 0.0}
        return base.model_copy(update={"holdout": 0.0, "folds": 0, "bins": 0, **changes})

    @abstractmethod
    def solve(
        self, covariance: Tensor, tangent: Tensor, y: Tensor, options: Mapping[str, Any]
    ) -> Solution:
        """What predicts from these rows."""
        ...

    @abstractmethod
    def kernels(self, problem: Problem, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The covariance and the kernel that learns, of some rows."""
        ...

    def fit(
        self,
        plan: TrainingPlan,
        job: Job,
        likelihood: Likelihood,
        previous: Posterior | None = None,
    ) -> Fitted:
        _check(self.name, plan, job, likelihood)
        problem = _problem(self.name, plan, job, likelihood)
        everything = torch.arange(len(problem.y))
        covariance, tangent = self.kernels(problem, everything)
        solution = self.solve(covariance, tangent, problem.y, plan.options)
        known = solution.noise if likelihood.name == "normal" else None
        level = self._level(plan, problem, covariance, tangent) if known is None else known
        state = {
            "level": level,
            "network": plan_network(plan, problem),
        }
        posterior = WidePosterior(
            self.name, problem.encoder, problem.twin, problem.objective, problem.inputs, solution,
            state,
        )  # fmt: skip
        gap = self._gap(plan, problem, posterior)
        posterior.state["gap"] = gap
        kind = "variance of the noise" if likelihood.name == "normal" else "scale of the logits"
        by = f"{_held_out(len(problem.y))} held-out rows" if known is None else "the evidence"
        notes = [
            *problem.notes,
            f"{self.words} of {len(problem.y):,} rows; {kind} {level:.3g} by {by}.",
            f"the finite network at its start: its kernel is {gap['kernel']:.1%} from the one of "
            f"infinite width, its predictions {gap['prediction']:.2g} standard deviations "
            f"(root mean square over {gap['rows']} rows).",
        ]
        return Fitted(posterior, notes=tuple(notes))

    def _level(
        self, plan: TrainingPlan, problem: Problem, covariance: Tensor, tangent: Tensor
    ) -> float:
        """The noise, or the scale of the logits, with the least loss on rows left out."""
        count = len(problem.y)
        order = torch.randperm(count, generator=generator(plan.seed, "level"))
        new, old = order[: _held_out(count)], order[_held_out(count) :]
        pick = (old[:, None], old)
        solution = self.solve(covariance[pick], tangent[pick], problem.y[old], plan.options)
        between = (new[:, None], old)
        mean = tangent[between] @ solution.solved
        outer = ((tangent[between] @ solution.outer) * tangent[between]).sum(1)
        variance = covariance.diagonal()[new] - outer
        if solution.inner is not None:
            crossed = ((tangent[between] @ solution.inner) * covariance[between]).sum(1)
            variance = covariance.diagonal()[new] - 2 * crossed + outer
        variance = solution.scale * variance.clamp(min=0)
        objective = problem.objective

        def loss(log_level: float) -> float:
            raw = raw_of(objective, mean, variance, math.exp(log_level))
            return float(objective.likelihood.loss(raw, problem.outcome[new]).mean())

        found = minimize_scalar(loss, bounds=(-9.0, 7.0), method="bounded")
        return math.exp(float(found.x))

    def _gap(
        self, plan: TrainingPlan, problem: Problem, posterior: WidePosterior
    ) -> dict[str, Any]:
        """How far the finite network is from its twin, in kernels and predictions."""
        count = len(problem.y)
        order = torch.randperm(count, generator=generator(plan.seed, "gap"))
        new = order[: min(PROBED, count // 3)]
        old = order[len(new) : len(new) + COMPARED]
        both = torch.cat([old, new])
        n = len(old)
        covariance, tangent = self.kernels(problem, both)
        finite = self.finite(problem, both)
        distance = float((finite - tangent).norm() / tangent.norm())
        options = plan.options
        wide = self.solve(covariance[:n, :n], tangent[:n, :n], problem.y[old], options)
        # The same noise for both: the kernels alone differ.
        slim = self.solve(covariance[:n, :n], finite[:n, :n], problem.y[old], options)
        means = [t[n:, :n] @ s.solved for t, s in ((tangent, wide), (finite, slim))]
        local = posterior.__class__(
            self.name, problem.encoder, problem.twin, problem.objective, problem.at(old), wide, {}
        )
        _, variance = local.functional(problem.at(new))
        sd = variance.sqrt().clamp(min=1e-6)[:, None]
        apart = float((((means[0] - means[1]) / sd) ** 2).mean().sqrt())
        return {"kernel": distance, "prediction": apart, "rows": len(new)}

    @abstractmethod
    def finite(self, problem: Problem, rows: Tensor) -> Tensor:
        """The kernel of the finite network that goes with the one that learns."""
        ...

    def rebuild(
        self,
        structure: Structure,
        encoder: Encoder,
        record: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        build: Build,
    ) -> WidePosterior:
        objective = rebuild_objective(record, tensors)
        spec = record["network"]
        network = build_network(
            spec["name"], dict(spec["options"]), inputs=encoder.spec,
            outputs=1, dtype=torch.float32, seed=0,
        )  # fmt: skip
        inputs = tuple(
            tensors[f"inputs.{k}"].clone() for k in range(len(tensors)) if f"inputs.{k}" in tensors
        )
        solved, outer = tensors["solved"].clone(), tensors["outer"].clone()
        inner = tensors["inner"].clone() if "inner" in tensors else None
        solution = Solution(solved, inner, outer, float(record["scale"]))
        own = {n: v for n, v in record.items() if n not in ("scale", "likelihood")}
        return WidePosterior(self.name, encoder, twin(network), objective, inputs, solution, own)


class NNGP(Wide):
    r"""The posterior of a network of infinite width, under the prior that it is drawn from.

    .. math:: f \sim GP(0, v\, \Sigma), \qquad m(x) = \Sigma(x) (\Sigma + r I)^{-1} y, \qquad
        V(x) = v \big( \Sigma(x, x) - \Sigma(x) (\Sigma + r I)^{-1} \Sigma(x)^\top \big)

    with the covariance :math:`\Sigma` of ``ansatz.kernels.twin(network)``; v and the noise r by the
    evidence of y, which for classes are centred indicators. The scale of their logits is fitted to
    a fifth of the rows, before all are used.

    References:
        Lee et al. (2018), Deep neural networks as Gaussian processes.
        https://arxiv.org/abs/1711.00165
    """

    name: ClassVar[str] = "nngp"
    words: ClassVar[str] = "a posterior of a network of infinite width"
    settings: ClassVar[frozenset[str]] = frozenset()

    def kernels(self, problem: Problem, rows: Tensor) -> tuple[Tensor, Tensor]:
        found = problem.twin.nngp(problem.at(rows))
        return found, found

    def finite(self, problem: Problem, rows: Tensor) -> Tensor:
        """That of the last layer's weights: what the features before it give."""
        last = [n for n, m in problem.network.named_modules() if isinstance(m, nn.Linear)][-1]
        return empirical_ntk(
            problem.network, _typed(problem, rows), layers=[last], parametrization="ntk"
        ).double()

    def solve(
        self, covariance: Tensor, tangent: Tensor, y: Tensor, options: Mapping[str, Any]
    ) -> Solution:
        unit = float(tangent.diagonal().mean())
        identity = torch.eye(len(y), dtype=torch.float64)

        def parts(log_ridge: float) -> tuple[Tensor, Tensor, float, float]:
            factor = factorise(tangent + unit * math.exp(log_ridge) * identity)
            solved = torch.cholesky_solve(y, factor)
            v = max(float((y * solved).sum()) / y.numel(), 1e-300)
            log_det = 2 * float(factor.diagonal().log().sum())
            return factor, solved, v, y.numel() * math.log(v) + y.shape[1] * log_det

        low, high = (math.log(ridge) for ridge in RIDGES)
        found = minimize_scalar(
            lambda at: parts(at)[3], bounds=(low, high), method="bounded",
            options={"xatol": 0.1, "maxiter": 15},
        )  # fmt: skip
        factor, solved, v, _ = parts(float(found.x))
        noise = v * unit * math.exp(float(found.x))
        return Solution(solved, None, torch.cholesky_inverse(factor), v, noise)


class NTK(Wide):
    r"""What gradient flow makes of a network of infinite width: the ensemble of all starts.

    .. math:: f_t(x) = f_0(x) + \Theta(x) \Theta^{-1} (I - e^{-\Theta t}) (y - f_0), \qquad
        f_0 \sim GP(0, \Sigma)

    for half the squared error, summed over the rows, with the tangent kernel :math:`\Theta`
    (``flow_time``; infinity when not given). Over random starts its mean is
    :math:`\Theta(x) M y`, its covariance :math:`\Sigma - \Theta_* M \Sigma - \Sigma M^\top
    \Theta_*^\top + \Theta_* M \Sigma M^\top \Theta_*^\top`: no posterior of a prior, and at
    infinite time it passes through y. The
    noise of a number and the scale of the logits are fitted to a fifth of the rows.

    References:
        Lee et al. (2019), Wide neural networks of any depth evolve as linear models, eq. 14 and 15.
        https://arxiv.org/abs/1902.06720
    """

    name: ClassVar[str] = "ntk"
    words: ClassVar[str] = "gradient flow in a network of infinite width"
    settings: ClassVar[frozenset[str]] = frozenset({"flow_time"})

    def kernels(self, problem: Problem, rows: Tensor) -> tuple[Tensor, Tensor]:
        return problem.twin.both(problem.at(rows))

    def finite(self, problem: Problem, rows: Tensor) -> Tensor:
        """That of all weights."""
        return empirical_ntk(
            problem.network, _typed(problem, rows), parametrization="ntk", block=64
        ).double()

    def solve(
        self, covariance: Tensor, tangent: Tensor, y: Tensor, options: Mapping[str, Any]
    ) -> Solution:
        time = options.get("flow_time")
        if time is not None and not time > 0:
            raise UsageError(f"flow_time of inference ntk must be positive, got {time}.")
        if time is None or math.isinf(time):
            inner = torch.cholesky_inverse(factorise(tangent))
        else:
            values, vectors = torch.linalg.eigh(tangent)
            values = values.clamp(min=1e-12 * float(values[-1]))
            share = -torch.expm1(-values * time) / values
            inner = (vectors * share) @ vectors.mT
        return Solution(inner @ y, inner, inner @ covariance @ inner, 1.0)


def _typed(problem: Problem, rows: Tensor) -> tuple[Tensor, ...]:
    inputs = problem.at(rows)
    return tuple(t.double() if t.is_floating_point() else t for t in inputs)


def _held_out(count: int) -> int:
    return max(1, min(MOST_HELD_OUT, round(HELD_OUT * count)))


def plan_network(plan: TrainingPlan, problem: Problem) -> dict[str, Any]:
    """The network by name, as the model records it."""
    options: Any = getattr(problem.network, "wide_options", plan.network_options)
    name = getattr(problem.network, "wide_name", plan.network_name)
    return {"name": name, "options": _plain(options)}


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    return {n: list(v) if isinstance(v, tuple) else v for n, v in options.items()}


def _check(name: str, plan: TrainingPlan, job: Job, likelihood: Likelihood) -> None:
    if job.target.axis != "row" or job.target.shape:
        raise UsageError(f"inference {name} is for one outcome of each row; take ensemble.")
    if likelihood.name not in Wide.likelihoods:
        raise UsageError(
            f"inference {name} regresses numbers under the normal likelihood, and classes, got "
            f"{likelihood.name}. Take --likelihood normal, or --inference gp."
        )
    if float(job.weight.min()) != float(job.weight.max()):
        raise UsageError(f"inference {name} takes no weights that differ between rows.")
    if not isinstance(plan.network, str):
        raise UsageError(
            f"inference {name} takes a network by name, which a saved model can make anew; for a "
            "module of your own use ansatz.kernels.twin(network)."
        )
    count = len(job.y)
    if count > MOST_ROWS:
        raise ResourceError(
            f"inference {name} of {count:,} rows needs matrices of {8e-9 * count**2:.1f} GB and "
            f"hours; it takes up to {MOST_ROWS:,} rows. Take --inference ensemble, or a sample."
        )


def _problem(name: str, plan: TrainingPlan, job: Job, likelihood: Likelihood) -> Problem:
    encoder = plan.structure.encoder(job.rows, job.weight.numpy(), plan.recipe, plan.options)
    inputs = encoder.inputs(job.rows, notes=[])
    y, objective = _outcomes(job, likelihood)
    # One output: the law of each is the same, and gradients take the time of their number.
    network, notes = _network(plan, encoder)
    outcome = job.y.double() if job.y.is_floating_point() else job.y
    return Problem(encoder, network, twin(network), objective, inputs, y, outcome, notes)


def _outcomes(job: Job, likelihood: Likelihood) -> tuple[Tensor, Supervised]:
    """What is regressed, ``(N, Q)``, and the objective of the likelihood."""
    if likelihood.name == "normal":
        y = job.y.double()
        if job.offset is not None:
            y = y - job.offset.double().reshape(-1)
        mean, scale = y.mean(), y.std(correction=0)
        scale = torch.where(scale > 0, scale, torch.ones_like(scale))
        law = likelihoods.create("normal", dispersion="predicted").double()
        law.dispersion.observe(scale, 1e-6 * scale)
        shift, unit = (torch.stack([v, torch.zeros_like(v)]) for v in (mean, scale))
        return ((y - mean) / scale)[:, None], Supervised(law, shift, unit)
    if job.offset is not None:
        raise UsageError("classes of infinite width take no offset; take inference point.")
    objective = start_objective(likelihood, job, torch.float64)
    assert objective.shift is not None
    shares = one_hot(job.y.long(), max(2, job.target.classes)).double()
    y = shares - shares.mean(0)
    if objective.shift.numel() == 1:
        y = y[:, 1:]
    elif objective.shift.numel() != y.shape[1]:
        y = y[:, 1:]  # a reference class has no logit
    return y, objective


def _network(plan: TrainingPlan, encoder: Encoder) -> tuple[nn.Module, list[str]]:
    """The network at its start; a default one of images without a twin is replaced by an mlp."""

    def build(name: Any, options: dict[str, Any]) -> nn.Module:
        return build_network(
            name, options, inputs=encoder.spec, outputs=1, dtype=torch.float64, seed=plan.seed
        )

    network = build(plan.network, plan.network_options)
    try:
        twin(network)
    except UsageError as error:
        if plan.network != plan.structure.network("row") or plan.network == "mlp":
            raise
        options: dict[str, Any] = {"widths": WIDTHS, "activation": ACTIVATION}
        made: Any = build("mlp", options)
        made.wide_name, made.wide_options = "mlp", options
        return made, [f"network mlp: the default network has {str(error).rstrip('.')}."]
    return network, []
