"""The trials of a search on disk, so that a killed one goes on as if nothing had happened."""

import shutil
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from ansatz.errors import ModelError, UsageError
from ansatz.fitting.recipe import one_line
from ansatz.storage import check_target, read_json, write_json


class Trial(BaseModel):
    """One configuration and how it did on the inner folds.

    Args:
        number: from 0, which is the default recipe.
        parameters: the point of the space; empty for a default that lies outside of it.
        scores: the mean score of each fold; larger is better.
        state: whether it could be fitted.
        reason: why not.
        seconds: of fitting.

    Example:
        >>> from ansatz.tuning.journal import Trial
        >>> Trial(number=1, parameters={"depth": 2}, scores=[-1.0, -2.0]).score
        -1.5
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: int
    parameters: dict[str, Any]
    scores: list[float] = []
    state: Literal["done", "failed"] = "done"
    reason: str | None = None
    seconds: float = 0.0

    @property
    def score(self) -> float | None:
        """The mean over the folds; None for a failed trial."""
        return sum(self.scores) / len(self.scores) if self.scores else None


class Record(BaseModel):
    """The file of a search: what it searches, and the trials so far."""

    model_config = ConfigDict(extra="forbid")

    fingerprint: dict[str, str]
    trials: list[Trial] = []


class Journal:
    """Keeps finished trials in ``OUT.tuning/trials.json``; a trial is there whole or not at all."""

    def __init__(
        self, out: Path | None, fingerprint: dict[str, str], *, overwrite: bool, resume: bool
    ) -> None:
        self.folder = None if out is None else out.with_name(out.name + ".tuning")
        self.record = Record(fingerprint=fingerprint)
        if out is None or self.folder is None:
            if resume:
                raise UsageError("--resume needs --out, the folder of the search to go on with.")
            return
        check_target(out, overwrite=overwrite or resume)
        if self.path.exists():
            if resume:
                self._read(fingerprint)
            elif overwrite:
                shutil.rmtree(self.folder)
            else:
                raise UsageError(
                    f"{self.folder} holds an unfinished search: go on with --resume, or start anew "
                    "with --overwrite."
                )

    @property
    def path(self) -> Path:
        """The file of the trials."""
        assert self.folder is not None
        return self.folder / "trials.json"

    @property
    def trials(self) -> list[Trial]:
        """The finished trials, in order."""
        return self.record.trials

    def add(self, trial: Trial) -> None:
        """Keeps a finished trial."""
        self.record.trials.append(trial)
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_json(self.path, self.record.model_dump(mode="json"), overwrite=True)

    def remove(self) -> None:
        """The search is over: the model's folder holds its trials."""
        if self.folder is not None and self.folder.exists():
            shutil.rmtree(self.folder)

    def _read(self, fingerprint: dict[str, str]) -> None:
        try:
            self.record = Record.model_validate(read_json(self.path))
        except ValidationError as error:
            raise ModelError(f"{self.path}: {one_line(error)}") from None
        changed = [k for k, v in fingerprint.items() if self.record.fingerprint.get(k) != v]
        if changed:
            raise UsageError(
                f"{self.folder} is a search with other {' and '.join(changed)}. Choose another "
                "--out, or start anew with --overwrite."
            )
