"""Options of augmentations that are refused where they are given."""

import math
from typing import Literal, get_args

from torch import Tensor

from ansatz.errors import UsageError

Padding = Literal["reflect", "border", "zeros"]
Interpolation = Literal["linear", "nearest"]
_LOOKED_AT = 8  # examples of a batch that tell the range of its values
_CUT = 0.1  # noise may take x a little beyond; bytes as floats are far beyond


def check_between(name: str, value: object, low: float, high: float) -> None:
    """Refuses what is not a number in [low, high]."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not (low <= float(value) <= high and math.isfinite(value)):  # type: ignore[arg-type]
        raise UsageError(f"{name} must be a number in [{low:g}, {high:g}], got {value!r:.40}.")


def check_whole(name: str, value: object, low: int) -> None:
    """Refuses what is not a whole number from ``low`` on."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise UsageError(f"{name} must be a whole number from {low} on, got {value!r:.40}.")


def check_shares(x: Tensor, name: str) -> None:
    """Refuses images that cutting at 0 and 1 would ruin: bytes as floats, standardised ones."""
    few = x[:_LOOKED_AT]
    if float((few - few.clamp(0, 1)).abs().mean()) > _CUT:
        low, high = (float(each) for each in few.aminmax())
        raise UsageError(
            f"{name} cuts values at 0 and 1, and x has {low:.3g} to {high:.3g}. "
            "Scale x to [0, 1] first, or say clip=False."
        )


def check_padding(name: str, padding: object, interpolation: object = "linear") -> None:
    """Refuses an unknown rule for what lies outside the frame or between the pixels."""
    for option, value, known in (
        ("padding", padding, get_args(Padding)),
        ("interpolation", interpolation, get_args(Interpolation)),
    ):
        if value not in known:
            text = f"{option} of {name} must be one of {', '.join(known)}"
            raise UsageError(f"{text}, got {value!r:.40}.")
