"""The unit in which a loss is measured, known once the outcomes are seen."""

import torch
from torch import Tensor, nn


class Unit(nn.Module):
    """A positive number per target: a buffer that is saved with the model."""

    value: Tensor

    def __init__(self, value: float = 1.0) -> None:
        super().__init__()
        self.register_buffer("value", torch.tensor(value))

    def observe(self, value: Tensor) -> None:
        """Sets the unit, ``()`` or ``(K,)``; 1 where ``value`` is 0."""
        self.value = torch.where(value > 0, value, torch.ones_like(value)).detach().clone()

    def _load_from_state_dict(self, state, prefix, *rest) -> None:  # type: ignore[no-untyped-def]
        # One entry per target, which only the saved file knows.
        saved = state.get(prefix + "value")
        if saved is not None and saved.shape != self.value.shape:
            self.value = torch.empty_like(saved, dtype=self.value.dtype, device=self.value.device)
        super()._load_from_state_dict(state, prefix, *rest)
