"""A run's checkpoints: the newest whole one is always there to resume from."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ansatz.errors import ModelError, ResourceError, UsageError
from ansatz.storage.disk import explain, read_bytes, recover_folder, remove_folder, remove_orphans
from ansatz.storage.folder import write_folder
from ansatz.storage.manifest import MANIFEST, Manifest, decode_manifest, verify_folder

_NAME = re.compile(r"step-([0-9]{9,18})")
_ASIDE = re.compile(r"\.step-[0-9]{9,18}\.old-[0-9]{1,9}")


class Checkpoints:
    """Folders ``step-000000123`` in one folder, each written whole or not at all.

    There is no pointer to the latest that could go stale: the reader takes the highest step whose
    every byte verifies. The order is that of steps, never of clocks. An old checkpoint is removed
    only after the new one has been read back and verified.

    Args:
        folder: where they are; made if absent.
        keep: how many of the last ones stay; the last that was saved as best stays besides.

    Attributes:
        skipped: the damaged checkpoints that :meth:`latest` or :meth:`best` passed over, each with
            the reason.
    """

    def __init__(self, folder: str | Path, keep: int = 2) -> None:
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
            raise UsageError(f"keep must be a whole number >= 1, got {keep!r}")
        self.folder = Path(folder)
        self.keep = keep
        self.skipped: list[tuple[Path, str]] = []
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._recover()
        except OSError as error:
            raise explain(error, self.folder) from error

    def save(
        self,
        step: int,
        files: Mapping[str, Any],
        header: Mapping[str, Any] | None = None,
        *,
        best: bool = False,
    ) -> Path:
        """Writes the checkpoint of ``step``, verifies it, then removes those no longer kept.

        A checkpoint of the same step is replaced. ``best`` marks the one that :meth:`best` finds
        and that outlives ``keep``, until another is marked.
        """
        if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step < 10**18:
            raise UsageError(f"step must be a whole number >= 0, got {step!r}")
        if not self.folder.is_dir():
            raise ResourceError(
                f"cannot write a checkpoint: {self.folder} was deleted during the run. "
                "Save the model elsewhere."
            )
        path = self.folder / f"step-{step:09d}"
        whole = {**(header or {}), "step": step, "best": bool(best)}
        try:
            if path.is_dir() and not (path / MANIFEST).is_file():
                remove_folder(path)  # a ruin: nothing in it can be read
            write_folder(path, files, kind="checkpoint", header=whole, overwrite=True)
            verify_folder(path, "checkpoint")
            self._prune(step)
        except OSError as error:
            raise explain(error, path) from error
        return path

    def clear(self) -> None:
        """Removes all checkpoints, for a run that starts anew."""
        try:
            for path in self.paths():
                remove_folder(path)
        except OSError as error:
            raise explain(error, self.folder) from error

    def latest(self) -> tuple[Path, Manifest] | None:
        """The checkpoint of the highest step that is whole, or None; see ``skipped``."""
        self.skipped = []
        return next(self._whole(), None)

    def best(self) -> tuple[Path, Manifest] | None:
        """The last checkpoint saved with ``best=True`` that is whole, or None."""
        self.skipped = []
        return next((found for found in self._whole() if found[1].header["best"]), None)

    def paths(self) -> list[Path]:
        """All checkpoints, whole or not, the highest step first."""
        found = [self.folder / name for name in os.listdir(self.folder) if _NAME.fullmatch(name)]
        return sorted(found, key=_step, reverse=True)

    def _whole(self) -> Iterator[tuple[Path, Manifest]]:
        for path in self.paths():
            try:
                yield path, self._verified(path)
            except ModelError as error:
                self.skipped.append((path, str(error)))

    def _verified(self, path: Path) -> Manifest:
        manifest = verify_folder(path, "checkpoint")
        step, best = manifest.header.get("step"), manifest.header.get("best")
        if type(step) is not int or path.name != f"step-{step:09d}" or type(best) is not bool:
            raise ModelError(f"{path}: its manifest is of another step")
        return manifest

    def _prune(self, newest: int) -> None:
        """Removes what is older than the newest, but for the last ``keep`` and the best.

        A damaged one keeps nobody safe: it does not count, and goes with the older ones.
        """
        damaged = {path for path, _ in self.skipped}
        whole = [path for path in self.paths() if path not in damaged]
        kept = {*whole[: self.keep], next(filter(_is_best, whole), None)}
        for path in self.paths():
            if path not in kept and _step(path) < newest:
                remove_folder(path)
        # A replacement that was cut short after its success left its predecessor aside.
        for path in self._asides():
            remove_folder(path)

    def _recover(self) -> None:
        """Puts back what an interrupted replacement held out, and removes dead writers' ruins."""
        remove_orphans(self.folder)
        for aside in self._asides():
            recover_folder(self.folder / aside.name[1:].partition(".")[0])

    def _asides(self) -> list[Path]:
        return [self.folder / name for name in os.listdir(self.folder) if _ASIDE.fullmatch(name)]


def _step(path: Path) -> int:
    match = _NAME.fullmatch(path.name)
    return -1 if match is None else int(match[1])


def _is_best(path: Path) -> bool:
    try:
        return decode_manifest(read_bytes(path / MANIFEST)).header.get("best") is True
    except ModelError:
        return False
