"""Weights that no process holds whole: FSDP2's shards, and the way to a checkpoint and back."""

import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn


def is_sharded(tensor: object) -> bool:
    """Whether a tensor is spread over processes, as ``fully_shard`` leaves parameters."""
    # A DTensor exists only where its module was imported; importing it here would cost a second.
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(tensor, module.DTensor)


def has_shards(network: nn.Module) -> bool:
    """Whether any parameter of the network is spread over processes."""
    return any(is_sharded(p) for p in network.parameters())


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
    """What this process holds of each tensor."""
    return [t.to_local() if is_sharded(t) else t for t in tensors]  # type: ignore[attr-defined]
