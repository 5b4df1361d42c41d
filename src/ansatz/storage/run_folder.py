"""The folder of a run: its lock, its checkpoints, its fingerprint."""

import contextlib
import json
import os
import re
import socket
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import filelock
import torch
from pydantic import BaseModel

from ansatz.errors import BusyError, ModelError, ResourceError, UsageError
from ansatz.storage.decoding import decoding
from ansatz.storage.disk import (
    explain,
    is_alive,
    read_bytes,
    recover_folder,
    remove_folder,
    remove_orphans,
)
from ansatz.storage.folder import MANIFEST, Manifest, decode_manifest, verify_folder, write_folder
from ansatz.storage.json_file import encode_json, read_json
from ansatz.storage.tensors import encode_tensors, pack_state, read_tensors, unpack_state

_LOCK_BYTES = 4096


class RunLock:
    """Locks a folder for this process while the ``with`` block runs.

    The lock is the operating system's, on ``<folder>.lock`` beside the folder (which need not exist
    yet): it ends with the process however that ends, so no stale lock can bar the way. The file
    names its holder. What a dead process left there is taken over, which ``note`` reports.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        absolute = Path(os.path.abspath(self.folder))
        self.path = absolute.with_name(f"{absolute.name}.lock")
        self.note: str | None = None
        self._lock = filelock.FileLock(self.path, timeout=0, thread_local=False)

    def acquire(self) -> "RunLock":
        """Takes the lock, or raises :class:`BusyError` naming process and host at once."""
        try:
            if not self.path.parent.is_dir():
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
        except filelock.Timeout:
            raise BusyError(
                f"{self.folder} is in use by {_describe(self._holder())}: "
                "wait for it to end, or choose another folder"
            ) from None
        except OSError as error:
            raise explain(error, self.path) from error
        try:
            self._take_over()
        except BaseException as error:
            self._lock.release()
            if isinstance(error, OSError):
                raise explain(error, self.path) from error
            raise
        return self

    def release(self) -> None:
        """Gives the lock back; safe to call twice."""
        if not self._lock.is_locked:
            return
        # Unlinked while still held: whoever waits sees that the file is gone and makes its own.
        # Windows cannot unlink an open file: there it goes after the release, if nobody waits.
        if os.name != "nt":
            with contextlib.suppress(OSError):
                os.unlink(self.path)
        self._lock.release()
        if os.name == "nt":
            with contextlib.suppress(OSError):
                os.unlink(self.path)

    def __enter__(self) -> "RunLock":
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _take_over(self) -> None:
        before = self._holder()
        if before is not None:
            local = before["host"] == socket.gethostname()
            dead = " (no longer running)" if local and not is_alive(before["pid"]) else ""
            self.note = f"took over the lock of {self.folder} left by {_describe(before)}{dead}"
        holder = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        }
        # The first byte stays blank: on Windows it is the locked one, which nobody else may read.
        file = os.open(self.path, os.O_WRONLY | getattr(os, "O_BINARY", 0))
        try:
            os.lseek(file, 1, os.SEEK_SET)
            content = encode_json(holder)
            os.write(file, content)
            os.ftruncate(file, 1 + len(content))
        finally:
            os.close(file)

    def _holder(self) -> dict[str, Any] | None:
        """The holder by the lock file; None if the file makes no sense."""
        try:
            file = os.open(self.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            try:
                os.lseek(file, 1, os.SEEK_SET)
                content = os.read(file, _LOCK_BYTES)
            finally:
                os.close(file)
            holder = read_json(content.lstrip(b"\0"))
        except (OSError, ModelError):
            return None
        types = {"pid": int, "host": str, "since": str}
        if not isinstance(holder, dict) or {k: type(v) for k, v in holder.items()} != types:
            return None
        return holder


def _describe(holder: dict[str, Any] | None) -> str:
    if holder is None:
        return "another process"
    return f"process {holder['pid']} on {holder['host'][:80]!r} since {holder['since'][:40]}"


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


class _Header(BaseModel):
    """What the manifest of a checkpoint holds besides its files."""

    fingerprint: dict[str, Any] = {}
    finished: str | None = None


_TENSORS = "state.safetensors"


class RunFolder:
    """The checkpoints of one run, with its fingerprint.

    A checkpoint holds ``model.safetensors`` (network and objective), and the rest of the trainer's
    memory as ``state.json`` and ``state.safetensors``.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        keep: int,
        fingerprint: dict[str, Any],
        resume: bool,
        force: bool = False,
    ) -> None:
        self.folder, self.force = Path(folder), force
        self.fingerprint = json.loads(json.dumps(fingerprint))  # tuples as JSON gives them back
        self.notes: list[str] = []
        self._checkpoints = Checkpoints(folder, keep)
        if not resume and self._checkpoints.paths():
            raise UsageError(
                f"{folder} holds the checkpoints of a run ({self._checkpoints.paths()[0].name}). "
                "Continue it with resume=True, or choose another folder."
            )
        self._resume = resume

    def save(
        self,
        step: int,
        weights: dict[str, torch.Tensor],
        state: dict[str, Any],
        *,
        threads: int,
        device: str,
        finished: str | None,
        processes: int = 1,
    ) -> Path:
        """Writes a checkpoint; a failure leaves the earlier ones as they are."""
        packed, tensors = pack_state(state)
        files = {"model.safetensors": weights, "state.safetensors": tensors, "state.json": packed}
        header = {
            "fingerprint": self.fingerprint,
            "threads": threads,
            "device": device,
            "processes": processes,
            "finished": finished,
        }
        return self._checkpoints.save(step, files, header)

    def load(self, *, threads: int, device: str, processes: int = 1) -> "Saved | None":
        """Reads the newest whole checkpoint; None when there is nothing to resume."""
        if not self._resume:
            return None
        found = self._checkpoints.latest()
        for _, reason in self._checkpoints.skipped:
            self._warn(f"skipped a damaged checkpoint: {reason}")
        if found is None:
            if self._checkpoints.skipped:
                raise ModelError(
                    f"{self.folder}: none of its checkpoints is whole. "
                    "Start again in another folder."
                )
            return None
        path, manifest = found
        with decoding(path, to=ModelError):
            header = _Header.model_validate(manifest.header)
            packed, tensors = read_json(path / "state.json"), read_tensors(path / _TENSORS)
            state = unpack_state(packed, tensors, where="state.json")
            weights = read_tensors(path / "model.safetensors")
        self._check_fingerprint(path, header.fingerprint)
        self._compare(manifest, {"threads": threads, "device": device, "processes": processes})
        return Saved(path, weights, state, header.finished)

    def _check_fingerprint(self, path: Path, saved: dict[str, Any]) -> None:
        names = sorted(saved.keys() | self.fingerprint.keys())
        changed = [n for n in names if saved.get(n) != self.fingerprint.get(n)]
        if not changed:
            return
        words = "; ".join(
            f"'{n}' was {_short(saved.get(n))}, is {_short(self.fingerprint.get(n))}"
            for n in changed
        )
        if not self.force:
            raise UsageError(
                f"{path} is of another run: {words}. Resume with the same data and settings, "
                "choose another folder, or use force."
            )
        self._warn(f"resumed by force although {words}")

    def _compare(self, manifest: Manifest, now: dict[str, Any]) -> None:
        before = {"processes": 1, **manifest.header, "torch": manifest.versions.get("torch")}
        for name, value in {**now, "torch": torch.__version__}.items():
            if before.get(name) != value:
                self._warn(
                    f"the run was made with {name} {before.get(name)} and goes on with {value}: "
                    "it will not be bit for bit the uninterrupted one"
                )

    def _warn(self, note: str) -> None:
        self.notes.append(note)
        warnings.warn(note, stacklevel=2)


class Saved(NamedTuple):
    """A checkpoint in memory: its folder, weights of network and objective, and the rest.

    ``finished`` is how the run ended, None when it did not.
    """

    path: Path
    weights: dict[str, torch.Tensor]
    state: dict[str, Any]
    finished: str | None

    def to_bytes(self) -> bytes:
        """Encodes it for another process."""
        packed, tensors = pack_state(
            {"weights": self.weights, "state": self.state, "finished": self.finished}
        )
        head = json.dumps({"path": str(self.path), "packed": packed}).encode()
        return len(head).to_bytes(8, "little") + head + encode_tensors(tensors)

    @classmethod
    def from_bytes(cls, content: bytes) -> "Saved":
        """Decodes it from another process."""
        end = 8 + int.from_bytes(content[:8], "little")
        head = json.loads(content[8:end])
        found = unpack_state(head["packed"], read_tensors(content[end:]), where=head["path"])
        return cls(Path(head["path"]), found["weights"], found["state"], found["finished"])


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
