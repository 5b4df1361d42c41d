"""Pooling to a fixed length, whatever the size of the image."""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from ansatz.layers.limits import require_whole

_POOLS: dict[tuple[str, int], Callable[..., Tensor]] = {
    ("max", 1): functional.adaptive_max_pool1d,
    ("max", 2): functional.adaptive_max_pool2d,
    ("max", 3): functional.adaptive_max_pool3d,
    ("mean", 1): functional.adaptive_avg_pool1d,
    ("mean", 2): functional.adaptive_avg_pool2d,
    ("mean", 3): functional.adaptive_avg_pool3d,
}


class SpatialPyramidPool(nn.Module):
    r"""Divides a grid into n bins per axis, for several n, and pools each bin.

    .. math:: y = \bigl(\mathrm{pool}_{b} \, x_c\bigr)_{n \in \text{levels},\; c,\; b = 1..n^A}

    A grid of A axes gives :math:`C \sum_n n^A` numbers whatever its size, so that dense layers may
    follow; ``levels=(1,)`` is global pooling. Bin i of n along an axis of length x holds the cells
    from :math:`\lfloor i x / n \rfloor` to before :math:`\lceil (i + 1) x / n \rceil`; on a grid
    smaller than n, bins share cells.

    Args:
        levels: the numbers of bins :math:`n`.
        reduce: ``"max"`` or ``"mean"`` of each bin.

    Shapes:
        - x: ``(B, C, *size)`` with one to three axes; the size may change from call to call.
        - returns: ``(B, K)``, K = C times the number of bins.

    Example:
        >>> import torch
        >>> from ansatz.layers import SpatialPyramidPool
        >>> pool = SpatialPyramidPool((1, 2, 4))
        >>> pool(torch.randn(2, 3, 13, 9)).shape, pool(torch.randn(2, 3, 4, 5)).shape
        (torch.Size([2, 63]), torch.Size([2, 63]))

    References:
        He et al. (2014), Spatial pyramid pooling, section 2.2, whose windows of ceil(x/n) at steps
        of floor(x/n) miss cells for some sizes. https://arxiv.org/abs/1406.4729
    """

    def __init__(
        self, levels: Sequence[int] = (1, 2, 4), *, reduce: Literal["max", "mean"] = "max"
    ) -> None:
        super().__init__()
        if reduce not in ("max", "mean"):
            raise ValueError(f"reduce of SpatialPyramidPool must be max or mean, got {reduce!r}.")
        if not levels:
            raise ValueError("levels of SpatialPyramidPool must name a number of bins, got none.")
        self.levels = tuple(require_whole("levels of SpatialPyramidPool", n) for n in levels)
        self.reduce = reduce

    def extra_repr(self) -> str:
        return f"levels={self.levels}, reduce={self.reduce!r}"

    def out_features(self, channels: int, axes: int = 2) -> int:
        """The length of its output for so many channels and axes."""
        return channels * sum(n**axes for n in self.levels)

    def forward(self, x: Tensor) -> Tensor:
        axes = x.ndim - 2
        if not 1 <= axes <= 3:
            raise ValueError(
                "SpatialPyramidPool needs x of shape (B, C, *size) with 1 to 3 axes, "
                f"got {tuple(x.shape)}."
            )
        pool = _POOLS[self.reduce, axes]
        return torch.cat([pool(x, (n,) * axes).flatten(1) for n in self.levels], 1)
