"""N examples by position, whatever they look like."""

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ansatz.spec import InputSpec


class Rows(Protocol):
    """N examples by position: rows of a table, images in files, texts, sets, graphs."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: Any) -> Self:
        """The examples at these positions: an array of numbers, a mask or a slice."""
        ...

    @property
    def spec(self) -> InputSpec | None:
        """What one example looks like, where that is known before an encoder has learned."""
        ...

    @property
    def has_features(self) -> bool:
        """Whether there is anything to predict from; without it the constant model is exact."""
        ...

    def content_keys(self, seed: int = 0) -> NDArray[np.uint64] | None:
        """A hash of each example's content; None where equal content is not a duplicate."""
        ...

    def describe(self) -> dict[str, Any]:
        """What the examples' features are called, as JSON: ``names``, ``count``, ``columns``."""
        ...
