"""The gradient of all processes' rows, in every process."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.data.batch import count_rows, take_rows
from ansatz.errors import UsageError
from ansatz.training.distributed import Processes
from ansatz.training.sharded import is_sharded


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

    Args:
        processes: who takes part.
        parameters: with the gradient of this process's total, T_r.
        statistics: of batch normalisation; each becomes its mean over the processes.
        total: T_r.
        count: C_r.
        error: what went wrong here; it is then raised in all processes.

    Returns:
        The sums of total and count.
    """
    whole = [p for p in parameters if not is_sharded(p)]
    vector = None
    if whole or statistics:
        vector = _flatten(whole, statistics, failed=error is not None)
    vector, total, count = processes.add_up(vector, total, count, error)
    if vector is not None:
        _spread(vector, whole, statistics, count, processes.size)
    if count > 0:
        for parameter in parameters:
            if is_sharded(parameter) and parameter.grad is not None:
                parameter.grad.to_local().mul_(processes.size / count)  # type: ignore[attr-defined]
    return total, count


def running_statistics(network: nn.Module) -> list[Tensor]:
    """What batch normalisation remembers: the one thing beside gradients that rows change."""
    norms = [m for m in network.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    found = [t for norm in norms for t in (norm.running_mean, norm.running_var)]
    return [t for t in found if t is not None and not is_sharded(t)]


class GatheredNetwork(nn.Module):
    """A network whose rows are computed by all processes, each its own, and then put together.

    For likelihoods that couple the rows of a batch (Cox): every process sees all outputs, and the
    gradient of the joint loss in its own rows. The sum over processes is the gradient in all rows.

    Args:
        network: gives outputs, one row per row of its inputs.
        processes: who takes part.
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
    pieces = [
        torch.zeros_like(p).reshape(-1) if lacks else p.grad.reshape(-1)  # type: ignore[union-attr]
        for p, lacks in zip(whole, missing, strict=True)
    ]
    device = (whole or statistics)[0].device
    there = torch.tensor([float(not lacks) for lacks in missing], dtype=dtype).to(device)
    parts = [*pieces, there, *(t.reshape(-1) for t in statistics)]
    return torch.cat([part.detach().to(dtype) for part in parts])


def _spread(
    vector: Tensor, whole: Sequence[Tensor], statistics: Sequence[Tensor], count: float, size: int
) -> None:
    lengths = [p.numel() for p in whole] + [len(whole)] + [t.numel() for t in statistics]
    pieces = vector.split(lengths)
    there = pieces[len(whole)].tolist()
    for parameter, piece, seen in zip(whole, pieces, there, strict=False):
        if not seen or count <= 0:
            parameter.grad = None
        else:
            parameter.grad = (piece / count).view(parameter.shape).to(parameter.dtype)
    for tensor, piece in zip(statistics, pieces[len(whole) + 1 :], strict=True):
        tensor.copy_((piece / size).view(tensor.shape))
