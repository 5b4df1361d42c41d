"""Unpooling at a fixed place: each number becomes a block of zeros around itself."""

from collections.abc import Sequence
from numbers import Integral

from torch import Tensor, nn
from torch.nn.functional import pad

from ansatz.layers.output_size import per_axis


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
