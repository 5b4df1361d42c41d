"""The sizes that convolutions give, and how often they use each pixel."""

from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from typing import TypeVar

import torch
from torch import Tensor

Size = TypeVar("Size", int, Sequence[int])
PerAxis = int | Sequence[int]


def output_size(
    size: Size,
    kernel: PerAxis,
    stride: PerAxis = 1,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
) -> Size:
    r"""Computes the length of the output of a convolution or a pooling along each axis.

    .. math:: \left\lfloor \frac{x + 2p - d (k - 1) - 1}{s} + 1 \right\rfloor

    Args:
        size: the input's length :math:`x`; a tuple for several axes.
        kernel: :math:`k`; a number holds for all axes, as for those that follow.
        stride: :math:`s`, the step from window to window.
        padding: :math:`p`, zeros on *each* side.
        dilation: :math:`d`, the step within a window.

    Returns:
        A number for a number, a tuple for a tuple.

    Example:
        >>> from ansatz.layers import output_size
        >>> output_size(224, kernel=11, stride=4, padding=2)  # AlexNet's first layer
        55
        >>> output_size((32, 28), kernel=5)
        (28, 24)

    References:
        Dumoulin & Visin (2016), A guide to convolution arithmetic, section 5.1.
        https://arxiv.org/abs/1603.07285
    """

    def one(x: int, k: int, s: int, p: int, d: int) -> int:
        found = (x + 2 * p - d * (k - 1) - 1) // s + 1
        if found < 1:
            raise ValueError(
                f"a window of {d * (k - 1) + 1} does not fit into {x} cells padded by {p} on each "
                "side; use a smaller kernel or dilation, or more padding."
            )
        return found

    return _each(one, size, kernel, stride, padding, dilation)


def transposed_output_size(
    size: Size,
    kernel: PerAxis,
    stride: PerAxis = 1,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    output_padding: PerAxis = 0,
) -> Size:
    r"""Computes the length of the output of a transposed convolution along each axis.

    .. math:: x' = (x - 1) s - 2p + d (k - 1) + 1 + r

    A stride s > 1 sends s lengths to one, so that r (``output_padding``, 0 to s - 1) must say which
    of them is meant: :math:`r = (x' + 2p - d (k - 1) - 1) \bmod s`.

    Args:
        size: the input's length :math:`x`; a tuple for several axes.
        kernel: :math:`k`.
        stride: :math:`s`.
        padding: :math:`p`, that of the convolution which it transposes.
        dilation: :math:`d`.
        output_padding: :math:`r`.

    Returns:
        A number for a number, a tuple for a tuple.

    Example:
        >>> from ansatz.layers import output_size, transposed_output_size
        >>> transposed_output_size(7, kernel=2, stride=2)
        14
        >>> [output_size(n, kernel=3, stride=2) for n in (7, 8)]
        [3, 3]
        >>> [transposed_output_size(3, kernel=3, stride=2, output_padding=r) for r in (0, 1)]
        [7, 8]

    References:
        Dumoulin & Visin (2016), relationship 14. https://arxiv.org/abs/1603.07285
    """

    def one(x: int, k: int, s: int, p: int, d: int, r: int) -> int:
        found = (x - 1) * s - 2 * p + d * (k - 1) + 1 + r
        if found < 1:
            raise ValueError(f"a padding of {p} leaves nothing of {x} cells; use a smaller one.")
        return found

    return _each(one, size, kernel, stride, padding, dilation, output_padding)


def per_axis(name: str, value: PerAxis, axes: int) -> tuple[int, ...]:
    """A number for all axes as one per axis."""
    values = whole_numbers(name, value)
    if isinstance(value, (int, Integral)):
        values *= axes
    if len(values) != axes:
        raise ValueError(f"{name} must be a number or one per axis, {axes}, got {values}.")
    low = 0 if "padding" in name else 1
    if any(each < low for each in values):
        raise ValueError(f"{name} must be at least {low}, got {value}.")
    return values


def whole_numbers(name: str, value: PerAxis) -> tuple[int, ...]:
    """A number as a tuple of one, several as a tuple, refused where they are not whole."""
    # int as well, which mypy does not take for an Integral, of which numpy has its own.
    values = (value,) if isinstance(value, (int, Integral)) else value
    some = isinstance(values, Iterable) and not isinstance(values, str)
    if not some or not all(isinstance(each, (int, Integral)) for each in values):
        raise ValueError(f"{name} must be a whole number, or one per axis, got {value!r}.")
    return tuple(int(each) for each in values)


_NAMES = ("kernel", "stride", "padding", "dilation", "output_padding")


def _each(one: Callable[..., int], size: Size, *options: PerAxis) -> Size:
    single = isinstance(size, (int, Integral))
    sizes = whole_numbers("size", size)
    named = zip(_NAMES, options, strict=False)
    columns = [per_axis(name, option, len(sizes)) for name, option in named]
    found = tuple(int(one(*line)) for line in zip(sizes, *columns, strict=True))
    return found[0] if single else found  # type: ignore[return-value]


def pixel_utilization(
    size: int | Sequence[int],
    kernel: PerAxis,
    stride: PerAxis = 1,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
) -> Tensor:
    r"""Counts the windows that each pixel lies in.

    .. math:: U = A^\top \mathbf{1}

    for the matrix A of a convolution whose weights are all 1. Without padding a corner of an image
    enters one window and a pixel in the middle :math:`k^2`; a stride that is larger than the kernel
    leaves pixels that nothing looks at. The count is a product of one count per axis.

    Args:
        size: pixels along each axis.
        kernel: :math:`k`; a number holds for all axes, as for those that follow.
        stride: the step from window to window.
        padding: zeros on each side; they are not counted.
        dilation: the step within a window.

    Shapes:
        - returns: ``size``, whole numbers.

    Example:
        >>> from ansatz.layers import pixel_utilization
        >>> pixel_utilization((3, 3), kernel=2)
        tensor([[1, 2, 1],
                [2, 4, 2],
                [1, 2, 1]])

    References:
        Dumoulin & Visin (2016), section 2.2. https://arxiv.org/abs/1603.07285
    """
    sizes = whole_numbers("size", size)
    counts = torch.ones((), dtype=torch.long)
    options = (("kernel", kernel), ("stride", stride), ("padding", padding), ("dilation", dilation))
    columns = [per_axis(name, option, len(sizes)) for name, option in options]
    for n, k, s, p, d in zip(sizes, *columns, strict=True):
        begins = s * torch.arange(output_size(n, k, s, p, d))[:, None]
        places = (begins + d * torch.arange(k)).flatten()  # of the padded line
        line = torch.bincount(places, minlength=n + 2 * p)[p : p + n]
        counts = counts.unsqueeze(-1) * line
    return counts
