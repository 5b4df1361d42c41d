"""A box of the grid taken away."""

from dataclasses import KW_ONLY, dataclass
from typing import Literal

import torch
from torch import Tensor

from ansatz.data.augmentation.augmentation import Photometric, chances, per_example
from ansatz.data.augmentation.limits import check_between, check_whole


@dataclass(frozen=True)
class RandomErasing(Photometric):
    r"""Cutout: a box at a random place of each grid, overwritten.

    .. math:: y_i = v \text{ where } c - k/2 \le i < c + k/2 \text{ on every axis}, \quad
        c \sim \mathrm{Uniform}\{0, \dots, N - 1\}

    The network may not lean on one part of the picture. The box may reach over the edge, so that
    less is taken away there. Labels stay: what is hidden is still there.

    Args:
        pixels: side of the box, :math:`k`.
        value: :math:`v`: a number, or ``"mean"`` of each channel of the example.
        p: probability that an example loses a box at all.

    Shapes:
        - x: ``(B, C, *size)`` floats; returns: the same.

    Example:
        >>> import torch
        >>> from ansatz.data.augmentation import RandomErasing
        >>> y, _ = RandomErasing(2, value=0.0)(torch.ones(3, 1, 8, 8))
        >>> bool((y.sum((1, 2, 3)) >= 60).all() and (y.sum((1, 2, 3)) < 64).all())
        True

    References:
        DeVries and Taylor (2017), Improved regularization of convolutional neural networks with
        cutout. https://arxiv.org/abs/1708.04552
    """

    pixels: int = 8
    _: KW_ONLY
    value: float | Literal["mean"] = "mean"
    p: float = 1.0

    def __post_init__(self) -> None:
        check_whole("pixels of RandomErasing", self.pixels, 0)
        if self.value != "mean":
            check_between("value of RandomErasing", self.value, -1e30, 1e30)
        check_between("p of RandomErasing", self.p, 0, 1)

    def adjust(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        """Overwrites each example's own box."""
        axes = x.ndim - 2
        drawn = torch.rand(len(x), axes, generator=generator, dtype=torch.float64).to(x.device)
        inside = per_example(chances(x, self.p, generator=generator), x[:, 0])  # (B, 1, ...)
        for axis, count in enumerate(x.shape[2:]):
            start = (drawn[:, axis] * count).long() - self.pixels // 2
            place = torch.arange(count, device=x.device) - start.unsqueeze(1)  # (B, N)
            here = (place >= 0) & (place < self.pixels)
            inside = inside & here.view(len(x), *(1,) * axis, count, *(1,) * (axes - 1 - axis))
        if self.value == "mean":
            return torch.where(inside.unsqueeze(1), x.flatten(2).mean(2)[(..., *(None,) * axes)], x)
        return x.masked_fill(inside.unsqueeze(1), self.value)
