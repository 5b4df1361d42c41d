"""Pooling of a whole feature map to one number."""

from typing import Literal

from torch import Tensor, nn


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
