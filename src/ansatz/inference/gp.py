"""Gaussian processes: functions with a covariance in place of weights."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from ansatz import kernels, likelihoods
from ansatz.errors import ResourceError, UsageError
from ansatz.fitting.contracts.inference import Build, Fitted, Inference, Posterior, Predictive
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.contracts.structure import Facts, Structure
from ansatz.fitting.job import Job, take
from ansatz.fitting.model import Trained
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.task import TrainingPlan
from ansatz.fitting.training import start_objective
from ansatz.inference.latent_posterior import LatentPosterior, rebuild_objective
from ansatz.kernels.inputs import as_numbers
from ansatz.kernels.latent import (
    ClassCurvature,
    Curvature,
    DiagonalCurvature,
    LatentProcess,
    maximise_approximate_evidence,
    slopes,
)
from ansatz.kernels.regression import Process
from ansatz.likelihoods import Categorical, Likelihood
from ansatz.training import Supervised

MOST_ROWS = 5_000  # whose covariance is factorised, in some 25 cubic seconds
KERNEL = "matern52"
RESTARTS = 3
MOST_NUMBERS = 10**8  # of all covariances of classes, 0.8 GB


class ProcessPosterior(Posterior):
    """A Gaussian process given the training rows, which it holds."""

    name: ClassVar[str] = "gp"
    keeps_rows: ClassVar[bool] = True
    networks: tuple[Trained, ...] = ()  # of the contract, read only

    def __init__(
        self, encoder: Encoder, process: Process, kernel: str, mean: float, scale: float
    ) -> None:
        self._encoder, self.process, self.kernel = encoder, process, kernel
        self.mean, self.scale = mean, scale
        self.options: dict[str, Any] = {}
        self._likelihood = likelihoods.create("normal", dispersion="predicted")
        unit = torch.tensor(scale, dtype=torch.float64)
        self._likelihood.dispersion.observe(unit, 1e-6 * unit)

    @property
    def likelihood(self) -> Likelihood:
        """Normal, with a mean and a standard deviation of each row."""
        found: Likelihood = self._likelihood
        return found

    @property
    def encoder(self) -> Encoder:
        return self._encoder

    @property
    def parameters(self) -> int:
        """The kernel's parameters, the noise and the mean."""
        return len(self.process.kernel.vector) + 2

    def answer(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        mean, variance = self.process.predict(as_numbers(inputs, self._encoder.spec))
        sd = self.scale * (variance + self.process.noise).sqrt()
        mean = self.mean + self.scale * mean
        if offset is not None:
            mean = mean + offset.double().reshape(-1)
        return torch.stack([mean, self._likelihood.dispersion.start(sd)], -1)

    def predictive(
        self, rows: Any, offset: Tensor | None = None, *, notes: list[str] | None = None
    ) -> Predictive:
        inputs = self._encoder.inputs(rows, notes=notes)
        return Predictive(self.likelihood, self.answer(inputs, offset))

    def components(self, rows: Any, offset: Tensor | None = None) -> list[tuple[float, Predictive]]:
        return [(1.0, self.predictive(rows, offset))]

    def without_recalibration(self) -> Self:
        return self

    def tensors(self) -> dict[str, Tensor]:
        process = self.process
        return {
            "kernel": process.kernel.vector,
            "x": process.x,
            "factor": process.factor,
            "solved": process.solved,
        }

    def record(self) -> dict[str, Any]:
        numbers = {"noise": self.process.noise, "mean": self.mean, "scale": self.scale}
        return {"kernel": self.kernel, **numbers}


class GaussianProcess(Inference):
    r"""A Gaussian process with the kernel's parameters that have the largest evidence.

    .. math:: f \sim GP(0,\, v\, k_\ell), \qquad y \sim p(y \mid s_0 + s f(x))

    with a length for each input; :math:`v, \ell` and a constant dispersion by L-BFGS from several
    beginnings. Exact for the normal likelihood; Laplace's approximation for other likelihoods of
    one number and, with one function for each class, for classes.

    References:
        Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, chapters 2, 3, 5.
    """

    name: ClassVar[str] = "gp"
    words: ClassVar[str] = "a Gaussian process"
    averages: ClassVar[bool] = False
    few: ClassVar[float] = math.inf  # a dispersion that varies with x is a second function
    settings: ClassVar[frozenset[str]] = frozenset({"kernel", "restarts"})
    likelihoods: ClassVar[tuple[str, ...]] = ("normal", "bernoulli", "categorical")
    trains: ClassVar[bool] = False

    def recipe(self, base: Recipe, facts: Facts, options: Mapping[str, Any]) -> Recipe:
        return base.model_copy(update={"holdout": 0.0, "bins": 0})

    def fit(
        self,
        plan: TrainingPlan,
        job: Job,
        likelihood: Likelihood,
        previous: Posterior | None = None,
    ) -> Fitted:
        _check(job, likelihood)
        encoder = plan.structure.encoder(job.rows, job.weight.numpy(), plan.recipe, plan.options)
        x = as_numbers(encoder.inputs(job.rows, notes=[]), encoder.spec)
        if likelihood.name == "normal" and float(job.weight.min()) == float(job.weight.max()):
            return _exact(plan, job, encoder, x)
        return _approximate(plan, job, likelihood, encoder, x)

    def rebuild(
        self,
        structure: Structure,
        encoder: Encoder,
        record: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        build: Build,
    ) -> Posterior:
        x, name = tensors["x"], str(record["kernel"])
        kernel = _kernel(name, x.shape[1]).with_vector(tensors["kernel"])
        if "likelihood" in record:
            return _approximated(encoder, name, kernel, rebuild_objective(record, tensors), tensors)
        process = Process(kernel, float(record["noise"]), x, tensors["factor"], tensors["solved"])
        mean, scale = float(record["mean"]), float(record["scale"])
        return ProcessPosterior(encoder, process, name, mean, scale)


def _kernel(name: str, features: int) -> kernels.Kernel:
    """The kernel by name, with a variance and a length for each input."""
    made: kernels.Kernel = 1.0 * kernels.create(name).with_inputs(features)
    return made


def _exact(plan: TrainingPlan, job: Job, encoder: Encoder, x: Tensor) -> Fitted:
    y = job.y.double()
    if job.offset is not None:
        y = y - job.offset.double().reshape(-1)
    mean, scale = float(y.mean()), float(y.std(correction=0)) or 1.0
    name = plan.options.get("kernel") or KERNEL
    best, noise, value = kernels.maximise_evidence(
        _kernel(name, x.shape[1]),
        x,
        (y - mean) / scale,
        restarts=plan.options.get("restarts") or RESTARTS,
        seed=plan.seed,
    )
    process = kernels.condition(best, noise, x, (y - mean) / scale)
    notes = [f"Gaussian process with the kernel {name}: log evidence {value:.1f}."]
    if process.jitter:
        notes.append(
            f"the covariance is positive definite only with a noise of {process.jitter:g} of its "
            "variance, which was added: rows are equal or nearly so."
        )
    posterior = ProcessPosterior(encoder, process, name, mean, scale)
    return Fitted(posterior, notes=tuple(notes))


def _approximate(
    plan: TrainingPlan, job: Job, likelihood: Likelihood, encoder: Encoder, x: Tensor
) -> Fitted:
    seen = (job.weight > 0).nonzero().squeeze(1)  # a row of weight 0 has no curvature
    if len(seen) < len(x):
        job, x = take(job, seen.numpy()), x[seen]
    objective = start_objective(likelihood, job, torch.float64)
    assert objective.shift is not None
    functions = objective.shift.numel()
    own = objective.likelihood
    if functions > 1 and (type(own) is not Categorical or own.reference):
        raise UsageError(
            f"inference gp has one function for each row, and {likelihood.name} takes {functions} "
            "numbers. Take --set dispersion=constant where it has one, or "
            "--inference ensemble."
        )
    y = job.y.double() if job.y.is_floating_point() else job.y
    weight = job.weight.double()
    offset = None if job.offset is None else job.offset.double().reshape(-1)

    def loss(f: Tensor) -> Tensor:
        found: Tensor = weight * own.loss(objective.attach(f, offset), y)
        return found

    learned = [p for p in own.parameters() if p.requires_grad]
    name = plan.options.get("kernel") or KERNEL
    shift = objective.shift if functions > 1 else None
    process, value = maximise_approximate_evidence(
        _kernel(name, x.shape[1]),
        x,
        loss,
        functions,
        parameters=learned,
        shift=shift,
        weight=weight,
        restarts=plan.options.get("restarts") or RESTARTS,
        seed=plan.seed,
    )
    kept = {"kernel": process.kernel.vector, "x": x, "slope": process.slope, "mode": process.mode}
    if functions == 1:
        kept["curvature"] = slopes(loss, process.mode)[1].detach()
    else:
        kept["weight"] = weight
    note = f"Gaussian process with the kernel {name}: Laplace's log evidence {value:.1f}."
    return Fitted(_approximated(encoder, name, process.kernel, objective, kept), notes=(note,))


def _approximated(
    encoder: Encoder,
    name: str,
    kernel: kernels.Kernel,
    objective: Supervised,
    tensors: Mapping[str, Tensor],
) -> LatentPosterior:
    """The posterior of tensors at the mode; what they imply is computed anew."""
    # Copies are aligned alike, so that a loaded model computes the same bits.
    kept = {n: t.clone() for n, t in tensors.items() if not n.startswith("objective.")}
    x, mode = kept["x"], kept["mode"]
    covariance = kernel(x)
    curvature: Curvature
    if "curvature" in kept:
        curvature = DiagonalCurvature(covariance, kept["curvature"])
    else:
        assert objective.shift is not None
        probs = (objective.shift.double() + mode).softmax(1)
        curvature = ClassCurvature(covariance, probs, kept["weight"])
    process = LatentProcess(kernel, x, kept["slope"], curvature, mode)
    count = len(kernel.vector) + sum(p.numel() for p in objective.likelihood.parameters())
    return LatentPosterior(
        "gp", encoder, process, objective, state={"kernel": name}, kept=kept, parameters=count
    )


def _check(job: Job, likelihood: Likelihood) -> None:
    """Refuses what a process is not for, before any work."""
    if job.target.shape or job.target.axis != "row":
        raise UsageError(
            "inference gp is for one outcome of each row; take --inference ensemble for several."
        )
    refuse_losses(likelihood)
    count, functions = len(job.y), max(1, job.target.classes)
    if count > MOST_ROWS or count**2 * functions > MOST_NUMBERS:
        matrices = "a matrix" if functions == 1 else f"{functions} matrices"
        raise ResourceError(
            f"a Gaussian process of {count:,} rows needs {matrices} of {8e-9 * count**2:.1f} GB "
            f"and hours; up to {MOST_ROWS:,} rows it is exact. Take --inference ensemble, or a "
            "sample."
        )


def refuse_losses(likelihood: Likelihood) -> None:
    """Refuses losses without a density, and those that couple rows."""
    if not likelihood.has_distribution or not likelihood.additive:
        raise UsageError(
            f"inference gp needs a likelihood of each row, and {likelihood.name} is not one. "
            "Say --likelihood normal, or take --inference ensemble."
        )
