"""x itself as outcome: how likely examples are, and more of them."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.errors import DataError, UsageError
from ansatz.fitting.contracts.inference import Build, Fitted, Inference, Posterior, Predictive
from ansatz.fitting.contracts.outcome import Metrics, Outcome
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.job import Job, take
from ansatz.fitting.model import Given, Model
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.task import Settings, TrainingPlan
from ansatz.generative.coding import Coding, TableCoding, load_coding
from ansatz.generative.contract import Density, Generator
from ansatz.generative.distances import energy_distance
from ansatz.generative.posterior import GenerativePosterior, LogDensity, fit_generator
from ansatz.generative.registry import MOST_NUMBERS, SIMPLE, create, default_of
from ansatz.likelihoods import Likelihood
from ansatz.spec import TargetSpec

if TYPE_CHECKING:
    from ansatz.fitting.column_roles import ColumnRoles

REFERENCE = 5_000  # held-out rows among which others are ranked
COMPARED = 1_000  # rows of the data and of the samples whose distance is computed
ENERGY = "energy_distance"


class Generate(Outcome):
    """x itself: its density, and samples; columns named as targets are what x is given.

    Example:
        >>> from ansatz import outcomes
        >>> outcomes.create("generate").plural
        'examples'
    """

    name: ClassVar[str] = "generate"
    estimator: ClassVar[str] = "ansatz.estimators.synthesizer:Synthesizer"
    report: ClassVar[str] = "ansatz.outcomes.report.generate:GenerateReport"
    candidates: ClassVar[tuple[str, ...]] = ("normal",)  # each column has a distribution of its own
    plural: ClassVar[str] = "examples"
    is_x: ClassVar[bool] = True
    has_columns: ClassVar[bool] = False
    is_quantity: ClassVar[bool] = False
    settings: ClassVar[frozenset[str]] = frozenset({"generator", "generator_options", "laws"})
    outputs: ClassVar[Mapping[str, str]] = {}
    no_interval: ClassVar[str] = "a log density has a standard error: ansatz density."
    labels = None

    def __init__(self) -> None:
        self.names: list[str] = []
        self.given_coding: Coding | None = None
        self.held_out: Tensor | None = None  # log densities of rows that were not trained on

    # Reading.

    @classmethod
    def arrange(cls, given: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
        """What is given takes the place of targets; a likelihood is that of the columns of x."""
        found = {**{k: v for k, v in own.items() if k != "target"}, **given}
        found["target"] = found.pop("given", None) or found.pop("target", [])
        if not found["target"]:
            del found["target"]
        if found.get("likelihood") is not None:
            found["laws"] = found.pop("likelihood")
        return found

    @classmethod
    def known(cls, frame: pd.DataFrame, column_roles: "ColumnRoles") -> NDArray[np.bool_]:
        names = [name for name in column_roles.target if name in frame.columns]
        found: NDArray[np.bool_] = frame[names].notna().all(axis=1).to_numpy()
        return found

    def encode(self, y: Any, settings: Settings, *, reset: bool) -> tuple[NDArray[Any], TargetSpec]:
        """The codes of the given columns, ``(N, G)``; zeros where nothing is given."""
        frame = _frame_of(y)
        if reset:
            self.names = [str(name) for name in frame.columns]
            self.given_coding = None
            if self.names:
                self.given_coding = TableCoding.fit(frame)
        if self.given_coding is None:
            return np.zeros(len(frame)), TargetSpec()
        if list(frame.columns) != self.names and frame.shape[1] == len(self.names):
            frame = frame.set_axis(self.names, axis=1)
        codes = self.given_coding.codes(frame)
        if codes.isnan().any():
            raise DataError("what x is given must not be missing.")
        return codes.numpy(), TargetSpec(shape=(codes.shape[1],))

    def content(self, y: Tensor, settings: Settings) -> NDArray[Any]:
        return y.numpy()

    # Fitting.

    @classmethod
    def network(cls, structure: Structure) -> str:
        """A multilayer perceptron encodes, where a generator has an encoder."""
        return "mlp"

    def likelihood(self, settings: Settings, target: TargetSpec, *, few: bool) -> Likelihood:
        return LogDensity()

    def begin(self, likelihood: Likelihood, job: Job) -> None:
        self.held_out = None

    def infer(
        self,
        inference: Inference,
        plan: TrainingPlan,
        job: Job,
        likelihood: Likelihood,
        previous: Posterior | None,
    ) -> Fitted:
        """Fits the generator of the options."""
        if inference.name != "point":
            raise UsageError(f"a model of x has one set of weights: leave out {inference.name}.")
        spec = job.rows.spec
        name = plan.options.get("generator") or default_of(spec)
        options = dict(plan.options.get("generator_options") or {})
        model: Generator = create(name, **options)
        posterior, history = fit_generator(model, plan, job, self.given_coding)
        return Fitted(posterior, history, notes=tuple(model.notes()))

    def rebuild(
        self,
        inference: Inference,
        structure: Structure,
        encoder: Encoder,
        record: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        build: Build,
    ) -> GenerativePosterior:
        return GenerativePosterior.rebuild(structure, encoder, record, tensors)

    def baseline(
        self, structure: Structure, likelihood: Likelihood, job: Job, seed: int
    ) -> tuple[Posterior | None, list[str]]:
        return None, []

    def baselines(
        self, structure: Structure, likelihood: Likelihood, job: Job, seed: int
    ) -> tuple[Mapping[str, Posterior], list[str]]:
        """The simple generators, fitted to the same rows."""
        found: dict[str, Posterior] = {}
        spec = job.rows.spec
        numbers = 1 if spec is None else spec.features * math.prod(spec.size or (1,))
        notes = []
        for name in SIMPLE:
            if numbers > MOST_NUMBERS and name != "independent":
                notes.append(f"{name}: not fitted to {numbers:,} numbers per example.")
                continue
            plan = TrainingPlan(structure, "mlp", {}, _recipe(), seed)
            made = fit_generator(create(name), plan, job, self.given_coding)
            found[name] = made[0]
        return found, notes

    def finish(self, model: Model, job: Job) -> None:
        """Keeps log densities of training rows, until held-out rows take their place."""
        self._refer_to(model, job)

    def tested(self, model: Model, test: Job) -> None:
        """Keeps the log densities of held-out rows, among which others are ranked."""
        self._refer_to(model, test)

    def _refer_to(self, model: Model, job: Job) -> None:
        posterior: Any = model.posterior
        if not posterior.model.has_density:
            return
        chosen = _some(len(job.y), posterior.model)
        rows = np.arange(min(len(job.y), REFERENCE)) if chosen is None else chosen.numpy()
        some = take(job, rows)
        self.held_out = self.density(model, Given(some.rows), some.y).value

    # Predictions.

    def distribution(self, predictive: Predictive, y: Tensor) -> tuple[None, Tensor]:
        return None, y

    def evaluate(self, predictive: Predictive, y: Tensor, weight: Tensor | None = None) -> Metrics:
        """Nats per example; of grids bits per number as well. Empty without a density."""
        likelihood, raw = predictive
        assert isinstance(likelihood, LogDensity)
        model: Any = likelihood.__dict__["model"]
        if not model.has_density:
            return {}
        some = _some(len(raw), model)
        if some is not None:
            raw, y = raw[some], y[some]
            weight = None if weight is None else weight[some]
        loss = -likelihood.density(raw, y).value
        mass = torch.ones_like(loss) if weight is None else weight.double()
        nll = float((loss * mass).sum() / mass.sum())
        found: Metrics = {"nll": nll}
        if raw.ndim > 2:
            found["bits_per_dim"] = nll / math.log(2) / math.prod(raw.shape[1:])
        return found

    def row_losses(self, predictive: Predictive, y: Tensor) -> Tensor:
        return predictive.likelihood.loss(predictive.raw, y)

    def measure(self, posterior: Any, rows: Any) -> Metrics:
        """The energy distance of samples and rows, features standardised."""
        real = posterior.codes(rows)
        order = torch.randperm(len(real), generator=torch.Generator().manual_seed(0))
        real = real[order[:COMPARED].sort().values]  # the first rows may be of one kind
        if len(real) < 2:
            return {}
        drawn = posterior.draw(len(real), None, 0)
        features = posterior.coding.features
        return {ENERGY: energy_distance(features(real), features(drawn))}

    def density(self, model: Model, rows: Given, y: Tensor | None = None) -> Density:
        """The log density of rows."""
        likelihood, raw = model.posterior.predictive(rows.rows)
        assert isinstance(likelihood, LogDensity)
        return likelihood.density(raw, y)

    def point(self, predictive: Predictive) -> NDArray[np.float64]:
        found: NDArray[np.float64] = predictive.likelihood.point(predictive.raw).numpy()
        return found

    def estimate(self, predictive: Predictive, y: Tensor) -> Tensor:
        likelihood, raw = predictive
        assert isinstance(likelihood, LogDensity)
        if not likelihood.__dict__["model"].has_density:
            return torch.full((len(raw),), math.nan)
        return likelihood.density(raw, y).value

    def frame(self, model: Model, rows: Given, **options: Any) -> dict[str, Any]:
        """``log_density`` and its error."""
        found = self.density(model, rows)
        return {"log_density": found.value.numpy(), "se": found.error.numpy()}

    # On disk.

    def target(self, likelihood: Likelihood) -> TargetSpec:
        return TargetSpec(shape=(len(self.names),)) if self.names else TargetSpec()

    def state(self) -> dict[str, Any]:
        coding = None if self.given_coding is None else self.given_coding.record()
        return {"names": self.names, "given_coding": coding}

    def tensors(self) -> dict[str, Tensor]:
        return {} if self.held_out is None else {"held_out": self.held_out}

    def load(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.names = list(state["names"])
        self.given_coding = load_coding(state["given_coding"])
        self.held_out = tensors.get("held_out")


def _some(count: int, model: Generator) -> Tensor | None:
    """Rows whose densities are evaluated, at random; None for all of them."""
    if model.evaluated is None or count <= model.evaluated:
        return None
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    return order[: model.evaluated].sort().values


def _recipe() -> Recipe:
    from ansatz.fitting.contracts.structure import Facts
    from ansatz.fitting.recipe import default_recipe

    return default_recipe(Facts(1_000.0, None, TargetSpec()))


def _frame_of(y: Any) -> pd.DataFrame:
    """Given columns as a frame, whatever holds them."""
    if isinstance(y, pd.DataFrame):
        return y.set_axis([str(name) for name in y.columns], axis=1)
    if isinstance(y, pd.Series):
        return y.to_frame(str(y.name) if y.name is not None else "given")
    values = np.asarray(y)
    if values.ndim == 1:
        return pd.DataFrame({"given": values})
    names = ["given"] if values.shape[1] == 1 else [f"given{k + 1}" for k in range(values.shape[1])]
    return pd.DataFrame(values, columns=names)
