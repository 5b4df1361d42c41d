"""Joins the fits of several processes: the same start, shards of weights, summed gradients."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.data.batch import count_rows, map_tensors, take_rows
from ansatz.data.source import Source
from ansatz.errors import UsageError
from ansatz.training.machine import is_sharded
from ansatz.training.objectives import Step
from ansatz.training.processes.group import Processes

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
    wait for each other for ever, or train on rows twice. All start from the first one's weights.
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
    """The device of this process: of several GPUs, the one that has its number."""
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


def gather_shards(state: Any) -> Any:
    """A nested state with every shard made whole; all processes must ask for it together."""
    if is_sharded(state):
        return state.full_tensor()
    if isinstance(state, dict):
        return {key: gather_shards(value) for key, value in state.items()}
    if type(state) in (list, tuple):
        return type(state)(gather_shards(value) for value in state)
    return state


def shard_like(value: Tensor, like: Tensor) -> Tensor:
    """A whole tensor, cut as ``like`` is cut; every process has the whole, so nothing is sent."""
    if not is_sharded(like) or is_sharded(value):
        return value
    from torch.distributed.tensor import distribute_tensor

    mesh, placements = like.device_mesh, like.placements  # type: ignore[attr-defined]
    return distribute_tensor(value.to(like.device), mesh, placements, src_data_rank=None)


def shard_named(values: dict[str, Tensor], like: dict[str, Tensor]) -> dict[str, Tensor]:
    """Whole tensors by name, each cut as the one of the same name in ``like``."""
    return {name: shard_like(t, like[name]) if name in like else t for name, t in values.items()}


def shard_optimizer(optimizer: torch.optim.Optimizer) -> None:
    """Cuts a loaded optimizer's moments as its parameters are cut."""
    for parameter, state in optimizer.state.items():
        if is_sharded(parameter):
            for name, value in state.items():
                if isinstance(value, Tensor) and value.shape == parameter.shape:
                    state[name] = shard_like(value, parameter)


def clip_gradients(parameters: Sequence[Tensor], limit: float) -> float:
    """Scales the gradient down to a global norm of ``limit``; returns the norm it had.

    ``torch.nn.utils.clip_grad_norm_``, also where some gradients are shards and others are not.
    """
    kinds: list[list[Tensor]] = [[], []]
    for parameter in parameters:
        kinds[is_sharded(parameter)].append(parameter)
    if not kinds[1]:
        gradients = [p.grad for p in parameters if p.grad is not None]
        total = torch.nn.utils.get_total_norm(gradients)
        norm = float(total)
        if not norm + 1e-6 <= limit:  # else torch multiplies all of them by 1
            torch.nn.utils.clip_grads_with_norm_(parameters, limit, total)
        return norm
    of_kinds = [[p.grad for p in kind if p.grad is not None] for kind in kinds]
    norms = [torch.nn.utils.get_total_norm(kind) for kind in of_kinds if kind]
    total = torch.stack([gather_shards(norm) for norm in norms]).norm()
    for kind in kinds:
        torch.nn.utils.clip_grads_with_norm_(kind, limit, total)
    return float(total)


def local_parts(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Gives this process's part of each tensor."""
    return [t.to_local() if is_sharded(t) else t for t in tensors]  # type: ignore[attr-defined]


def reduce_gradients(
    processes: Processes,
    parameters: Sequence[Tensor],
    statistics: Sequence[Tensor],
    *,
    total: float,
    count: float,
    error: Exception | None = None,
) -> tuple[float, float]:
    r"""Replaces each ``.grad`` by the sum over the processes divided by the sum of the weights.

    .. math:: g = \frac{\sum_r \nabla T_r}{\sum_r C_r}

    One message for all parameters. A parameter that no process has a gradient of keeps None, so
    that the optimizer leaves it alone. Shards (FSDP2) were added up by the backward pass, as means
    over the processes; they are scaled.
    """
    whole = [p for p in parameters if not is_sharded(p)]
    vector = None
    if whole or statistics:
        vector = _flatten(whole, statistics, failed=error is not None)
    vector, total, count = processes.add_up(vector, total, count, error)
    if vector is not None:
        _distribute(vector, whole, statistics, count, processes.size)
    if count > 0:
        for parameter in parameters:
            if is_sharded(parameter) and parameter.grad is not None:
                parameter.grad.to_local().mul_(processes.size / count)  # type: ignore[attr-defined]
    return total, count


def running_statistics(network: nn.Module) -> list[Tensor]:
    """Gives batch normalisation's statistics: the one thing beside gradients that rows change."""
    norms = [m for m in network.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    found = [t for norm in norms for t in (norm.running_mean, norm.running_var)]
    return [t for t in found if t is not None and not is_sharded(t)]


class GatheredNetwork(nn.Module):
    """A network whose rows are computed by all processes, each its own, and then put together.

    For likelihoods that couple the rows of a batch (Cox): every process sees all outputs, and the
    gradient of the joint loss in its own rows. The sum over processes is the gradient in all rows.
    """

    def __init__(self, network: nn.Module, processes: Processes) -> None:
        super().__init__()
        self.network, self.processes = network, processes

    def forward(self, *inputs: Any) -> Tensor:
        """The outputs of all rows; only this process's have a gradient."""
        rows = count_rows(inputs)
        first, last = self.processes.bounds(rows)[self.processes.rank :][:2]
        own: Tensor = self.network(*take_rows(inputs, slice(first, last)))
        every = self.processes.gather_rows(own, rows)
        return torch.cat([every[:first], own, every[last:]])


def _flatten(whole: Sequence[Tensor], statistics: Sequence[Tensor], *, failed: bool) -> Tensor:
    """[gradients | whether there is one | statistics], in float32 or wider."""
    if any(p.grad is not None and p.grad.is_sparse for p in whole):
        raise UsageError("sparse gradients are not added up over processes: use sparse=False.")
    dtype = torch.float32
    for tensor in (*whole, *statistics):
        dtype = torch.promote_types(dtype, tensor.dtype)
    missing = [p.grad is None or failed for p in whole]
    chunks = [
        torch.zeros_like(p).reshape(-1) if lacks else p.grad.reshape(-1)  # type: ignore[union-attr]
        for p, lacks in zip(whole, missing, strict=True)
    ]
    device = (whole or statistics)[0].device
    there = torch.tensor([float(not lacks) for lacks in missing], dtype=dtype).to(device)
    parts = [*chunks, there, *(t.reshape(-1) for t in statistics)]
    return torch.cat([part.detach().to(dtype) for part in parts])


def _distribute(
    vector: Tensor, whole: Sequence[Tensor], statistics: Sequence[Tensor], count: float, size: int
) -> None:
    lengths = [p.numel() for p in whole] + [len(whole)] + [t.numel() for t in statistics]
    chunks = vector.split(lengths)
    there = chunks[len(whole)].tolist()
    for parameter, chunk, seen in zip(whole, chunks, there, strict=False):
        if not seen or count <= 0:
            parameter.grad = None
        else:
            parameter.grad = (chunk / count).view(parameter.shape).to(parameter.dtype)
    for tensor, chunk in zip(statistics, chunks[len(whole) + 1 :], strict=True):
        tensor.copy_((chunk / size).view(tensor.shape))
