"""The result of a fit, and its place on disk: checkpoints, then the model."""

import hashlib
import json
import math
import shutil
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from ansatz.data import Column
from ansatz.errors import UsageError
from ansatz.facts import Facts, as_html, as_text
from ansatz.fitting.contracts.outcome import Metrics
from ansatz.fitting.job import Job
from ansatz.fitting.model import Model, estimator_of
from ansatz.fitting.problem import Problem
from ansatz.fitting.provenance import Provenance
from ansatz.fitting.request import Request
from ansatz.fitting.saved import load_model, save_model
from ansatz.fitting.split import Parts
from ansatz.fitting.task import Task
from ansatz.registry import load
from ansatz.storage import RunLock, check_target
from ansatz.training.machine import current_processes

_NOT_EVIDENCE = (
    "fitted",
    "folder",
    "columns",
    "rows_of",
    "split_problem",
    "provenance",
)  # of the run


@dataclass(repr=False)
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
    baselines: dict[str, Metrics] = field(default_factory=dict)  # further simple models
    rows_of: dict[str, Any] = field(default_factory=dict, repr=False)  # (X, y) of learn and test
    provenance: Provenance | None = field(default=None, repr=False)  # how it was asked for
    split_problem: tuple[Problem, Job, Parts] | None = field(default=None, repr=False)  # its rows

    def __repr__(self) -> str:
        return as_text(*self._facts())

    def _repr_html_(self) -> str:
        return as_html(*self._facts())

    def _facts(self) -> tuple[str, Facts]:
        shown = f"{self.network}, {self.parameters:,} parameters, {self.inference}"
        counts = ", ".join(f"{count:,} {part}" for part, count in self.rows.items() if count)
        notes = len(self.notes)
        return f"Fit: {shown}, likelihood {self.likelihood}", [
            (self.fitted.structure.unit[1], counts),
            ("test", _numbers(self.metrics)),
            ("linear", _numbers(self.linear)),
            ("constant", _numbers(self.constant)),
            *((name, _numbers(each)) for name, each in self.baselines.items()),
            (
                "training",
                f"{self.epochs:,.3g} epochs; fit and test took {self.seconds:.3g} seconds",
            ),
            ("model", self.folder),
            ("notes", f"{notes} note{'s' * (notes > 1)} in .notes" if notes else ""),
        ]

    def plot(self, what: str | None = None) -> Any:
        """Draws the fit on its test rows: a matplotlib figure (``.savefig("fit.png")``).

        Args:
            what: ``"training"`` (learning curves), ``"observed"`` (predicted against observed
                numbers) or ``"calibration"`` (the probability integral transform of numbers, the
                reliability of classes); None draws all that apply.
        """
        return load("ansatz.report.plots:plot_fit")(self, what)

    @cached_property
    def model(self) -> Any:
        """The fitted estimator."""
        return estimator_of(self.fitted)

    def evidence(self) -> dict[str, Any]:
        """Gives the record of the fit that is saved beside its model."""
        names = [each.name for each in fields(self) if each.name not in _NOT_EVIDENCE]
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Gives the document of ``ansatz fit --json``."""
        document = {k: v for k, v in self.evidence().items() if k not in ("notes", "recipe")}
        return {**document, "model": None if self.folder is None else str(self.folder)}

    def summary(self, *, refits: int = 20) -> Any:
        """Summarizes a linear model, or a network's effects on the test rows, with intervals.

        Of a network on grids it is the table of its layers.

        Args:
            refits: bootstrap refits of a network; 0 gives effects without intervals.
        """
        X, y = self.rows_of.get("test", (None, None))
        return self.model.summary(X, y, training=self.rows_of.get("learn"), refits=refits)


def _numbers(metrics: Metrics | None) -> str:
    """Metrics in a line."""
    found = (metrics or {}).items()
    return ", ".join(f"{name} {value:.4g}" for name, value in found if value is not None)


def describe_training(model: Model) -> dict[str, Any]:
    """The recipe of a training in a line, and why it stopped."""
    found: dict[str, Any] = {}
    if model.recipe is not None:
        found["recipe"] = model.recipe.sentence(model.network_name)
    if model.history is not None:
        found["stopped"] = model.history.stop_reason
    return found


class FitFolder:
    """One fit's place on disk: ``OUT`` for the model, ``OUT.training`` for its checkpoints."""

    def __init__(self, request: Request, fingerprint: dict[str, str]) -> None:
        options = request.options
        self.out = None if options["out"] is None else Path(options["out"])
        self.overwrite, self.resume = options["overwrite"], options["resume"]
        self.force, self.fingerprint = options["force"], fingerprint
        progress = 0 if options["progress"] == "off" else options["progress"]
        self._shown = {"progress": progress, "tensorboard": options["tensorboard"]}
        if self.out is None:
            if self.resume:
                raise UsageError("--resume needs --out, the folder of the run to go on with.")
            return
        check_target(self.out, overwrite=self.overwrite or self.resume)
        if self.checkpoints.exists() and not (self.resume or self.overwrite):
            raise UsageError(
                f"{self.checkpoints} holds an unfinished run: go on with --resume, or start anew "
                "with --overwrite."
            )

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        assert self.out is not None
        return self.out.with_name(self.out.name + ".training")

    def finished(self) -> Fit | None:
        """The fit that is already there, when asked to resume it."""
        is_there = self.out is not None and self.resume and self.out.exists()
        self._agree(is_there)
        if self.out is None or not is_there:
            return None
        model = load_model(self.out)
        evidence = model.evidence
        if evidence.get("fingerprint") != self.fingerprint and not self.force:
            raise UsageError(
                f"{self.out} was fitted to other data or with other options. Choose another --out, "
                "--overwrite it, or --force to keep it."
            )
        if self.checkpoints.exists():  # killed after the model was written
            shutil.rmtree(self.checkpoints, ignore_errors=True)  # of several processes, one does it
        return _from_evidence(model, self.out, evidence["fit"])

    def trainer_options(self) -> dict[str, Any]:
        """The trainer's options of progress, checkpoints and resuming."""
        if self.out is None:
            return self._shown
        is_stale = self.overwrite and not self.resume and self.checkpoints.exists()
        if is_stale and self._is_first:
            with RunLock(self.checkpoints):  # those of a fit that runs are not removed
                shutil.rmtree(self.checkpoints)
        return {
            **self._shown,
            "checkpoint": self.checkpoints,
            "resume": self.resume,
            "force": self.force,
            "fingerprint": self.fingerprint,
        }

    def save(self, result: Fit) -> Fit:
        """Writes the model with its evidence, then removes the checkpoints.

        Of several processes the first one writes, and the others wait until it has.
        """
        result.folder = self.out
        result.fitted.evidence = {
            **result.fitted.evidence,
            "fingerprint": self.fingerprint,
            "fit": _evidence(result),
            "provenance": None
            if result.provenance is None
            else result.provenance.model_dump(mode="json"),
        }
        if self.out is None:
            return result
        if self._is_first:
            save_model(result.fitted, self.out, overwrite=self.overwrite or self.resume)
            if self.checkpoints.exists():
                shutil.rmtree(self.checkpoints)
        processes = current_processes()
        if processes is not None:
            processes.gather()
        return result

    @property
    def _is_first(self) -> bool:
        processes = current_processes()
        return processes is None or processes.is_first

    def _agree(self, is_there: bool) -> None:
        """Several processes must see the same data, and the same folder before anyone writes."""
        processes = current_processes()
        if processes is not None:
            seen = {**self.fingerprint, f"whether {self.out} is finished": is_there}
            advice = "Give every process the same file; the folder must be on a shared disk."
            processes.agree(seen, advice)


def fingerprint(problem: Problem, task: Task, **others: Any) -> dict[str, str]:
    """Hashes the data and options that a resumed run must have in common with the first."""
    settings = {
        **{name: repr(value) for name, value in task.settings.arguments.items()},
        "column_roles": problem.column_roles.model_dump(exclude={"spellings"}),
        "columns": [(column.name, column.role) for column in problem.columns],
        **others,
    }
    for name in ("time_limit", "verbose", "n_jobs", "callbacks"):  # they change no number
        settings.pop(name, None)
    if "chains" in getattr(task.inference, "settings", ()):  # a longer run begins as a shorter one
        given = dict(task.settings.arguments.get("inference_options") or {})
        settings["inference_options"] = repr({k: v for k, v in given.items() if k != "draws"})
    text = json.dumps(settings, sort_keys=True, default=str)
    return {"data": problem.fingerprint, "options": hashlib.sha256(text.encode()).hexdigest()}


def _evidence(result: Fit) -> dict[str, Any]:
    kept = result.evidence()
    for name in ("metrics", "linear", "constant"):  # JSON has no infinity
        if kept[name] is not None:
            kept[name] = _finite(kept[name])
    kept["baselines"] = {name: _finite(each) for name, each in kept["baselines"].items()}
    return kept


def _finite(metrics: Metrics) -> Metrics:
    return {k: v if _is_finite(v) else None for k, v in metrics.items()}


def _is_finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _from_evidence(model: Model, folder: Path, kept: dict[str, Any]) -> Fit:
    kept = dict(kept)  # the model keeps its own
    notes = [*kept.pop("notes", []), "the run was finished: nothing to do."]
    return Fit(fitted=model, folder=folder, notes=notes, columns=model.columns or [], **kept)
