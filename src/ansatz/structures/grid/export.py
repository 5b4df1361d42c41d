"""The pixels of signals, images and volumes inside an exported graph."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz.data.grids import GridPreprocessor, Grids
from ansatz.fitting.contracts.exporter import Exporter, Input
from ansatz.structures.grid.encoder import GridEncoder

_EXAMPLE = 11  # examples: no other axis is likely to have this length
_MADE_UP = 4  # examples


class GridExporter(Exporter):
    """All pixels in as one input, the inputs of a network out."""

    preprocessing = "inside the graph: every channel with mean 0 and standard deviation 1"

    def __init__(self, encoder: GridEncoder, names: Sequence[str] | None = None) -> None:
        self.encoder = encoder
        width = ", ".join(map(str, encoder.preprocessor.shape))
        takes = f"numbers (N, {width}), channels first; bytes of images as numbers from 0 to 255"
        self.inputs = [Input("X", "X", "grid", takes=takes)]

    def module(self, encoder: GridEncoder) -> "GridPixels":  # type: ignore[override]
        """The standardisation of every channel."""
        return GridPixels(encoder.preprocessor)

    def example(self, kind: torch.dtype) -> tuple[Tensor, ...]:
        """Examples of zeros."""
        return (torch.zeros(_EXAMPLE, *self.encoder.preprocessor.shape, dtype=kind),)

    def feed(self, given: Any, kind: type[np.floating[Any]]) -> list[NDArray[Any]]:
        """An array ``(N, C, *size)``."""
        return [np.asarray(given).astype(kind)]

    def made_up(self, seed: int, kind: type[np.floating[Any]]) -> tuple[Grids, list[NDArray[Any]]]:
        """Noise with the mean and the standard deviation of the training examples."""
        preprocessor, generator = self.encoder.preprocessor, np.random.default_rng(seed)
        each = (-1, *(1,) * (len(preprocessor.shape) - 1))
        mean, scale = (np.reshape(v, each) for v in (preprocessor.mean, preprocessor.scale))
        noise = generator.normal(size=(_MADE_UP, *preprocessor.shape))
        pixels = ((mean + scale * noise) * preprocessor.unit).astype(np.float32)
        if preprocessor.unit != 1:
            pixels = pixels.round().clip(0, 255).astype(np.uint8)
        return Grids(torch.from_numpy(pixels)), self.feed(pixels, kind)


class GridPixels(nn.Module):
    r"""Channels with mean 0 and standard deviation 1, as the network was fitted to them.

    .. math:: z_{c} = (x_c / u - m_c) / s_c

    with :math:`u` = 255 for bytes and 1 for other numbers, :math:`m, s` the mean and the standard
    deviation of each channel.

    Shapes:
        - x: ``(N, C, *size)``, numbers as they are stored: bytes from 0 to 255.
        - returns: a tuple of the same shape.
    """

    def __init__(self, preprocessor: GridPreprocessor) -> None:
        super().__init__()
        self.unit, self.shape = float(preprocessor.unit), tuple(preprocessor.shape)
        each = (-1, *(1,) * (len(self.shape) - 1))
        self.mean: Tensor
        self.scale: Tensor
        self.register_buffer("mean", torch.tensor(preprocessor.mean).float().reshape(each))
        self.register_buffer("scale", torch.tensor(preprocessor.scale).float().reshape(each))

    def forward(self, x: Tensor) -> tuple[Tensor]:
        values = x.float()
        if self.unit != 1:
            values = values / self.unit
        return ((values - self.mean) / self.scale,)
