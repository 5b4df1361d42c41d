"""Hue: colours moved around the circle of colours."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ansatz.data.augmentation.augmentation import Photometric, per_example, uniform
from ansatz.data.augmentation.limits import check_between


@dataclass(frozen=True)
class Hue(Photometric):
    r"""Random hue: every colour of an image moved by one angle around the circle of colours.

    .. math:: h' = h + \delta \bmod 1, \qquad \delta \sim \mathrm{Uniform}(-s, s)

    Saturation and value of the HSV colours stay as they are, and so does what is grey.

    Args:
        strength: :math:`s`, as a part of the whole circle, in [0, 0.5].

    Shapes:
        - x: ``(B, 3, *size)`` floats in [0, 1], red, green, blue; returns: the same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import Hue
        >>> Hue(0.1)(torch.rand(2, 3, 4, 4))[0].shape
        torch.Size([2, 3, 4, 4])

    References:
        Smith (1978), Color gamut transform pairs.
    """

    strength: float = 0.05

    colors: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_between("strength of Hue", self.strength, 0, 0.5)

    def adjust(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        """Moves the colours of each example by its own draw."""
        if not self.strength:
            return x
        return hue_turned(x, self.strength * uniform(x, generator=generator))


def hue_turned(x: Tensor, turns: Tensor) -> Tensor:
    """Each image's hues moved by a part of the circle; 1 is all the way round."""
    red, green, blue = x.unbind(1)
    value, top = x.max(1)  # (B, *size)
    chroma = value - x.amin(1)
    safe = torch.where(chroma > 0, chroma, 1)  # grey has no hue: any will do
    sixths = torch.where(
        top == 0,
        (green - blue) / safe,
        torch.where(top == 1, (blue - red) / safe + 2, (red - green) / safe + 4),
    )
    sixths = sixths + 6 * per_example(turns, sixths)
    # Each channel stands at value and falls to value - chroma over one sixth of the circle.
    channels = []
    for start in (5, 3, 1):
        k = (start + sixths).remainder(6)
        channels.append(value - chroma * torch.minimum(k, 4 - k).clamp(0, 1))
    return torch.stack(channels, 1)
