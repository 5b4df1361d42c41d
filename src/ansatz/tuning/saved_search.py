"""A finished search in the folder of the model that it chose."""

import json
from pathlib import Path
from typing import Any

from ansatz.errors import ModelError, UsageError
from ansatz.fitting.result import Fit
from ansatz.fitting.saved import load_model, save_model
from ansatz.fitting.space import Choice
from ansatz.tuning.journal import Trial
from ansatz.tuning.result import Tuning
from ansatz.tuning.space import parse_space


def save_search(
    result: Tuning, place: Path, fingerprint: dict[str, str], *, overwrite: bool
) -> None:
    """Writes the chosen model with the record of the search that chose it.

    Args:
        result: of the search.
        place: the model's folder.
        fingerprint: of data, options and space.
        overwrite: replace what is there.
    """
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
            f"{place} is no search with this table and these options. Choose another --out, or "
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
