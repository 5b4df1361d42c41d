"""Finds numbers that are not finite: the first bad tensor, and the rows it belongs to."""

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ansatz.data.batch import Batch, map_tensors
from ansatz.errors import NumericalError


def all_finite(tensors: Sequence[Tensor]) -> bool:
    """True when no entry of any tensor is nan or infinite; one pass over the memory."""
    if not tensors:
        return True
    device = tensors[0].device
    if any(t.is_sparse or not t.is_floating_point() or t.device != device for t in tensors):
        return all(bool(t.isfinite().all()) for t in map(_dense, tensors))
    found = torch.zeros((), dtype=torch.float32, device=device)
    # The gradient scaler's check, with scale 1: it leaves the values alone, and one call for all
    # tensors takes 4 us where a norm of each takes 20.
    torch._amp_foreach_non_finite_check_and_unscale_(list(tensors), found, _one(device))
    return found.item() == 0


@functools.cache
def _one(device: torch.device) -> Tensor:
    return torch.ones((), dtype=torch.float32, device=device)


def _dense(tensor: Tensor) -> Tensor:
    return tensor.coalesce().values() if tensor.is_sparse else tensor


class BadTensor(NamedTuple):
    """The first bad tensor on the way from the inputs to the gradient."""

    place: str
    rows: list[int]
    advice: str


def numerical_error(
    network: nn.Module,
    objective: nn.Module,
    batch: Batch,
    what: str,
    *,
    number: int,
    rate: float | None = None,
) -> NumericalError:
    """The error of step ``number``, which names the first bad tensor and the rows."""
    finding = diagnose(network, objective, batch)
    rows = (finding.rows or batch.index.tolist())[:5]
    whose = "row" if len(rows) == 1 else "rows"
    return NumericalError(
        f"{what} at step {number}: {finding.place} "
        f"({whose} {', '.join(map(str, rows))} of the batch). The update was not applied. "
        f"{finding.advice}" + (f" The learning rate is {rate:g}." if rate is not None else "")
    )


_SLOWER = "Lower the learning rate, or clip the gradient (clip=1.0)."


def diagnose(network: nn.Module, objective: nn.Module, batch: Batch) -> BadTensor:
    """Follows a batch from its inputs through the layers to the loss and the stored gradients."""
    return (
        _bad_input(batch)
        or _bad_weight(network, objective)
        or _bad_forward(network, objective, batch)
        or _bad_gradient(network, objective)
        or BadTensor("no tensor that can be named is bad when the batch is run again", [], _SLOWER)
    )


def _bad_input(batch: Batch) -> BadTensor | None:
    names = ["input", "target", "offset"]
    for name, tree in zip(names, (batch.inputs, batch.target, batch.offset), strict=True):
        for tensor in _tensors(tree):
            bad = _bad(tensor)
            if bad.ndim and len(bad) == len(batch.weight):
                bad = bad & _as(batch.weight > 0, bad)  # an unobserved row may hold anything
            if not bool(bad.any()):
                continue
            where = bad.nonzero()[0].tolist()
            column = f" column {where[-1]}" if name == "input" and tensor.ndim == 2 else ""
            value = tensor[tuple(where)].item()
            rows = _rows_where(bad, batch)
            return BadTensor(f"{name}{column} is {value}", rows, "Repair or drop those rows.")
    return None


def _bad_weight(network: nn.Module, objective: nn.Module) -> BadTensor | None:
    # Parameters only: a buffer may be infinite on purpose, as an attention mask is.
    for name, tensor in [*network.named_parameters(), *objective.named_parameters()]:
        if bool(_bad(tensor).any()):
            return BadTensor(f"the weight {name} is {_value(tensor)}", [], _SLOWER)
    return None


def _bad_forward(network: nn.Module, objective: nn.Module, batch: Batch) -> BadTensor | None:
    found: list[BadTensor] = []
    # A second forward pass must change nothing: not the random state, not the running statistics.
    with torch.random.fork_rng(devices=[]), _unchanged_buffers(network, objective), torch.no_grad():
        with _watched(network, batch, found):
            terms = getattr(objective, "terms", None)
            values = terms(network, batch) if terms else objective(network, batch).total
    if found:
        return found[0]
    bad = _bad(values)
    if bad.ndim and len(bad) == len(batch.weight):
        bad = bad & _as(batch.weight > 0, bad)
    if bool(bad.any()):
        advice = f"Check the outcome of those rows against the likelihood. {_SLOWER}"
        return BadTensor(
            f"the loss itself is {values[bad][0].item()}", _rows_where(bad, batch), advice
        )
    return None


def _bad_gradient(network: nn.Module, objective: nn.Module) -> BadTensor | None:
    named = [*network.named_parameters(), *objective.named_parameters()]
    for name, parameter in reversed(named):  # the gradient meets the last layer first
        if parameter.grad is not None and bool(_bad(parameter.grad).any()):
            place = f"the gradient of {name} is {_value(parameter.grad)} while the loss is finite"
            return BadTensor(place, [], _SLOWER)
    return None


@contextmanager
def _watched(network: nn.Module, batch: Batch, found: list[BadTensor]) -> Iterator[None]:
    """Notes the first layer, in order of execution, whose output is not finite."""

    def watch(name: str) -> Any:
        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
            for tensor in _tensors(output) if not found else ():
                bad = _bad(tensor)
                if bool(bad.any()):
                    layer = f"layer '{name}' ({type(module).__name__})" if name else "the network"
                    place = f"the output of {layer} is {_value(tensor)}"
                    found.append(BadTensor(place, _rows_where(bad, batch), _SLOWER))

        return hook

    handles = [m.register_forward_hook(watch(name)) for name, m in network.named_modules()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _unchanged_buffers(*modules: nn.Module) -> Iterator[None]:
    buffers = [b for module in modules for b in module.buffers()]
    kept = [b.clone() for b in buffers]
    try:
        yield
    finally:
        for buffer, value in zip(buffers, kept, strict=True):
            buffer.copy_(value)


def _tensors(tree: Any) -> list[Tensor]:
    found: list[Tensor] = []
    map_tensors(found.append, tree)
    return found


def _bad(tensor: Tensor) -> Tensor:
    return ~tensor.detach().isfinite()


def _as(mask: Tensor, like: Tensor) -> Tensor:
    """A mask of the leading axes, ready to meet a tensor with more of them or fewer."""
    mask = mask.reshape(len(mask), -1).any(1) if mask.ndim > like.ndim else mask
    return mask.reshape(mask.shape + (1,) * (like.ndim - mask.ndim))


def _value(tensor: Tensor) -> float:
    return tensor.detach()[_bad(tensor)][0].item()


def _rows_where(bad: Tensor, batch: Batch) -> list[int]:
    if not bad.ndim or len(bad) != len(batch.index):
        return []
    touched = bad.reshape(len(bad), -1).any(1)
    return batch.index[touched.to(batch.index.device)].tolist()
