"""A run on disk: what to save of it, and whether what is there is this run."""

import json
import warnings
from pathlib import Path
from typing import Any

import torch

from ansatz.errors import ModelError, UsageError
from ansatz.storage import (
    Checkpoints,
    Manifest,
    encode_tensors,
    pack_state,
    read_json,
    read_tensors,
    unpack_state,
)


class RunFolder:
    """The checkpoints of one run, with its fingerprint.

    A checkpoint holds ``model.safetensors`` (network and objective), and the rest of the trainer's
    memory as ``state.json`` and ``state.safetensors``.

    Args:
        folder: where they are.
        keep: how many stay.
        fingerprint: settings and data, as plain JSON; a run with another one is another run.
        resume: continue what is there; otherwise checkpoints there are refused.
        force: resume although the fingerprint differs.
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
        """The newest whole checkpoint; None when there is nothing to resume."""
        if not self._resume:
            return None
        found = self._checkpoints.latest()
        for _, reason in self._checkpoints.skipped:
            self._say(f"skipped a damaged checkpoint: {reason}")
        if found is None:
            if self._checkpoints.skipped:
                raise ModelError(
                    f"{self.folder}: none of its checkpoints is whole. "
                    "Start again in another folder."
                )
            return None
        path, manifest = found
        self._check_fingerprint(path, manifest.header.get("fingerprint", {}))
        self._compare(manifest, {"threads": threads, "device": device, "processes": processes})
        state = unpack_state(
            read_json(path / "state.json"), read_tensors(path / "state.safetensors")
        )
        weights = read_tensors(path / "model.safetensors")
        return Saved(path, weights, state, manifest.header.get("finished"))

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
        self._say(f"resumed by force although {words}")

    def _compare(self, manifest: Manifest, now: dict[str, Any]) -> None:
        before = {"processes": 1, **manifest.header, "torch": manifest.versions.get("torch")}
        for name, value in {**now, "torch": torch.__version__}.items():
            if before.get(name) != value:
                self._say(
                    f"the run was made with {name} {before.get(name)} and goes on with {value}: "
                    "it will not be bit for bit the uninterrupted one"
                )

    def _say(self, note: str) -> None:
        self.notes.append(note)
        warnings.warn(note, stacklevel=2)


class Saved:
    """A checkpoint in memory.

    Args:
        path: its folder.
        weights: of network and objective.
        state: the rest.
        finished: how the run ended, None when it did not.
    """

    def __init__(
        self,
        path: Path,
        weights: dict[str, torch.Tensor],
        state: dict[str, Any],
        finished: str | None,
    ) -> None:
        self.path, self.weights, self.state, self.finished = path, weights, state, finished

    def to_bytes(self) -> bytes:
        """For another process."""
        packed, tensors = pack_state(
            {"weights": self.weights, "state": self.state, "finished": self.finished}
        )
        head = json.dumps({"path": str(self.path), "packed": packed}).encode()
        return len(head).to_bytes(8, "little") + head + encode_tensors(tensors)

    @classmethod
    def from_bytes(cls, content: bytes) -> "Saved":
        """From another process."""
        end = 8 + int.from_bytes(content[:8], "little")
        head = json.loads(content[8:end])
        found = unpack_state(head["packed"], read_tensors(content[end:]), where=head["path"])
        return cls(Path(head["path"]), found["weights"], found["state"], found["finished"])


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
