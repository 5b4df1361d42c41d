"""The cells of signals, images and volumes inside an exported graph."""

import torch
from torch import Tensor, nn

from ansatz.data.grids import GridPreprocessor


class GridCells(nn.Module):
    r"""Channels with mean 0 and spread 1, as the network was fitted to them.

    .. math:: z_{c} = (x_c / u - m_c) / s_c

    with :math:`u` = 255 for bytes and 1 for other numbers, :math:`m, s` the mean and the spread of
    each channel.

    Args:
        preprocessor: of the fit.

    Shapes:
        - x: ``(N, C, *size)``, numbers as they are stored: bytes from 0 to 255.
        - returns: a tuple of the same shape.

    Example:
        >>> import torch
        >>> from ansatz.data.grids import Grids, GridPreprocessor
        >>> from ansatz.onnx.grid_cells import GridCells
        >>> grids = Grids(torch.randint(0, 256, (9, 1, 4, 4), dtype=torch.uint8))
        >>> cells = GridCells(GridPreprocessor.fit(grids))
        >>> (z,) = cells(grids.load().float())
        >>> bool(z.mean().abs() < 1e-5)
        True
    """

    def __init__(self, preprocessor: GridPreprocessor) -> None:
        super().__init__()
        self.unit, self.shape = float(preprocessor.unit), tuple(preprocessor.shape)
        each = (-1, *(1,) * (len(self.shape) - 1))
        self.mean: Tensor
        self.spread: Tensor
        self.register_buffer("mean", torch.tensor(preprocessor.mean).float().reshape(each))
        self.register_buffer("spread", torch.tensor(preprocessor.spread).float().reshape(each))

    def forward(self, x: Tensor) -> tuple[Tensor]:
        values = x.float()
        if self.unit != 1:
            values = values / self.unit
        return ((values - self.mean) / self.spread,)
