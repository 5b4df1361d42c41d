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
        self.keys: Tensor | None = None  # (B, h, S, d)
        self.values: Tensor | None = None

    @property
    def length(self) -> int:
        """Number of steps held."""
        return 0 if self.keys is None else self.keys.shape[-2]

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Adds new steps and returns those of all steps, ``(B, h, S, d)`` each."""
        if self.keys is not None and self.values is not None:
            keys = torch.cat([self.keys, keys], -2)
            values = torch.cat([self.values, values], -2)
        self.keys, self.values = keys, values
        return keys, values

    def select(self, rows: Tensor) -> None:
        """Keeps these rows of the batch in this order, as a beam search asks for."""
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys[rows], self.values[rows]
