"""Examples by position, and the map from them to the inputs of a network."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data import Column
from ansatz.spec import InputSpec


class Rows(Protocol):
    """N examples by position: rows of a table, images in files, texts, sets, graphs."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: Any) -> Self:
        """The examples at these positions: an array of numbers, a mask or a slice."""
        ...

    @property
    def spec(self) -> InputSpec | None:
        """The shape of one example, where that is known before an encoder is fitted."""
        ...

    @property
    def has_features(self) -> bool:
        """Whether there is anything to predict from; without it the constant model is exact."""
        ...

    def content_keys(self, seed: int = 0) -> NDArray[np.uint64] | None:
        """A hash of each example's content; None where equal content is not a duplicate."""
        ...

    def describe(self) -> dict[str, Any]:
        """Describes the features as JSON: ``names``, ``count``, ``columns``."""
        ...


class Encoder(Protocol):
    """The map from rows to a network's inputs, fitted to training rows."""

    @property
    def spec(self) -> InputSpec:
        """The shape of one example's inputs, for the network's factory."""
        ...

    @property
    def dtype(self) -> torch.dtype:
        """The floating-point type in which a network predicts."""
        ...

    @property
    def notes(self) -> list[str]:
        """Sentences about what the training rows showed."""
        ...

    @property
    def columns(self) -> Sequence[Column]:
        """The roles of the columns; empty where x has none."""
        ...

    def inputs(self, rows: Any, *, notes: list[str] | None = None) -> tuple[Tensor, ...]:
        """The network's inputs for prediction; what is odd goes to ``notes``, or is warned of."""
        ...

    def state(self) -> dict[str, Any]:
        """All of it as JSON; the structure's ``load_encoder`` is the inverse."""
        ...


@runtime_checkable
class HoldsTensors(Protocol):
    """What an encoder adds that keeps more than JSON can hold, like the graph of its nodes."""

    def tensors(self) -> dict[str, Tensor]:
        """What is saved beside :meth:`Encoder.state`."""
        ...

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Takes in what :meth:`tensors` gave."""
        ...
