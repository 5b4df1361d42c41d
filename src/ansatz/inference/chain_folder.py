"""Chains that checkpoint as they go, and go on where an interrupted fit stopped."""

import json
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor

from ansatz.errors import Interrupted, UsageError
from ansatz.inference.draws import MOST_BYTES
from ansatz.inference.runs import Run
from ansatz.storage import pack_state, unpack_state
from ansatz.storage.run_folder import RunFolder, RunLock
from ansatz.training.machine import Signals, using_threads
from ansatz.training.phase import Phase

EVERY = 20.0  # seconds between checkpoints


def go_through(run: Run, options: Mapping[str, Any], words: str) -> None:
    """Draws until the chains are complete, with progress, checkpoints and an end by signals.

    Args:
        run: the chains; they go on from their checkpoint where the options ask for it.
        options: of the trainer: ``checkpoint, resume, force, fingerprint, progress``.
        words: for the line of progress.
    """
    with ExitStack() as stack:
        stack.enter_context(using_threads(1))
        folder = _open(stack, options)
        saved = None if folder is None else folder.load(threads=1, device="cpu")
        if saved is not None:
            run.load(saved.state)
        signals = stack.enter_context(Signals())
        phase = stack.enter_context(Phase(words, options.get("progress", 0)))
        looked = [time.monotonic()]

        def look(now: Run) -> None:
            phase.show(now.done, now.plan.total)
            if signals.received is not None:
                where = _save(folder, now)
                raise Interrupted(signals.received, now.done, where)
            if folder is not None and time.monotonic() - looked[0] > EVERY:
                _save(folder, now)
                looked[0] = time.monotonic()

        run.go(look)
        _save(folder, run)


def _open(stack: ExitStack, options: Mapping[str, Any]) -> RunFolder | None:
    place = options.get("checkpoint")
    if place is None:
        return None
    stack.enter_context(RunLock(place))
    return RunFolder(
        place,
        keep=1,
        fingerprint=dict(options.get("fingerprint") or {}),
        resume=bool(options.get("resume")),
        force=bool(options.get("force")),
    )


def _save(folder: RunFolder | None, run: Run) -> str | None:
    if folder is None:
        return None
    folder.save(run.done, {}, run.state(), threads=1, device="cpu", finished=None)
    return str(folder.folder)


def load_run(run: Run, state: Mapping[str, Any]) -> None:
    """Goes back to a state of the same chains; those of another density are refused."""
    run.load(state)
    position, known = run.ends()
    now, _ = run.density(position)
    if not torch.allclose(now, known, rtol=1e-9, atol=1e-9):
        raise UsageError(
            "these chains are of other rows, priors or terms, and cannot go on: fit anew."
        )
    if run.done > run.plan.total:
        raise UsageError(
            f"the chains have {run.done - run.plan.warmup:,} draws each after the warm-up: ask for "
            "more to go on."
        )


def run_tensors(state: Mapping[str, Any]) -> dict[str, Tensor]:
    """The state of chains as tensors, which a model saves so that they can go on.

    Nothing where they would take more than a model may hold.
    """
    packed, tensors = pack_state(dict(state))
    if sum(t.numel() * t.element_size() for t in tensors.values()) > MOST_BYTES:
        return {}
    text = torch.frombuffer(bytearray(json.dumps(packed).encode()), dtype=torch.uint8)
    return {"run.packed": text, **{f"run.{name}": value for name, value in tensors.items()}}


def run_state(saved: Mapping[str, Tensor]) -> dict[str, Any]:
    """The inverse of :func:`run_tensors`."""
    if "run.packed" not in saved:
        raise UsageError(
            "these draws did not come from chains, or from chains too long to be kept: fit anew."
        )
    packed = json.loads(saved["run.packed"].numpy().tobytes())
    own = {n: t for n, t in saved.items() if n.startswith("run.") and n != "run.packed"}
    tensors = {name.removeprefix("run."): tensor for name, tensor in own.items()}
    found: dict[str, Any] = unpack_state(packed, tensors)
    return found
