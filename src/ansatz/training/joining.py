"""How several processes become one fit: the same task, the same start, each its own device."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.data.batch import map_tensors
from ansatz.data.source import Source
from ansatz.errors import UsageError
from ansatz.training.distributed import Processes
from ansatz.training.sharded import is_sharded
from ansatz.training.step import Step

_ADVICE = (
    "Every process must be given the same data, settings and seed: it takes its own rows of each "
    "batch itself."
)


@contextmanager
def join(
    processes: Processes,
    step: Step,
    train: Source,
    valid: Source | None,
    settings: dict[str, Any],
) -> Iterator[None]:
    """Lets a step train with the other processes inside.

    The processes compare what they were given and refuse to begin if it differs, since they would
    wait for each other for ever, or learn from rows twice. All start from the first one's weights.

    Args:
        processes: who takes part.
        step: has an attribute ``processes`` if it can add up gradients.
        train: the same in all.
        valid: the same in all.
        settings: the same in all.
    """
    _require_support(step)
    parameters = [p for m in (step.network, step.objective) for p in m.parameters()]
    task = {
        **settings,
        "number of validation batches": None if valid is None else len(valid),
        "number of parameters": sum(p.numel() for p in parameters),
        "first batch": _digest(train),
    }
    processes.agree(task, _ADVICE)
    buffers = [b for m in (step.network, step.objective) for b in m.buffers()]
    processes.broadcast([t for t in (*parameters, *buffers) if not is_sharded(t) and t.numel()])
    step.processes = processes  # type: ignore[attr-defined]
    try:
        yield
    finally:
        step.processes = None  # type: ignore[attr-defined]


def device_of_process(device: torch.device, processes: Processes, *, asked: str) -> torch.device:
    """The device of this process: of several GPUs, the one that has its number.

    Args:
        device: what one process would use.
        processes: who shares the machine.
        asked: what the user said; only ``"auto"`` may become another kind of device.
    """
    if device.type == "mps":
        if asked != "auto":
            raise UsageError(
                "several processes cannot share mps: use device='cpu', or one process."
            )
        return torch.device("cpu")
    if device.type != "cuda" or device.index is not None:
        return device
    if processes.local_size > torch.cuda.device_count():
        raise UsageError(
            f"{processes.local_size} processes on a machine with {torch.cuda.device_count()} CUDA "
            "devices: start one process per device, or use device='cpu'."
        )
    return torch.device("cuda", processes.local_rank)


def _require_support(step: Step) -> None:
    if isinstance(step.network, nn.parallel.DistributedDataParallel):
        raise UsageError(
            "give the step the network itself, not DistributedDataParallel: the trainer adds up "
            "the gradients of the processes."
        )
    if not hasattr(step, "processes"):
        raise UsageError(
            f"{type(step).__name__} trains in one process: run it without torchrun and without "
            "--processes."
        )


def _digest(source: Source) -> str | None:
    """Tells one epoch from another by the first batch: its rows and their outcomes."""
    if hasattr(source, "state_dict"):
        return None  # looking at a batch would change what comes next
    batch = next(iter(source.batches(epoch=0)))
    summary = hashlib.sha256()

    def add(tensor: Tensor) -> None:
        whole = tensor.detach().cpu().contiguous()
        summary.update(whole.view(-1).view(torch.uint8).numpy().tobytes())

    map_tensors(add, (batch.index, batch.target, batch.weight))
    return summary.hexdigest()[:16]
