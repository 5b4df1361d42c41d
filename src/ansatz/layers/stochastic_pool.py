"""Pooling by lot: an activation is chosen with probability proportional to its size."""

import torch
from torch import Tensor, nn

from ansatz.layers.output_size import PerAxis, output_size, per_axis


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
