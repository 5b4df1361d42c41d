"""The U-Net of volumes."""

import torch

from ansatz.networks.unet import Norm, UNet, Up
from ansatz.spec import InputSpec


class UNet3d(UNet):
    """A label for every voxel: the U-Net with all its operations in three dimensions.

    The volume is halved three times, and channels double before pooling (32 to 64, then 64 to 128,
    ...), which avoids bottlenecks. Few annotated slices are enough: a voxel without a label has
    weight 0 and is in no loss.

    ``padded=False`` is the network of the paper: 132 x 132 x 116 voxels in, 44 x 44 x 28 out.

    Args:
        inputs: a volume, or a number of channels.
        outputs: :math:`P` per voxel.
        depth: how often the grid is halved.
        width: channels of the first convolution.
        padded: whether the output has the size of x.
        norm: ``"batch"`` normalises each convolution before its ReLU; None for none.
        up: ``"transposed"`` convolutions, or linear interpolation (``"upsample"``).
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, C, D, H, W)``.
        - returns: ``(B, P, D, H, W)``; smaller if not padded: see ``output_size``.

    Example:
        >>> import torch
        >>> from ansatz.networks import UNet3d
        >>> UNet3d(1, 2, depth=1, width=2)(torch.randn(1, 1, 4, 5, 6)).shape
        torch.Size([1, 2, 4, 5, 6])

    References:
        Çiçek et al. (2016), 3D U-Net: learning dense volumetric segmentation from sparse
        annotation, figure 2. https://arxiv.org/abs/1606.06650
    """

    name = "unet3d"
    axes = (3,)

    def __init__(
        self,
        inputs: InputSpec | int,
        outputs: int,
        *,
        depth: int = 3,
        width: int = 32,
        padded: bool = True,
        norm: Norm | None = "batch",
        up: Up = "transposed",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(
            inputs,
            outputs,
            depth=depth,
            width=width,
            padded=padded,
            norm=norm,
            up=up,
            doubling="before",
            generator=generator,
        )
