"""Gaussian processes: functions with a covariance in place of weights."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from ansatz import kernels, likelihoods
from ansatz.errors import ResourceError, UsageError
from ansatz.fitting.contracts.inference import Build, Fitted, Inference, Posterior, Predictive
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.contracts.structure import Facts, Structure
from ansatz.fitting.job import Job
from ansatz.fitting.model import Trained
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.task import TrainingPlan
from ansatz.kernels.regression import Process
from ansatz.likelihoods import Likelihood
from ansatz.spec import InputSpec

MOST_ROWS = 5_000  # whose covariance is factorised, in some 25 cubic seconds
KERNEL = "matern52"
RESTARTS = 3


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
        mean, variance = self.process.predict(_numbers(inputs, self._encoder.spec))
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

    .. math:: f \sim GP(0,\, v\, k_\ell), \qquad y = \bar y + s f(x) + \varepsilon, \quad
        \varepsilon \sim N(0, s^2 \sigma^2)

    with a length for each input, and :math:`v, \ell, \sigma^2` by L-BFGS with written-out gradients
    from several beginnings. Exact, for the normal likelihood and up to 5,000 training rows.

    References:
        Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, chapters 2 and 5.
    """

    name: ClassVar[str] = "gp"
    words: ClassVar[str] = "a Gaussian process"
    averages: ClassVar[bool] = False
    few: ClassVar[float] = 1.0
    settings: ClassVar[frozenset[str]] = frozenset({"kernel", "restarts"})
    likelihoods: ClassVar[tuple[str, ...]] = ("normal",)
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
        x = _numbers(encoder.inputs(job.rows, notes=[]), encoder.spec)
        y = job.y.double()
        if job.offset is not None:
            y = y - job.offset.double().reshape(-1)
        mean, scale = float(y.mean()), float(y.std(correction=0)) or 1.0
        name = plan.options.get("kernel") or KERNEL
        kernel = 1.0 * kernels.create(name).with_inputs(x.shape[1])
        best, noise, value = kernels.maximise_evidence(
            kernel,
            x,
            (y - mean) / scale,
            restarts=plan.options.get("restarts") or RESTARTS,
            seed=plan.seed,
        )
        process = kernels.condition(best, noise, x, (y - mean) / scale)
        note = f"Gaussian process with the kernel {name}: log evidence {value:.1f}."
        return Fitted(ProcessPosterior(encoder, process, name, mean, scale), notes=(note,))

    def rebuild(
        self,
        structure: Structure,
        encoder: Encoder,
        record: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        build: Build,
    ) -> ProcessPosterior:
        x = tensors["x"]
        kernel = (1.0 * kernels.create(record["kernel"]).with_inputs(x.shape[1])).with_vector(
            tensors["kernel"]
        )
        process = Process(kernel, float(record["noise"]), x, tensors["factor"], tensors["solved"])
        name, mean, scale = str(record["kernel"]), float(record["mean"]), float(record["scale"])
        return ProcessPosterior(encoder, process, name, mean, scale)


def _check(job: Job, likelihood: Likelihood) -> None:
    """Refuses what a process with normal noise is not for, before any work."""
    if likelihood.name != "normal" or job.target.shape or job.target.classes:
        raise UsageError(
            f"inference gp is exact for one target with the normal likelihood, got "
            f"{likelihood.name}. Say --likelihood normal, or take --inference ensemble."
        )
    if float(job.weight.min()) != float(job.weight.max()):
        raise UsageError("inference gp takes no weights that differ between rows.")
    count = len(job.y)
    if count > MOST_ROWS:
        raise ResourceError(
            f"a Gaussian process of {count:,} rows needs a matrix of {8e-9 * count**2:.1f} GB and "
            f"hours; up to {MOST_ROWS:,} rows it is exact. Take --inference ensemble, or a sample."
        )


def _numbers(inputs: tuple[Tensor, ...], spec: InputSpec) -> Tensor:
    """All inputs of a row as one vector; levels that a network would embed as indicators."""
    if spec.structure != "vector" and not spec.size:
        raise UsageError("inference gp takes rows of one length; take --inference ensemble.")
    parts = [inputs[0].double().flatten(1)]
    for codes, count in zip(
        inputs[1].T if len(inputs) > 1 else (), spec.cardinalities, strict=True
    ):
        parts.append(nn.functional.one_hot(codes, count + 1).double())
    return torch.cat(parts, 1)
