"""The part of a checkpoint that is not weights, checked as a whole before any of it is used."""

import math
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor
from torch.optim import Optimizer

from ansatz.errors import ModelError

_LARGEST = 2**53  # whole numbers up to here are exact in every format


class _HistoryState(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    records: list[dict[str, float | int | bool | None]]
    best_step: int | None
    best_loss: float | None
    stop_reason: str | None
    steps: int = Field(ge=0, le=_LARGEST)
    epochs: int = Field(ge=0, le=_LARGEST)
    seconds: float = Field(ge=0)
    notes: list[str]


class LoopState(BaseModel):
    """Counters, generators, the best weights so far, the history: fields of a ``state.json``."""

    model_config = ConfigDict(arbitrary_types_allowed=True, strict=True)

    number: int = Field(ge=0, le=_LARGEST)
    epoch: int = Field(ge=0, le=_LARGEST)
    position: int = Field(ge=0, le=_LARGEST)
    evaluated: int = Field(ge=0, le=_LARGEST)
    total: float
    count: float = Field(ge=0)
    step: dict[str, Any]
    random: dict[str, Any]
    stopping: dict[str, Any]
    best: dict[str, Tensor] | None
    average: dict[str, Any] | None
    train: Any
    callbacks: dict[str, Any]
    history: _HistoryState

    @classmethod
    def of(cls, state: Any, *, weights: Mapping[str, Tensor], source: object) -> "LoopState":
        """Validates a state against the weights that move and the source of the training rows."""
        found = cls.model_validate(state)
        average = None if found.average is None else found.average.get("values", {})
        for name, saved in (("best", found.best), ("average", average)):
            if saved is not None:
                _check_tensors(name, saved, weights)
        if found.train is not None and not hasattr(source, "load_state_dict"):
            raise ModelError("it names a state of the training source, which has none")
        return found


def _check_tensors(name: str, saved: Any, weights: Mapping[str, Tensor]) -> None:
    if not isinstance(saved, Mapping) or not all(isinstance(t, Tensor) for t in saved.values()):
        raise ModelError(f"{name}: expected tensors by name")
    odd = sorted(str(key) for key in saved.keys() - weights.keys())
    if odd:
        raise ModelError(f"{name}: the network has no tensor '{odd[0][:80]}'")
    for key, tensor in saved.items():
        if tensor.shape != weights[key].shape:
            raise ModelError(
                f"{name}: the tensor '{key}' has shape {tuple(tensor.shape)}, expected "
                f"{tuple(weights[key].shape)}"
            )


def load_optimizer(optimizer: Optimizer, state: dict[str, Any]) -> None:
    """Restores an optimizer; settings and moments must be of the kinds that it has and needs."""
    own = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict(state)
    for expected, group in zip(own, optimizer.param_groups, strict=True):
        for name in expected.keys() - {"params"}:
            if name not in group or not _is_alike(group[name], expected[name]):
                found = repr(group.get(name))[:60]
                raise ModelError(f"optimizer: expected '{name}' like {expected[name]}, got {found}")
    kinds = {
        frozenset((name, isinstance(moment, Tensor)) for name, moment in moments.items())
        for moments in optimizer.state.values()
        if moments
    }
    if len(kinds) > 1:
        raise ModelError("optimizer: its tensors have different moments")
    check_moments(optimizer)


def _is_alike(value: Any, expected: Any) -> bool:
    """Tests whether a setting could stand in the place of another: a number for a number."""
    if expected is None or isinstance(expected, bool):  # None lets torch choose
        return value is None or isinstance(value, bool)
    if isinstance(expected, int | float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(expected, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(expected)
            and all(map(_is_alike, value, expected))
        )
    return isinstance(value, type(expected))


def check_moments(optimizer: Optimizer) -> None:
    """Rejects moments that do not have the sizes of their parameters.

    torch's fused rules walk through parameter and moments by their place in memory: a moment that
    is too short is read, and written, beyond its end. A number, a vector over all parameters
    (L-BFGS) and factors of a parameter's shape (1 along some axes) pass.
    """
    total = sum(p.numel() for group in optimizer.param_groups for p in group["params"])
    known = [
        (name, tuple(moment.shape), tuple(parameter.shape))
        for parameter, state in optimizer.state.items()
        for name, moment in (state.items() if isinstance(state, dict) else ())
        if isinstance(moment, Tensor)
    ]
    whole = {name for name, shape, wanted in known if shape == wanted != ()}  # of one, so of all
    for name, shape, wanted in known:
        is_factor = len(shape) == len(wanted) and all(
            a in (1, b) for a, b in zip(shape, wanted, strict=True)
        )
        is_other = name not in whole and (is_factor or math.prod(shape) in (1, total))
        if shape != wanted and not is_other:
            raise ModelError(f"optimizer: '{name}' has shape {shape} for a tensor of {wanted}")
