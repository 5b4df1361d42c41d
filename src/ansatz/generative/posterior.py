"""A fitted generator as the posterior of a model, and its density as a likelihood."""

import math
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.fitting.contracts.inference import Composition, Predictive
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.split import stopping_rows
from ansatz.generative.coding import Coding, fit_coding, load_coding
from ansatz.generative.contract import Density, Examples, Generator
from ansatz.generative.registry import create
from ansatz.likelihoods import Likelihood
from ansatz.seeds import derive, generator
from ansatz.spec import TargetSpec
from ansatz.training import History

if TYPE_CHECKING:
    from ansatz.fitting.job import Job
    from ansatz.fitting.model import Trained
    from ansatz.fitting.task import TrainingPlan

KEPT = 2_000  # rows of the given columns that stand for their distribution
CHUNK = 4_096  # rows whose densities are computed at once


class LogDensity(Likelihood):
    """The density of x itself: raw are the codes of x, y those of the given columns.

    Args:
        model: a fitted generator; None before the fit.
        seed: of the draws of a bound.
        draws: of a bound; None takes the generator's own number.
    """

    name = "density"
    has_distribution: ClassVar[bool] = False

    def __init__(
        self, model: Generator | None = None, *, seed: int = 0, draws: int | None = None
    ) -> None:
        super().__init__()
        self.__dict__["model"] = model
        self.__dict__["additive"] = model is None or model.has_density
        self.seed, self.draws = seed, draws

    def outputs(self, target: TargetSpec) -> int:
        return 1

    def check(self, y: Any) -> None:
        """Any codes will do."""

    def density(self, raw: Tensor, y: Any) -> Density:
        """The log density of each row with its error; the draws depend on seed and chunk alone."""
        model: Generator | None = self.__dict__["model"]
        if model is None:
            raise UsageError("the generator is not fitted yet.")
        given = y if isinstance(y, Tensor) and y.ndim == 2 else None
        options = {} if self.draws is None else {"draws": self.draws}
        found = []
        for number, first in enumerate(range(0, len(raw), CHUNK)):
            part, rng = slice(first, first + CHUNK), generator(self.seed, "density", number)
            own = None if given is None else given[part]
            found.append(model.log_density(raw[part], own, rng, **options))
        if not found:
            return Density(torch.zeros(0).double(), torch.zeros(0).double())
        return Density(*(torch.cat(each).double() for each in zip(*found, strict=True)))

    def loss(self, raw: Tensor, y: Any) -> Tensor:
        return -self.density(raw, y).value

    def point(self, raw: Tensor) -> Tensor:
        return self.density(raw, None).value


class GenerativePosterior:
    """One fitted generator: all mass on one set of weights.

    Args:
        structure: of x.
        encoder: of the structure, which describes the columns.
        model: the generator, fitted.
        coding: of x.
        given_coding: of the given columns; None without any.
        given: some rows of their codes, which stand for their distribution.
    """

    name: ClassVar[str] = "point"
    keeps_rows: ClassVar[bool] = False

    def __init__(
        self,
        structure: Structure,
        encoder: Encoder,
        model: Generator,
        coding: Coding,
        given_coding: Coding | None = None,
        given: Tensor | None = None,
    ) -> None:
        self.structure, self.encoder, self.model = structure, encoder, model
        self.coding, self.given_coding, self.given = coding, given_coding, given
        self.options: dict[str, Any] = {}

    @property
    def label(self) -> str:
        """The generator's name."""
        return self.model.name

    @property
    def likelihood(self) -> LogDensity:
        return LogDensity(self.model)

    @property
    def parameters(self) -> int:
        return self.model.parameters

    @property
    def networks(self) -> "Sequence[Trained]":
        return ()

    def codes(self, rows: Any) -> Tensor:
        """The codes of rows."""
        return self.coding.codes(self.structure.contents(rows))

    def predictive(
        self, rows: Any, offset: Tensor | None = None, *, notes: list[str] | None = None
    ) -> Predictive:
        return Predictive(self.likelihood, self.codes(rows))

    def answer(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        return inputs[0]

    def components(self, rows: Any, offset: Tensor | None = None) -> list[tuple[float, Predictive]]:
        return [(1.0, self.predictive(rows, offset))]

    def without_recalibration(self) -> Self:
        return self

    def composition(self, kind: torch.dtype) -> Composition | None:
        return None

    def draw(self, count: int, given: Tensor | None, seed: int) -> Tensor:
        """Codes of new examples; without ``given`` its rows are those of the training examples."""
        rng = generator(seed, "sample")
        if not isinstance(count, Integral) or count < 0:
            raise UsageError(
                f"the number of examples to draw must be a whole number >= 0, got {count!r}."
            )
        if self.given_coding is not None and given is None:
            assert self.given is not None
            given = self.given[torch.randint(len(self.given), (count,), generator=rng)]
        if count == 0:
            return self.coding.shaped(torch.zeros(0, math.prod(self.coding.shape)))
        return self.model.sample(count, given, rng)

    def tensors(self) -> dict[str, Tensor]:
        found = {f"generator.{k}": v.contiguous() for k, v in self.model.tensors().items()}
        if self.given is not None:
            found["given"] = self.given.contiguous()
        return found

    def record(self) -> dict[str, Any]:
        return {
            "generator": self.model.name,
            "options": self.model.options,
            "state": self.model.record(),
            "coding": self.coding.record(),
            "given_coding": None if self.given_coding is None else self.given_coding.record(),
        }

    @classmethod
    def rebuild(
        cls,
        structure: Structure,
        encoder: Encoder,
        record: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
    ) -> "GenerativePosterior":
        """The posterior of a saved model."""
        model: Generator = create(record["generator"], **record["options"])
        coding, given_coding = load_coding(record["coding"]), load_coding(record["given_coding"])
        assert coding is not None
        prefix = "generator."
        own = {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
        model.load(coding, given_coding, record["state"], own)
        return cls(structure, encoder, model, coding, given_coding, tensors.get("given"))


def fit_generator(
    model: Generator, plan: "TrainingPlan", job: "Job", given_coding: Coding | None
) -> tuple[GenerativePosterior, History | None]:
    """Fits a generator to the rows of a job; some of them stop a training."""
    structure = plan.structure
    contents = structure.contents(job.rows)
    roles = getattr(job.rows, "columns", None)
    coding = fit_coding(contents, roles)
    given = job.y if given_coding is not None else None
    examples = Examples(coding, coding.codes(contents), job.weight, given_coding, given)
    stop = stopping_rows(job, plan.recipe, plan.seed) if job.valid is None else job.valid
    learn, held_out = examples, None
    if model.trains and len(stop):
        mask = torch.ones(len(job.y), dtype=torch.bool)
        mask[torch.from_numpy(stop)] = False
        learn, held_out = examples.take(mask), examples.take(~mask)
    options = {**plan.trainer_options, **job.trainer_options}
    history = model.fit(learn, held_out, plan._replace(trainer_options=options))
    encoder = structure.encoder(job.rows, job.weight.numpy(), plan.recipe, plan.options)
    kept = None
    if given is not None:
        rng = generator(derive(plan.seed, "given"))
        kept = given[torch.randperm(len(given), generator=rng)[:KEPT]]
    found = GenerativePosterior(structure, encoder, model, coding, given_coding, kept)
    found.options = dict(plan.options)
    return found, history
