"""What a fit gives back: the model, what it was fitted to, and how it does."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ansatz.data import Column
from ansatz.fitting.baselines import Metrics
from ansatz.fitting.job import Job
from ansatz.fitting.provenance import Origin
from ansatz.fitting.split import Parts
from ansatz.fitting.problem import Problem
from ansatz.fitting.scores import Scores
from ansatz.estimators.table_estimator import TableEstimator
from ansatz.linear import LinearFit


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

    model: TableEstimator
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
    log_likelihood: float | None = None  # of the rows learned from; None for a network
    candidates: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    recipe: dict[str, Any] = field(default_factory=dict)
    columns: list[Column] = field(default_factory=list)
    rows_of: dict[str, Any] = field(default_factory=dict, repr=False)  # (X, y) of learn and test
    origin: Origin | None = field(default=None, repr=False)  # how it was asked for
    posed: tuple[Problem, Job, Parts] | None = field(default=None, repr=False)  # its rows

    def to_dict(self) -> dict[str, Any]:
        """The document of ``ansatz fit --json``."""
        document = {
            name: value
            for name, value in self.__dict__.items()
            if name not in ("folder", "notes", "recipe", "columns", "rows_of", "origin", "posed")
        }
        return {**document, "model": None if self.folder is None else str(self.folder)}

    def summary(self, *, refits: int = 20) -> Any:
        """A linear model's summary; a network's effects on the test rows, with intervals.

        Of a network on grids it is the table of its layers.

        Args:
            refits: bootstrap refits of a network; 0 gives effects without intervals.
        """
        if self.structure == "grid":
            return self.model.summary()
        X, y = self.rows_of.get("test", (None, None))
        return self.model.summary(X, y, training=self.rows_of.get("learn"), refits=refits)


def fit_result(
    model: TableEstimator,
    problem: Problem,
    rows: Mapping[str, int],
    scores: Scores,
    notes: list[str],
    seed: int,
    seconds: float,
) -> Fit:
    """The result of fitting ``model``, not yet saved.

    Args:
        model: fitted.
        problem: that was posed to it.
        rows: how many it learned from, was stopped by and was judged on.
        scores: its own, the linear and the constant model's.
        notes: what a user should know.
        seed: of the fit.
        seconds: that it took.

    Example:
        >>> import inspect
        >>> from ansatz.fitting.result import fit_result
        >>> list(inspect.signature(fit_result).parameters)[:3]
        ['model', 'problem', 'rows']
    """
    history = getattr(model, "history_", None)
    recipe = getattr(model, "recipe_", None)
    described: dict[str, Any] = {}
    if recipe is not None:
        described["recipe"] = recipe.sentence(model.model_.network_name)
    if history is not None:
        described["stopped"] = history.stop_reason
    return Fit(
        model=model,
        folder=None,
        structure="grid" if problem.is_grid else "vector",
        network=model.model_.network_name,
        parameters=_parameters(model),
        likelihood=_law_name(model),
        inference=model.inference,
        rows=dict(rows),
        metrics=scores.metrics,
        linear=scores.linear,
        constant=scores.constant,
        epochs=0 if history is None else history.epochs,
        seconds=seconds,
        seed=seed,
        notes=notes,
        recipe=described,
        columns=problem.columns,
    )


def log_likelihood(model: TableEstimator, learn: Job) -> float | None:
    """Of all rows learned from; for Cox the partial one, None for a loss that is no law.

    Example:
        >>> import inspect
        >>> from ansatz.fitting.result import log_likelihood
        >>> list(inspect.signature(log_likelihood).parameters)
        ['model', 'learn']
    """
    law = model.model_.objective.likelihood
    if not law.is_law:
        return None
    raw = model.model_.raw(learn.rows, learn.offset, notes=[])
    with torch.no_grad():
        return -float(law.joint_loss(raw, learn.y, learn.weight).sum())


def _parameters(model: TableEstimator) -> int:
    """Weights of a network; of a linear model the numbers that were estimated."""
    fits = getattr(model, "linear_", None)
    if fits is None:
        return model.model_.parameters
    return sum(fit.parameters for fit in ([fits] if isinstance(fits, LinearFit) else fits))


def _law_name(model: TableEstimator) -> str:
    """As the user would say it: a censored Weibull law is weibull."""
    law = model.model_.objective.likelihood
    inner: str = getattr(law, "law", law).name
    return inner
