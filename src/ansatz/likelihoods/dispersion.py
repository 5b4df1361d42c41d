"""Positive numbers of a likelihood: a scale that is predicted, learned once, or known."""

import math
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

Dispersion = Literal["predicted", "constant"] | float


def softplus_inverse(x: Tensor) -> Tensor:
    """The r with softplus(r) = x, for x > 0."""
    return x + torch.log(-torch.expm1(-x))


class Resized(nn.Module):
    """A module whose tensors take the shape of the saved ones, as one entry per target."""

    resized: ClassVar[tuple[str, ...]] = ()  # names of the tensors

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name in self.resized:
            mine, saved = getattr(self, name, None), state.get(prefix + name)
            if mine is not None and saved is not None and saved.shape != mine.shape:
                fresh = torch.empty_like(saved, dtype=mine.dtype, device=mine.device)
                setattr(self, name, nn.Parameter(fresh) if name in self._parameters else fresh)
        super()._load_from_state_dict(state, prefix, *rest)


class PositiveHead(Resized):
    r"""A positive number per outcome: ``unit * softplus(r) + floor``.

    ``"predicted"``: r is a raw output of the network, as in gamlss. ``"constant"``: r is one
    learned parameter, as in glm. A number: the value is known and nothing is learned.

    Before ``observe`` the unit is 1 and the floor 1e-3, so that a raw number of -50 divides by
    nothing that float32 cannot hold.

    Shapes:
        - raw: ``(..., P)``; its last entry is r when predicted.
        - returns: ``(...)``.
    """

    def __init__(self, dispersion: Dispersion) -> None:
        super().__init__()
        known = isinstance(dispersion, (int, float)) and not isinstance(dispersion, bool)
        if not known and dispersion not in ("predicted", "constant"):
            raise ValueError(
                f"dispersion must be 'predicted', 'constant' or a number, got {dispersion!r}."
            )
        if known and not 0 < float(dispersion) < math.inf:
            raise ValueError(f"a known dispersion must be positive and finite, got {dispersion}.")
        self.kind = "known" if known else str(dispersion)
        self.register_buffer("unit", torch.tensor(1.0))
        self.register_buffer("floor", torch.tensor(1e-3))
        self.register_buffer(
            "known", torch.tensor(float(dispersion) if known else 1.0, dtype=torch.float64)
        )
        start = softplus_inverse(self.unit - self.floor)  # the value 1
        self.constant = nn.Parameter(start) if self.kind == "constant" else None
        self.factor = 1.0  # what recalibration multiplies the served value by

    resized = ("unit", "floor", "known", "constant")
    unit: Tensor
    floor: Tensor
    known: Tensor

    @property
    def outputs(self) -> int:
        """Raw numbers that it takes: 1 when predicted, else 0."""
        return int(self.kind == "predicted")

    def observe(self, unit: Tensor, floor: Tensor) -> None:
        """Sets the unit and the floor, ``()`` or ``(K,)``."""
        self.unit, self.floor = unit.detach().clone(), floor.detach().clone()
        if self.constant is not None:
            self.constant = nn.Parameter(torch.zeros_like(self.unit))
            self.start(self.unit)

    def start(self, value: Tensor) -> Tensor:
        """The r of a positive ``value``, at least a little above the floor; kept if constant."""
        r = softplus_inverse(((value - self.floor) / self.unit).clamp(min=1e-4))
        if self.constant is not None:
            if self.constant.shape != r.shape:  # one entry per target
                self.constant = nn.Parameter(r.detach().clone())
            with torch.no_grad():
                self.constant.copy_(r)
        return r

    def append(self, shift: Tensor, scale: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Shift and scale of all raw numbers: those of the first one, then the head's own."""
        r = self.start(value)
        if not self.outputs:
            return shift.unsqueeze(-1), scale.unsqueeze(-1)
        shifts, scales = [shift, r.expand_as(shift)], [scale, torch.ones_like(scale)]
        return torch.stack(shifts, -1), torch.stack(scales, -1)

    def value(self, dtype: torch.dtype) -> Tensor:
        """The number that does not depend on x, ``()`` or ``(K,)``: constant or known."""
        if self.constant is None:
            return self.known.to(dtype) * self.factor
        value = self.unit.to(dtype) * softplus(self.constant.to(dtype)) + self.floor.to(dtype)
        return value * self.factor

    def forward(self, raw: Tensor) -> Tensor:
        if self.kind != "predicted":
            return self.value(raw.dtype).expand(raw.shape[:-1])
        unit, floor = self.unit.to(raw.dtype), self.floor.to(raw.dtype)
        value = (unit * softplus(raw[..., -1]) + floor).expand(raw.shape[:-1])
        return value * self.factor


class UnitScale(Resized):
    """A positive number per target: a buffer that is saved with the model."""

    resized = ("value",)
    value: Tensor

    def __init__(self, value: float = 1.0) -> None:
        super().__init__()
        self.register_buffer("value", torch.tensor(value))

    def observe(self, value: Tensor) -> None:
        """Sets the unit, ``()`` or ``(K,)``; 1 where ``value`` is 0."""
        self.value = torch.where(value > 0, value, torch.ones_like(value)).detach().clone()
