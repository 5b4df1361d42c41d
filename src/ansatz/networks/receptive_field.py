"""Receptive fields: the part of the input that a unit depends on."""

import math
from dataclasses import dataclass, field

from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.networks.fields.receptive_fields import LEAD, Fields
from ansatz.networks.trace import trace
from ansatz.spec import Inputs


@dataclass(frozen=True)
class ReceptiveField:
    """The receptive fields of the units of a layer, along each axis of the grid.

    Args:
        size: pixels from the first to the last that a unit can depend on, if the grid went on
            beyond its border; where units differ (after enlarging), of the one that sees most.
        stride: pixels by which the field moves from a unit to the next; 0 where all see the same.
        start: the first pixel of the first unit; negative where that is padding.
        centre: the middle of the first unit's field.
        units: per axis, the first and last pixel that each unit sees of this very grid.

    Example:
        >>> import torch
        >>> from ansatz.networks import receptive_field
        >>> layer = torch.nn.Conv1d(1, 1, 3, stride=2, padding=1)
        >>> field = receptive_field(layer, torch.zeros(1, 1, 8))
        >>> field.size, field.stride, field.start, field.units[0]
        ((3,), (2,), (-1,), ((0, 1), (1, 3), (3, 5), (5, 7)))
    """

    size: tuple[int, ...]
    stride: tuple[int | float, ...]
    start: tuple[int, ...]
    centre: tuple[float, ...]
    units: tuple[tuple[tuple[int, int], ...], ...] = field(repr=False)

    def of(self, *unit: int) -> tuple[slice, ...]:
        """The pixels that a unit sees, by one index per axis: ``image[:, *field.of(i, j)]``.

        Where all units see the same along an axis, any index does.
        """
        if len(unit) != len(self.units):
            raise UsageError(f"a unit has {len(self.units)} indices, one per axis, got {unit}.")
        pairs = zip(unit, self.units, strict=True)
        found = [line[0] if len(line) == 1 else line[i] for i, line in pairs]
        return tuple(slice(first, last + 1) for first, last in found)


def receptive_field(
    network: nn.Module,
    inputs: Inputs | Tensor | tuple[Tensor, ...],
    *,
    layer: str | None = None,
) -> ReceptiveField:
    r"""Computes the pixels of a signal, image or volume that a network's output can depend on.

    For a chain of windows :math:`k_l` with strides :math:`s_l` and dilations :math:`d_l`

    .. math:: r = 1 + \sum_l d_l (k_l - 1) \prod_{m < l} s_m, \qquad
        \text{stride } j = \prod_l s_l

    and where paths meet (residual, dense, inception, U-Net) the union. It is followed through the
    operations that torch carries out, not through modules, so that any network has one; what is
    not known to keep places apart (a sort, say) is taken to see everything.

    Args:
        network: any module on ``(B, C, *size)``.
        inputs: channels and size of the grid, or the network's argument (a tuple of several, the
            grid first).
        layer: the name of a module, as in ``network.named_modules()``, for its units in place of
            the network's outputs. The last time that it is called counts.

    Returns:
        A ``ReceptiveField``.

    Example:
        >>> from torch.nn import Conv2d, MaxPool2d, Sequential
        >>> from ansatz.networks import receptive_field
        >>> from ansatz.spec import Inputs, InputSpec
        >>> network = Sequential(Conv2d(1, 6, 5), MaxPool2d(2), Conv2d(6, 16, 5), MaxPool2d(2))
        >>> field = receptive_field(network, InputSpec.grid(1, 32, 32))  # LeNet-5
        >>> field.size, field.stride, field.of(1, 0)
        ((16, 16), (4, 4), (slice(4, 20, None), slice(0, 16, None)))

    References:
        Araujo, Norris & Sim (2019), Computing receptive fields of convolutional neural networks,
        eq. 2. https://distill.pub/2019/computing-receptive-fields
    """
    found = trace(network, inputs)
    fields = found.fields
    if layer is not None:
        calls = [call for call in found.calls if call.name == layer]
        if not calls:
            called = ", ".join(dict.fromkeys(call.name for call in found.calls if call.name))
            raise UsageError(f"no layer '{layer}' is called. Known: {called[:400]}.")
        fields = calls[-1].fields
    if fields is None:
        raise UsageError(
            "a receptive field needs inputs of shape (B, C, *size), and a layer that gives one "
            "tensor that depends on them."
        )
    return field_of(fields)


def field_of(fields: Fields) -> ReceptiveField:
    """The receptive field that intervals amount to."""
    lines = [_line(fields, axis) for axis in range(len(fields.arrays))]
    size, stride, start, centre, units = zip(*lines, strict=True)
    return ReceptiveField(size, stride, start, centre, units)


Line = tuple[int, int | float, int, float, tuple[tuple[int, int], ...]]


def _line(fields: Fields, axis: int) -> Line:
    """Along one axis: size, stride, start, centre, and the pixels of each unit."""
    array, lane = fields.arrays[axis], fields.lanes[axis]
    others = [LEAD + dim for dim in range(array.ndim - LEAD) if dim != lane]
    if others:
        array = array.amin(tuple(others))  # channels that differ: their union
    exact, endless = array.reshape(2, 2, -1).tolist()
    units = tuple(_ends(first, last) for first, last in zip(*exact, strict=True))
    if lane is None:
        endless = exact
    whole = [_ends(first, last) for first, last in zip(*endless, strict=True)]
    size = max(last - first + 1 for first, last in whole)
    step, pixels = fields.periods[axis]
    stride = 0 if lane is None else pixels // step if pixels % step == 0 else pixels / step
    first, last = whole[0]
    return size, stride, first, (first + last) / 2, units


def _ends(first: float, minus_last: float) -> tuple[int, int]:
    """A unit that sees nothing has the empty range that ends before it begins."""
    return (0, -1) if math.isinf(first) else (int(first), int(-minus_last))
