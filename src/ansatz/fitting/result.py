"""What a fit gives back: the model, what it was fitted to, and how it does."""

from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from ansatz.data import Column
from ansatz.fitting.contracts.outcome import Metrics
from ansatz.fitting.faces import estimator_of
from ansatz.fitting.job import Job
from ansatz.fitting.model import Model
from ansatz.fitting.problem import Problem
from ansatz.fitting.provenance import Provenance
from ansatz.fitting.split import Parts

_NOT_EVIDENCE = (
    "fitted",
    "folder",
    "columns",
    "rows_of",
    "split_problem",
    "provenance",
)  # of the run


@dataclass
class Fit:
    """A fitted model, what it was fitted to, and how it does on rows it never saw.

    Example:
        >>> import ansatz
        >>> table = {"x": range(50), "y": range(50)}
        >>> fit = ansatz.fit(table, target="y", likelihood="normal", network="linear")
        >>> fit.rows["test"]
        10
    """

    fitted: Model = field(repr=False)
    folder: Path | None
    structure: str
    network: str
    parameters: int
    likelihood: str
    inference: str
    rows: dict[str, int]
    metrics: Metrics | None
    linear: Metrics | None
    constant: Metrics | None
    epochs: float
    seconds: float
    seed: int
    log_likelihood: float | None = None  # of the training rows; None for a network
    candidates: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    recipe: dict[str, Any] = field(default_factory=dict)
    columns: list[Column] = field(default_factory=list)
    rows_of: dict[str, Any] = field(default_factory=dict, repr=False)  # (X, y) of learn and test
    provenance: Provenance | None = field(default=None, repr=False)  # how it was asked for
    split_problem: tuple[Problem, Job, Parts] | None = field(default=None, repr=False)  # its rows

    @cached_property
    def model(self) -> Any:
        """The fitted estimator."""
        return estimator_of(self.fitted)

    def evidence(self) -> dict[str, Any]:
        """What is kept of the fit beside its model."""
        names = [each.name for each in fields(self) if each.name not in _NOT_EVIDENCE]
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """The document of ``ansatz fit --json``."""
        document = {k: v for k, v in self.evidence().items() if k not in ("notes", "recipe")}
        return {**document, "model": None if self.folder is None else str(self.folder)}

    def summary(self, *, refits: int = 20) -> Any:
        """A linear model's summary; a network's effects on the test rows, with intervals.

        Of a network on grids it is the table of its layers.

        Args:
            refits: bootstrap refits of a network; 0 gives effects without intervals.
        """
        X, y = self.rows_of.get("test", (None, None))
        return self.model.summary(X, y, training=self.rows_of.get("learn"), refits=refits)


def describe_training(model: Model) -> dict[str, Any]:
    """The recipe of a training in a line, and why it stopped."""
    found: dict[str, Any] = {}
    if model.recipe is not None:
        found["recipe"] = model.recipe.sentence(model.network_name)
    if model.history is not None:
        found["stopped"] = model.history.stop_reason
    return found
