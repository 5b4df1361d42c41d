"""Standardises grids for a network: bytes as shares of 255, then every channel."""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data.grids.grids import Grids
from ansatz.errors import DataError
from ansatz.spec import InputSpec

SAMPLE = 10_000  # examples that tell the mean and the scale of a channel
_PIXELS = 2**21  # numbers that are looked at together
_LOOKED_AT = 64  # examples that tell whether they are in the unit of the fit
_FAR = (
    50.0  # times the scale of the fit, or its fiftieth part: 0..1 for 0..255, volts for millivolts
)
_ROUNDING = 1e-6  # of float32 in units of the mean: a smaller scale is rounding


class GridPreprocessor:
    r"""Grids as numbers of mean 0 and standard deviation 1.

    .. math:: z_{nc} = \frac{x_{nc} / u - m_c}{s_c}

    with u = 255 for bytes and 1 for other numbers; m and s of each channel c are the mean and
    standard deviation of all pixels of the training examples, or of 10,000 of them, evenly spaced.

    Args:
        shape: ``(C, *size)`` of an example.
        mean: :math:`m`, one number per channel.
        scale: :math:`s`, likewise.
        unit: :math:`u`.
        spacing: the width of a voxel along each axis; None where it is not known.

    Example:
        >>> import torch
        >>> from ansatz.data.grids import GridPreprocessor, Grids
        >>> grids = Grids.of(torch.tensor([[[0, 255], [255, 0]]], dtype=torch.uint8))
        >>> preprocessor = GridPreprocessor.fit(grids)
        >>> preprocessor.transform(grids)[0].flatten()
        tensor([-1.,  1.,  1., -1.])
    """

    text_columns: tuple[str, ...] = ()  # none of a grid's pixels are words

    def __init__(
        self,
        shape: Sequence[int],
        mean: Sequence[float],
        scale: Sequence[float],
        unit: float,
        spacing: Sequence[float] | None = None,
    ) -> None:
        self.shape, self.unit = tuple(shape), unit
        self.spacing = None if spacing is None else tuple(map(float, spacing))
        self.mean, self.scale = list(mean), list(scale)
        self.notes: list[str] = []

    @classmethod
    def fit(cls, grids: Grids, weight: NDArray[np.float64] | None = None) -> "GridPreprocessor":
        """Learns mean and standard deviation of each channel."""
        rows = np.linspace(0, len(grids) - 1, min(len(grids), SAMPLE)).astype(np.intp)
        share = np.ones(len(rows)) if weight is None else weight[rows]
        unit = 255.0 if grids.dtype == torch.uint8 else 1.0
        size = max(1, _PIXELS // math.prod(grids.shape))
        found = [_moments(grids, rows[k : k + size], unit) for k in range(0, len(rows), size)]
        means, variances = (np.concatenate(parts) for parts in zip(*found, strict=True))  # (n, C)
        mean = np.average(means, axis=0, weights=share)
        # Within and between examples: differences of large squares would leave only rounding.
        scale = np.sqrt(np.average(variances + (means - mean) ** 2, axis=0, weights=share))
        is_constant = scale <= _ROUNDING * np.abs(mean)
        scales = np.where(is_constant, 1.0, scale).tolist()
        return cls(grids.shape, mean.tolist(), scales, unit, grids.spacing)

    @property
    def spec(self) -> InputSpec:
        """The shape of an example, for the network's factory."""
        return InputSpec.grid(*self.shape)

    def scaled(self, x: Tensor) -> Tensor:
        """``(B, C, *size)`` in float32, bytes as shares of 255: what an augmentation takes."""
        return x.float().div_(self.unit) if self.unit != 1 else x.float()

    def standardized(self, x: Tensor) -> Tensor:
        """Standardises every channel of what :meth:`scaled` gave."""
        per_channel = (-1, *(1,) * (x.ndim - 2))
        mean, scale = (torch.tensor(v, dtype=x.dtype) for v in (self.mean, self.scale))
        return (x - mean.reshape(per_channel)) / scale.reshape(per_channel)

    def transform(
        self, grids: Grids, *, clip: bool = False, notes: list[str] | None = None
    ) -> tuple[Tensor]:
        """The network's input ``(N, C, *size)``.

        Args:
            grids: examples of the shape of the training examples.
            clip: as for tables; a grid's pixels are never clipped.
            notes: as for tables; nothing is ever unknown about a grid.
        """
        self.check(grids)
        return (self.standardized(self.scaled(grids.load())),)

    def check(self, grids: Grids, *, any_size: bool = False) -> None:
        """Rejects examples of another shape or kind of number than the training examples."""
        same = len(grids.shape) == len(self.shape) and grids.shape[0] == self.shape[0]
        if not same or (not any_size and grids.shape != self.shape):
            advice = (
                "A single example needs an axis in front: X[None]."
                if self._is_one(grids, any_size)
                else "Give examples of that size: size= of read_grids brings images to one."
            )
            raise DataError(
                f"the model was fitted to examples of {_text(self.shape)}, got "
                f"{_text(grids.shape)}. {advice}"
            )
        bytes_now = grids.dtype == torch.uint8
        if bytes_now != (self.unit == 255):
            then, now = ("bytes from 0 to 255", "other numbers")[:: 1 if not bytes_now else -1]
            advice = " X.astype('uint8'), if they are whole numbers; image files with 8 bits."
            advice = "" if bytes_now else advice
            raise DataError(
                f"the model was fitted to {then}, got {now}: give the same kind.{advice}"
            )
        if not bytes_now and grids.is_in_memory and len(grids):
            self._warn_of_another_unit(grids)

    def _is_one(self, grids: Grids, any_size: bool) -> bool:
        """Tests whether the first axis of an example was taken for the examples."""
        channels, *size = self.shape
        axes = (len(grids), *grids.shape[1:])
        is_known = axes in {self.shape, (*size, channels), tuple(size)}
        return grids.shape[0] == 1 and (is_known or (any_size and len(axes) == len(size)))

    def _warn_of_another_unit(self, grids: Grids) -> None:
        few = grids.load(slice(0, _LOOKED_AT))
        low, high = (float(each) for each in few.aminmax())
        z = self.standardized(few)
        scale, mean = float(z.std(correction=0)), float(z.mean())
        if low < high and (max(scale, abs(mean)) > _FAR or scale < 1 / _FAR):
            warnings.warn(
                f"X has values from {low:.3g} to {high:.3g}, where those of the fit had a mean of "
                f"{self.mean[0]:.3g} and a standard deviation of {self.scale[0]:.3g}: "
                "were they scaled alike?",
                stacklevel=2,
            )

    def state(self) -> dict[str, Any]:
        """As JSON can say it."""
        found = {
            "structure": "grid",
            "shape": list(self.shape),
            "mean": self.mean,
            "scale": self.scale,
            "unit": self.unit,
        }
        return found if self.spacing is None else found | {"spacing": list(self.spacing)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "GridPreprocessor":
        """The preprocessor of a :meth:`state`."""
        try:
            scale = state["spread" if "spread" in state else "scale"]  # as format 2 called it
            spacing = state.get("spacing")
            made = cls(state["shape"], state["mean"], scale, float(state["unit"]), spacing)
            widths = made.spacing or ()
            numbers = [*made.shape, *map(float, made.mean), *map(float, made.scale), *widths]
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"preprocessing of grids: {error}") from None
        sizes = {len(made.mean), len(made.scale), made.shape[0] if made.shape else -1}
        if len(sizes) != 1 or not np.isfinite(numbers).all() or min(made.scale) <= 0:
            raise DataError("preprocessing of grids: one mean and one scale > 0 per channel.")
        if widths and (len(widths) != len(made.shape) - 1 or min(widths) <= 0):
            raise DataError("preprocessing of grids: one spacing > 0 per axis.")
        return made


def _moments(
    grids: Grids, rows: NDArray[np.intp], unit: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``(n, C)`` means and variances of some examples' channels."""
    x = grids.load(rows).flatten(2).double() / unit  # (n, C, pixels)
    return x.mean(-1).numpy(), x.var(-1, correction=0).numpy()


def _text(shape: tuple[int, ...]) -> str:
    channels, *size = shape
    many = "channel" if channels == 1 else "channels"
    return f"{channels} {many} of {' x '.join(map(str, size))}"
