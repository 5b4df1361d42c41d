"""The part of a checkpoint that is not weights, checked as a whole before any of it is used."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from ansatz.errors import ModelError

_LARGEST = 2**53  # whole numbers up to here are exact in every format


class _HistoryState(BaseModel):
    model_config = ConfigDict(extra="forbid")

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

    model_config = ConfigDict(arbitrary_types_allowed=True)

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
