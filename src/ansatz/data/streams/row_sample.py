"""A bounded sample of a stream, the same whatever the blocks: the rows with the least hash."""

from typing import TYPE_CHECKING

import numpy as np

from ansatz.data.keys import mix
from ansatz.seeds import derive

if TYPE_CHECKING:
    import pandas as pd


class RowSample:
    """At most ``size`` rows, each with the same chance; all rows where there are no more.

    The sample is the ``size`` rows whose numbers have the least hash of (seed, use): it needs one
    pass, no random state, and does not depend on how rows are cut into blocks.

    Args:
        size: the most rows that are kept.
        seed: another seed, another sample.
        use: another use, another sample.

    Example:
        >>> import pandas as pd
        >>> from ansatz.data.streams import RowSample
        >>> sample = RowSample(3, seed=0)
        >>> for start in (0, 50):
        ...     rows = range(start, start + 50)
        ...     sample.add(pd.DataFrame({"a": rows}, index=rows))
        >>> len(sample.frame), sample.seen
        (3, 100)
    """

    def __init__(self, size: int, *, seed: int = 0, use: str = "sample") -> None:
        self.size, self.seen = size, 0
        self._salt = np.uint64(derive(seed, use))
        self._frames: list[pd.DataFrame] = []
        self._keys: list[np.ndarray] = []
        self._held = 0
        self._bound = np.uint64(2**64 - 1)

    def add(self, frame: "pd.DataFrame") -> None:
        """Offers rows, whose index numbers them."""
        self.seen += len(frame)
        keys = mix(frame.index.to_numpy().astype(np.uint64) ^ self._salt)
        keep = keys <= self._bound
        if not keep.any():
            return
        # A copy: a slice would keep the whole block alive.
        self._frames.append(frame[keep].copy())
        self._keys.append(keys[keep])
        self._held += int(keep.sum())
        if self._held > 2 * self.size + 1_000:
            self._shrink()

    @property
    def frame(self) -> "pd.DataFrame":
        """The rows, in the order of the table."""
        import pandas as pd

        self._shrink()
        return pd.concat(self._frames).sort_index() if self._frames else pd.DataFrame()

    @property
    def complete(self) -> bool:
        """Whether the sample is all rows that were offered."""
        return self.seen <= self.size

    def _shrink(self) -> None:
        import pandas as pd

        if self._held <= self.size:
            return
        keys = np.concatenate(self._keys)
        self._bound = np.partition(keys, self.size - 1)[self.size - 1]
        keep = keys <= self._bound
        self._frames = [pd.concat(self._frames)[keep]]
        self._keys = [keys[keep]]
        self._held = int(keep.sum())
