"""The inputs of networks on grids: size, channels, layout in memory.

A pixel is also a sample of a signal or a voxel of a volume.
"""

from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.limits import require_whole
from ansatz.spec import Inputs, InputSpec

_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}

T = TypeVar("T", Tensor, nn.Module)


def channels_last(what: T) -> T:
    """A batch of images or volumes, or a network, with the channels of a pixel side by side.

    The same numbers in another order of memory: shapes and results stay. Batches of signals and
    of rows are returned as they are, and so is a network without convolutions.
    """
    if isinstance(what, Tensor):
        layout = _FORMATS.get(what.ndim)
        return what if layout is None else what.contiguous(memory_format=layout)
    weights = {p.ndim for p in what.parameters()}
    for dimensions, layout in _FORMATS.items():
        if dimensions in weights:
            what = what.to(memory_format=layout)  # type: ignore[call-overload]
    return what


AXES = {1: "L", 2: "H, W", 3: "D, H, W"}
_NOUNS = {1: "signals", 2: "images", 3: "volumes"}


class GridInputs(NamedTuple):
    """The inputs ``(B, C, *size)`` of a network on grids, as far as they are known.

    Args:
        channels: numbers per pixel, :math:`C`.
        size: pixels along each axis; empty where it is not known.
        dimensions: number of axes: 1 for signals, 2 for images, 3 for volumes.
    """

    channels: int
    size: tuple[int, ...]
    dimensions: int

    @property
    def pixels(self) -> int:
        """Pixels of one example; 1 where the size is not known."""
        count = 1
        for length in self.size:
            count *= length
        return count


def read_grid(
    owner: str,
    inputs: Inputs,
    *,
    dimensions: tuple[int, ...] = (1, 2, 3),
    least: int = 1,
    needs_size: bool = False,
) -> GridInputs:
    """Reads the grid that ``inputs`` describe; refuses one that no network can be built for.

    A number means images with that number of channels and of unknown size.

    Args:
        owner: the network's name, for error messages.
        inputs: what x looks like, or its number of channels.
        dimensions: the numbers of axes that the network can have.
        least: pixels that each axis needs.
        needs_size: True where weights depend on the size.

    Example:
        >>> from ansatz.networks import read_grid
        >>> from ansatz.spec import Inputs, InputSpec
        >>> read_grid("lenet5", InputSpec.grid(1, 28, 28))
        GridInputs(channels=1, size=(28, 28), dimensions=2)
        >>> read_grid("vgg16", InputSpec.grid(1, 28, 28), least=32)
        Traceback (most recent call last):
        ...
        ansatz.errors.UsageError: vgg16 needs at least 32 pixels along each axis, got 28 x 28; ...
    """
    spec = InputSpec.of(inputs)
    # A number of channels alone arrives as a vector of that length, without codes and size.
    plain = spec.structure == "vector" and not spec.cardinalities and not spec.size
    if spec.structure != "grid" and not plain:
        raise UsageError(
            f"{owner} takes grids (signals, images or volumes), got inputs of structure "
            f"'{spec.structure}'; say InputSpec.grid(channels, *size)."
        )
    channels = require_whole(f"channels of {owner}", spec.features)
    size = tuple(require_whole(f"size[{i}] of {owner}", s) for i, s in enumerate(spec.size))
    axes = len(size) or (2 if 2 in dimensions else dimensions[0])
    if axes not in dimensions:
        known = " or ".join(_NOUNS[d] for d in dimensions)
        word = f"{axes} axes" if axes > 1 else "1 axis"
        raise UsageError(f"{owner} takes {known}, got a grid of {word}: {_times(size)}.")
    if needs_size and not size:
        hint = " For rows of a table take mlp." if spec.structure == "vector" else ""
        raise UsageError(
            f"the weights of {owner} depend on the size of x, which is not known; "
            f"say it: InputSpec.grid({channels}, ...).{hint}"
        )
    require_pixels(owner, size, least)
    return GridInputs(channels, size, axes)


def require_pixels(owner: str, size: tuple[int, ...], least: int) -> None:
    """Refuses a grid of which nothing would be left inside the network."""
    if any(length < least for length in size):
        raise UsageError(
            f"{owner} needs at least {least} pixels along each axis, got {_times(size)}; "
            "enlarge x, or take small_resnet, which fits any size."
        )


def require_grid(
    owner: str, grid: GridInputs, x: Tensor, *, least: int = 1, network: nn.Module | None = None
) -> None:
    """Refuses x that is not of the grid that a network was built for, or not of its precision."""
    if x.ndim != grid.dimensions + 2 or x.shape[1] != grid.channels:
        hint = " For rows of a table take mlp." if x.ndim == 2 else ""
        if x.ndim == grid.dimensions + 1 and x.shape[0] == grid.channels:
            hint = " A single example needs a batch axis: x[None]."
        raise UsageError(
            f"{owner} needs x of shape (B, {grid.channels}, {AXES[grid.dimensions]}), "
            f"got {tuple(x.shape)}.{hint}"
        )
    if least > 1:
        require_pixels(owner, tuple(x.shape[2:]), least)
    _require_precision(owner, x, network)


def require_size(
    owner: str, grid: GridInputs, x: Tensor, *, network: nn.Module | None = None
) -> None:
    """Refuses x whose size is not the one that the weights were made for."""
    if tuple(x.shape[1:]) != (grid.channels, *grid.size):
        shape = ", ".join(str(length) for length in (grid.channels, *grid.size))
        is_one = tuple(x.shape) == (grid.channels, *grid.size)
        hint = " A single example needs a batch axis: x[None]." if is_one else ""
        raise UsageError(f"{owner} needs x of shape (B, {shape}), got {tuple(x.shape)}.{hint}")
    _require_precision(owner, x, network)


def _require_precision(owner: str, x: Tensor, network: nn.Module | None) -> None:
    weight = None if network is None else next(network.parameters(), None)
    if weight is None or weight.dtype == x.dtype or torch.is_autocast_enabled(x.device.type):
        return
    own, given = (str(tensor.dtype).removeprefix("torch.") for tensor in (weight, x))
    raise UsageError(f"{owner} computes in {own}, got x of {given}: use x.to(torch.{own}).")


def _times(size: tuple[int, ...]) -> str:
    return " x ".join(str(length) for length in size)
