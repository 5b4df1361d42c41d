"""Pooling and its reverse: global, pyramid, stochastic, bed of nails."""

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import pad

from ansatz.layers.limits import require_whole
from ansatz.layers.output_size import PerAxis, output_size, per_axis


class GlobalPool(nn.Module):
    r"""One number per channel: the mean or the largest of its map.

    .. math:: y_c = \frac{1}{|S|} \sum_{s \in S} x_{c s} \quad\text{or}\quad \max_{s \in S} x_{cs}

    It makes the shift-*equivariant* maps below it shift-*invariant* (up to the border), and any
    size of image a vector of one length.

    Args:
        reduce: ``"mean"`` or ``"max"``.

    Shapes:
        - x: ``(B, C, *size)`` with any number of axes; returns ``(B, C)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import GlobalPool
        >>> GlobalPool()(torch.tensor([[[[1.0, 2.0], [3.0, 6.0]]]]))
        tensor([[3.]])

    References:
        Lin, Chen & Yan (2014), Network in network, section 3.2. https://arxiv.org/abs/1312.4400
    """

    def __init__(self, reduce: Literal["mean", "max"] = "mean") -> None:
        super().__init__()
        if reduce not in ("mean", "max"):
            raise ValueError(f"reduce of GlobalPool must be mean or max, got {reduce!r}.")
        self.reduce = reduce

    def extra_repr(self) -> str:
        return f"reduce={self.reduce!r}"

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim < 3:
            raise ValueError(f"GlobalPool needs x of shape (B, C, *size), got {tuple(x.shape)}.")
        axes = tuple(range(2, x.ndim))
        return x.mean(axes) if self.reduce == "mean" else x.amax(axes)


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
        """The length of its output for a number of channels and axes."""
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


class _StochasticPool(nn.Module):
    axes: int

    def __init__(
        self,
        kernel_size: PerAxis,
        stride: PerAxis | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = per_axis("kernel_size", kernel_size, self.axes)
        self.stride = per_axis("stride", kernel_size if stride is None else stride, self.axes)
        self.generator = generator

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}"

    def forward(self, x: Tensor) -> Tensor:
        name = type(self).__name__
        if x.ndim != 2 + self.axes:
            raise ValueError(
                f"{name} needs x of shape (B, C, and {self.axes} more), got {tuple(x.shape)}."
            )
        output_size(tuple(x.shape[2:]), self.kernel_size, self.stride)  # refuses what is too small
        if (x < 0).any():
            raise ValueError(
                f"{name} needs activations >= 0, got {x.min().item():.4g}. Put a ReLU before it."
            )
        a = self._windows(x)  # (B, C, *places, window)
        return self._draw(a) if self.training else _weighted_mean(a)

    def _windows(self, x: Tensor) -> Tensor:
        for axis, (k, s) in enumerate(zip(self.kernel_size, self.stride, strict=True)):
            x = x.unfold(2 + axis, k, s)
        return x.flatten(-self.axes)

    def _draw(self, a: Tensor) -> Tensor:
        """By the inverse of the cumulated probabilities; torch.multinomial refuses all-zero rows.

        The gradient goes to the activation that was drawn, as that of max pooling to the largest.
        """
        cumulated = a.detach().cumsum(-1)
        total = cumulated[..., -1:]
        u = torch.rand(total.shape, dtype=a.dtype, device=a.device, generator=self.generator)
        # Rounding may lift u * total up to total, which no activation reaches.
        level = torch.minimum(u * total, torch.nextafter(total, torch.zeros_like(total)))
        drawn = (cumulated <= level).sum(-1, keepdim=True)  # first with a larger cumulated value
        return a.gather(-1, drawn.clamp(max=a.shape[-1] - 1)).squeeze(-1)  # all zero: any is 0


def _weighted_mean(a: Tensor) -> Tensor:
    total = a.sum(-1)
    return (a * a).sum(-1) / torch.where(total > 0, total, 1)  # 0 / 1 where all are zero


class StochasticPool1d(_StochasticPool):
    """Stochastic pooling along a signal: see ``StochasticPool2d``.

    Args:
        kernel_size: the window.
        stride: the step from window to window; by default the window.
        generator: where the draws come from; torch's global one when not given.

    Shapes:
        - x: ``(B, C, L)``, not negative; returns ``(B, C, L')``, L' by ``output_size``.

    Example:
        >>> import torch
        >>> from ansatz.layers import StochasticPool1d
        >>> StochasticPool1d(2).eval()(torch.tensor([[[1.0, 3.0, 0.0, 0.0]]]))
        tensor([[[2.5000, 0.0000]]])

    References:
        Zeiler & Fergus (2013), Stochastic pooling, section 3. https://arxiv.org/abs/1301.3557
    """

    axes = 1


class StochasticPool2d(_StochasticPool):
    r"""Pooling that draws one activation of each window, the larger the likelier.

    .. math:: y = a_i \text{ with probability } p_i = a_i / \sum_j a_j; \qquad
        \text{evaluating: } y = \sum_i p_i a_i

    Training sees a random choice, which regularises as dropout does; evaluating takes its
    expectation. A window of zeros gives 0.

    Args:
        kernel_size: the window.
        stride: the step from window to window; by default the window.
        generator: where the draws come from; torch's global one when not given.

    Shapes:
        - x: ``(B, C, H, W)``, not negative; returns ``(B, C, H', W')``, sizes by ``output_size``.

    Example:
        >>> import torch
        >>> from ansatz.layers import StochasticPool2d
        >>> StochasticPool2d(2).eval()(torch.tensor([[[[1.6, 0.0], [0.0, 2.4]]]]))
        tensor([[[[2.0800]]]])

    References:
        Zeiler & Fergus (2013), Stochastic pooling, eqs. 4-6. https://arxiv.org/abs/1301.3557
    """

    axes = 2


class StochasticPool3d(_StochasticPool):
    """Stochastic pooling in a volume: see ``StochasticPool2d``.

    Args:
        kernel_size: the window.
        stride: the step from window to window; by default the window.
        generator: where the draws come from; torch's global one when not given.

    Shapes:
        - x: ``(B, C, D, H, W)``, not negative; returns ``(B, C, D', H', W')``.

    Example:
        >>> import torch
        >>> from ansatz.layers import StochasticPool3d
        >>> StochasticPool3d(2)(torch.rand(1, 3, 4, 4, 4)).shape
        torch.Size([1, 3, 2, 2, 2])

    References:
        Zeiler & Fergus (2013), Stochastic pooling, section 3. https://arxiv.org/abs/1301.3557
    """

    axes = 3


class BedOfNails(nn.Module):
    r"""Enlarges a grid by putting each number at the top left of a block of zeros.

    .. math:: y_{s i} = x_i, \qquad y_j = 0 \text{ for all other } j

    with one index per axis. Nothing is learned and nothing about the pooling is remembered:
    ``torch.nn.MaxUnpool2d`` puts each number back where the maximum was, ``torch.nn.Upsample``
    interpolates, ``torch.nn.ConvTranspose2d`` learns what goes between. Pooling by the maximum of
    numbers >= 0 undoes it.

    Args:
        factor: :math:`s`, for all axes or one per axis.

    Shapes:
        - x: ``(B, C, *size)`` with one to three axes; returns ``(B, C, *(factor * size))``.

    Example:
        >>> import torch
        >>> from ansatz.layers import BedOfNails
        >>> BedOfNails(2)(torch.tensor([[[[1.0, 2.0]]]]))
        tensor([[[[1., 0., 2., 0.],
                  [0., 0., 0., 0.]]]])

    References:
        Noh, Hong & Han (2015), Learning deconvolution network, section 3.2, where the place is
        remembered. https://arxiv.org/abs/1505.04366
    """

    def __init__(self, factor: int | Sequence[int] = 2) -> None:
        super().__init__()
        axes = 1 if isinstance(factor, (int, Integral)) else len(factor)
        factors = per_axis("factor of BedOfNails", factor, axes)
        self.factor = factors[0] if isinstance(factor, (int, Integral)) else factors

    def extra_repr(self) -> str:
        return f"factor={self.factor}"

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim < 3:
            raise ValueError(f"BedOfNails needs x of shape (B, C, *size), got {tuple(x.shape)}.")
        factors = per_axis("factor of BedOfNails", self.factor, x.ndim - 2)
        for axis, s in enumerate(factors, start=2):
            x = x.movedim(axis, -1).unsqueeze(-1)
            x = pad(x, (0, s - 1)).flatten(-2).movedim(-1, axis)  # s - 1 zeros after each
        return x
