"""Keys and values of the steps so far, so that a new step costs one query."""

import torch
from torch import Tensor


class KeyValueCache:
    """Holds the keys and values that an attention computed for earlier steps.

    In a causal network a later step does not change them, so that generating T tokens takes T
    steps of one query each and gives what T passes over the whole text would.

    Example:
        >>> import torch
        >>> from ansatz.layers import KeyValueCache, MultiHeadAttention
        >>> layer, cache = MultiHeadAttention(8, 2, causal=True), KeyValueCache()
        >>> x = torch.ones(1, 3, 8)
        >>> steps = [layer(x[:, t : t + 1], cache=cache) for t in range(3)]
        >>> cache.length, torch.allclose(torch.cat(steps, 1), layer(x), atol=1e-6)
        (3, True)
    """

    def __init__(self) -> None:
        self._held: Tensor | None = None  # (2, B, h, at least S, d)
        self.length = 0  # number of steps held

    @property
    def keys(self) -> Tensor | None:
        """Those of all steps, ``(B, h, S, d)``; None at first."""
        return None if self._held is None else self._held[0, :, :, : self.length]

    @property
    def values(self) -> Tensor | None:
        """Like the keys."""
        return None if self._held is None else self._held[1, :, :, : self.length]

    def append(self, both: Tensor) -> Tensor:
        """Adds keys and values of new steps and returns those of all, ``(2, B, h, S, d)``."""
        before, self.length = self.length, self.length + both.shape[3]
        held = self._held
        if held is None:
            self._held = both
            return both
        if torch.is_grad_enabled() and (held.requires_grad or both.requires_grad):
            self._held = torch.cat([held[:, :, :, :before], both], 3)  # nothing is overwritten
            return self._held
        if held.shape[3] < self.length:  # twice the room, so that a step is moved about once
            held = held.new_empty(*held.shape[:3], 2 * self.length, held.shape[4])
            held[:, :, :, :before] = self._held[:, :, :, :before]  # type: ignore[index]
            self._held = held
        held.narrow(3, before, both.shape[3]).copy_(both)  # faster than an index for one step
        return held.narrow(3, 0, self.length)

    def select(self, rows: Tensor) -> None:
        """Keeps these rows of the batch in this order, as a beam search asks for."""
        if self._held is not None:
            self._held = self._held[:, rows]
