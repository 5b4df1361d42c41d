"""Convolution without shared weights: each place has a kernel of its own."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.output_size import PerAxis, output_size, per_axis


class LocallyConnected(nn.Module):
    r"""Applies a kernel of its own at every place: a convolution with unshared weights.

    .. math:: y_{o, s} = b_{o, s} + \sum_{c, i} w_{o, c, s, i}\, x_{c, \text{stride} \cdot s + i}

    With S places it has :math:`S \cdot C' (C \prod k + 1)` weights, S times those of a convolution:
    for 96 x 96 pixels, kernels of 3 x 3 and one map each way 8,836 places and 88,360 weights.

    Args:
        in_channels: :math:`C`.
        out_channels: :math:`C'`.
        kernel_size: :math:`k`, per axis or one for all.
        size: of x along each axis: its weights belong to places.
        stride: per axis or one for all.
        bias: whether there is one, per map and place.
        generator: where the weights are drawn from, as ``torch.nn.Conv2d`` does.

    Shapes:
        - x: ``(B, C, *size)``; returns ``(B, C', *output_size)``, as a valid convolution.

    Example:
        >>> import torch
        >>> from ansatz.layers import LocallyConnected
        >>> layer = LocallyConnected(3, 8, 5, size=(12, 12))
        >>> layer(torch.zeros(2, 3, 12, 12)).shape
        torch.Size([2, 8, 8, 8])

    References:
        LeCun (1989), Generalization and network design strategies.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: PerAxis,
        *,
        size: Sequence[int],
        stride: PerAxis = 1,
        bias: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.size, axes = tuple(size), len(size)
        self.kernel_size = per_axis("kernel_size", kernel_size, axes)
        self.stride = per_axis("stride", stride, axes)
        found = output_size(self.size, self.kernel_size, stride=self.stride)
        self.output_size = (found,) if isinstance(found, int) else tuple(found)
        places, fan_in = math.prod(self.output_size), in_channels * math.prod(self.kernel_size)
        reach = fan_in**-0.5
        self.weight = nn.Parameter(torch.empty(places, fan_in, out_channels))
        self.bias = nn.Parameter(torch.empty(places, out_channels)) if bias else None
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -reach, reach, generator)

    def forward(self, x: Tensor) -> Tensor:
        if tuple(x.shape[2:]) != self.size:
            raise UsageError(
                f"LocallyConnected was built for {self.size} along the axes, got "
                f"{tuple(x.shape[2:])}."
            )
        patches = x
        for axis, (k, step) in enumerate(zip(self.kernel_size, self.stride, strict=True)):
            patches = patches.unfold(2 + axis, k, step)  # (B, C, *places, *kernel)
        axes = len(self.size)
        patches = patches.movedim(1, 1 + axes).reshape(len(x), len(self.weight), -1)
        y = torch.bmm(patches.transpose(0, 1), self.weight)  # (S, B, C')
        if self.bias is not None:
            y = y + self.bias.unsqueeze(1)
        return y.permute(1, 2, 0).reshape(len(x), -1, *self.output_size)

    def extra_repr(self) -> str:
        fan_in, maps = self.weight.shape[1:]
        return f"{fan_in // math.prod(self.kernel_size)}, {maps}, {self.kernel_size}, {self.size}"
