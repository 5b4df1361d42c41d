"""The result of a search, and its record on disk."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansatz.errors import ModelError, UsageError
from ansatz.fitting.result import Fit
from ansatz.fitting.saved import load_model, save_model
from ansatz.fitting.space import Choice, Space
from ansatz.report.compare import Comparison
from ansatz.report.difference import corrected_error
from ansatz.tuning.journal import Trial
from ansatz.tuning.space import parse_space


@dataclass
class Tuning:
    """The result of a search, and whether it beats the default recipe.

    Args:
        fit: the chosen configuration, fitted to all training rows and evaluated on the test
            rows, which the search never saw.
        default: the default recipe, fitted and evaluated likewise.
        trials: all of them; number 0 is the default recipe.
        best: the chosen one.
        space: what was searched.
        folds: the number of inner folds.
        comparison: of the two fits on the test rows; None without test rows.
        verdict: one sentence.
        notes: on the search.
        seconds: of it all.

    Example:
        >>> from ansatz.tuning import Tuning
        >>> Tuning.__name__
        'Tuning'
    """

    fit: Fit
    default: Fit | None
    trials: list[Trial]
    best: Trial
    space: Space
    folds: int
    learned: float  # training rows per row evaluated, in an inner fold
    comparison: Comparison | None
    verdict: str
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def model(self) -> Any:
        """The fitted estimator."""
        return self.fit.model

    def gain(self, trial: Trial) -> tuple[float, float | None] | None:
        """The gain of a trial over the default on the inner folds, with a corrected error."""
        default = self.trials[0]
        if not trial.scores or not default.scores or trial is default:
            return None
        gains = [a - b for a, b in zip(trial.scores, default.scores, strict=True)]
        return corrected_error(gains, 1.0, self.learned)

    def leaders(self, count: int = 5) -> list[Trial]:
        """The best trials, best first."""
        done = [trial for trial in self.trials if trial.score is not None]
        return sorted(done, key=lambda trial: (-(trial.score or 0.0), trial.number))[:count]

    def to_dict(self) -> dict[str, Any]:
        """The document of ``ansatz tune --json``."""
        document = self.fit.to_dict()
        document.pop("model")
        return {
            "model": None if self.fit.folder is None else str(self.fit.folder),
            "verdict": self.verdict,
            "best": self.best.model_dump(mode="json"),
            "trials": [
                {**trial.model_dump(mode="json"), "score": trial.score} for trial in self.trials
            ],
            "space": {name: dimension.sentence() for name, dimension in self.space.items()},
            "folds": self.folds,
            "fit": {name: document[name] for name in document if name != "candidates"},
            "default": None if self.default is None else self.default.metrics,
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
            "notes": self.notes,
            "seconds": self.seconds,
        }


def save_search(
    result: Tuning, place: Path, fingerprint: dict[str, str], *, overwrite: bool
) -> None:
    """Writes the chosen model with the record of the search that chose it."""
    model = result.fit.fitted
    model.evidence["tuning"] = {
        "fingerprint": fingerprint,
        "trials": [trial.model_dump(mode="json") for trial in result.trials],
        "best": result.best.number,
        "space": {name: _dump(dimension) for name, dimension in result.space.items()},
        "folds": result.folds,
        "learned": result.learned,
        "verdict": result.verdict,
        "notes": result.notes,
        "seconds": result.seconds,
    }
    save_model(model, place, overwrite=overwrite)
    result.fit.folder = place


def _dump(dimension: Any) -> str:
    if isinstance(dimension, Choice):
        return json.dumps(list(dimension.values))[1:-1]
    return f"{dimension.low!r}..{dimension.high!r}"


def finished_search(place: Path | None, fingerprint: dict[str, str], resume: bool) -> Tuning | None:
    """The search that is already there, when asked to resume it."""
    if place is None or not resume or not place.exists():
        return None
    model = load_model(place)
    kept = model.evidence.get("tuning")
    if kept is None or kept.get("fingerprint") != fingerprint:
        raise UsageError(
            f"{place} is not a search with this table and these options. Choose another --out, or "
            "--overwrite it."
        )
    try:
        found = [Trial.model_validate(trial) for trial in kept["trials"]]
        return Tuning(
            fit=Fit(
                fitted=model, folder=place, columns=model.columns or [], **model.evidence["fit"]
            ),
            default=None,
            trials=found,
            best=found[kept["best"]],
            space=parse_space([f"{name}={text}" for name, text in kept["space"].items()]),
            folds=kept["folds"],
            learned=kept["learned"],
            comparison=None,
            verdict=kept["verdict"],
            notes=[*kept["notes"], "the search was finished: nothing to do."],
            seconds=kept["seconds"],
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ModelError(f"{place}: the record of its search: {error}") from None
