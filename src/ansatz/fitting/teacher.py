"""The teacher of a fit: a fitted model whose predictions a network is trained on, too."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.errors import DataError, UsageError
from ansatz.fitting.job import Job
from ansatz.training import Supervised
from ansatz.training.distillation import TeacherObjective

if TYPE_CHECKING:
    from ansatz.fitting.model import Model
    from ansatz.fitting.task import TrainingPlan

QUANTILES = 15  # that stand for the distribution of a number
TEMPERATURE, WEIGHT = 2.0, 0.5


class Teacher(NamedTuple):
    """A fitted model with the weight and the temperature of its predictions.

    Args:
        model: that predicts the training rows.
        temperature: of the probabilities of classes.
        weight: m in [0, 1], of the teacher's part of the loss.
        name: for people.
    """

    model: "Model"
    temperature: float
    weight: float
    name: str

    @classmethod
    def of(
        cls, options: Mapping[str, Any], load: Callable[[str | Path], "Model"]
    ) -> "Teacher | None":
        """The teacher that the options of a fit ask for; ``load`` reads a saved one.

        Raises:
            UsageError: a temperature or a weight without a teacher, or out of range.
        """
        given = options.get("teacher")
        asked = {name: options.get(name) for name in ("teacher_temperature", "teacher_weight")}
        if given is None:
            alone = [name for name, value in asked.items() if value is not None]
            if alone:
                raise UsageError(f"{alone[0]} needs a teacher: a saved or a fitted model.")
            return None
        temperature = TEMPERATURE if (t := asked["teacher_temperature"]) is None else t
        weight = WEIGHT if (m := asked["teacher_weight"]) is None else m
        if not temperature > 0 or not 0 <= weight <= 1:
            raise UsageError(
                "teacher_temperature must be positive and teacher_weight in [0, 1], got "
                f"{temperature} and {weight}."
            )
        name = str(given) if isinstance(given, str | Path) else type(given).__name__
        return cls(_model(given, load), float(temperature), float(weight), name)

    @property
    def note(self) -> str:
        """How the fit was distilled, in a sentence."""
        classes = self.model.outcome.labels is not None
        how = f" at temperature {self.temperature:g}" if classes else ""
        return f"the predictions of {self.name} are {self.weight:.0%} of the loss{how}."

    def objective(self, own: Supervised, job: Job) -> TeacherObjective:
        """The objective of a job's rows with their predictions by the teacher."""
        with torch.no_grad():
            soft = self._classes(own, job) if job.target.classes else self._numbers(own, job)
        order = torch.argsort(job.index)
        return TeacherObjective(
            own, job.index[order], soft[order], temperature=self.temperature, weight=self.weight
        )

    def check_labels(self, labels: NDArray[Any] | None) -> None:
        """Refuses a teacher of other classes, or of numbers where there are classes."""
        known = self.model.outcome.labels
        if known is None and labels is None:
            return
        if known is None or labels is None:
            raise UsageError(f"the teacher {self.name} predicts another kind of outcome.")
        if not np.array_equal(known, labels):
            raise UsageError(f"the teacher {self.name} knows the classes {known.tolist()}.")

    def check(self, plan: "TrainingPlan", job: Job) -> None:
        """Refuses rows that the teacher cannot predict, and outcomes that have no teacher."""
        mine, theirs = job.rows.describe(), self.model.features
        if job.total is not None:
            raise UsageError("a teacher predicts rows in memory: leave --stream out.")
        same = all(theirs[name] == mine[name] for name in ("count", "names"))
        if self.model.structure.name != plan.structure.name or not same:
            raise UsageError(f"the teacher {self.name} was fitted to other columns than these.")
        if job.target.axis != "row" or job.target.event:
            raise UsageError("a teacher is for classes and numbers, one outcome per row.")
        if not job.target.classes and plan.options.get("teacher_temperature") is not None:
            raise UsageError("teacher_temperature is for classes; numbers have none.")

    def _classes(self, own: Supervised, job: Job) -> Tensor:
        """The teacher's logits, ``(N, K)``, or ``(N, 1)`` for a likelihood with one."""
        outcome: Any = self.model.outcome
        predicted = self.model.predictive(job.rows, job.offset, notes=[])
        logits: Tensor = outcome.probabilities(predicted).clamp(min=1e-12).log()
        size, count = own.likelihood.outputs(job.target), job.target.classes
        if size == 1 and count == 2:
            return logits[:, 1:] - logits[:, :1]
        if size != count:
            raise UsageError(f"{own.likelihood.name} has no logit for each class to be taught.")
        return logits

    def _numbers(self, own: Supervised, job: Job) -> Tensor:
        """Quantiles of the teacher's distribution, ``(N, M, ...)``, or its points."""
        predicted = self.model.predictive(job.rows, job.offset, notes=[])
        if not predicted.likelihood.has_distribution:
            return predicted.likelihood.point(predicted.raw).unsqueeze(1)
        level = (torch.arange(QUANTILES, dtype=torch.float64) + 0.5) / QUANTILES
        found = predicted.distribution
        soft = torch.stack([found.icdf(q.expand(found.batch_shape)) for q in level], 1)
        try:
            own.likelihood.check(soft[:, 0])
            own.likelihood.check(soft[:, -1])
        except DataError:
            raise UsageError(
                f"the teacher {self.name} predicts values that {own.likelihood.name} does not have."
            ) from None
        return soft


def _model(given: Any, load: Callable[[str | Path], "Model"]) -> "Model":
    """The model of a folder, of an estimator, or of a fit."""
    if isinstance(given, str | Path):
        return load(given)
    model = getattr(given, "fitted", None) or getattr(given, "model_", None)
    if model is None:
        raise UsageError(
            "teacher is the folder of a saved model, or a fitted estimator, got a "
            f"{type(given).__name__}."
        )
    found: Model = model
    return found
