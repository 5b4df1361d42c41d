"""Convolution as the textbooks write it: by sums, by FFT, as a matrix; mirrored borders."""

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import conv1d, conv2d, conv3d, pad

from ansatz.layers.output_size import whole_numbers

Mode = Literal["full", "same", "valid"]
_CONV = {1: conv1d, 2: conv2d, 3: conv3d}


def cross_correlate(x: Tensor, kernel: Tensor, mode: Mode = "valid") -> Tensor:
    r"""Computes the cross-correlation of x with a kernel, as "convolution" layers do.

    .. math:: (w \star x)_s = \sum_{i = 0}^{k - 1} x_{s + i} \, w_i

    with one index per axis. ``"valid"`` keeps the n - k + 1 places where the kernel lies inside x,
    ``"full"`` the n + k - 1 where it touches it (zeros beyond), ``"same"`` the middle n of those.
    With indices from 1, as in a textbook, it is :math:`x_{s + i - 1} w_i`.

    Args:
        x: numbers along one, two or three axes.
        kernel: :math:`w`, with as many axes.
        mode: which places are kept.

    Shapes:
        - x: ``(L,)``, ``(H, W)`` or ``(D, H, W)``; kernel: of as many axes.
        - returns: n - k + 1, n or n + k - 1 along each axis.

    Example:
        >>> import torch
        >>> from ansatz.layers import cross_correlate
        >>> x, w = torch.tensor([1.0, 2, -1, 1, -3]), torch.tensor([1.0, 0, -1])
        >>> cross_correlate(x, w, "same")
        tensor([-2.,  2.,  1.,  2.,  1.])

    References:
        Goodfellow, Bengio & Courville (2016), Deep Learning, eq. 9.6.
    """
    require_kernel("cross_correlate", x, kernel, mode)
    if x.ndim not in _CONV:
        raise ValueError(
            f"cross_correlate needs x with 1, 2 or 3 axes, got {x.ndim}; "
            "fft_convolve takes any number."
        )
    if mode != "valid":  # zeros for every place that the kernel touches
        x = _pad(x, [size - 1 for size in kernel.shape])
    dtype = torch.promote_types(x.dtype, kernel.dtype)
    y = _CONV[x.ndim](x[None, None].to(dtype), kernel[None, None].to(dtype))[0, 0]
    return _middle(y, kernel.shape) if mode == "same" else y


def convolve(x: Tensor, kernel: Tensor, mode: Mode = "full") -> Tensor:
    r"""Convolves x with a kernel: the cross-correlation with the flipped kernel.

    .. math:: (x * h)_i = \sum_a x_a \, h_{i - a} = (h * x)_i

    It commutes and is associative, which the cross-correlation is not.

    Args:
        x: numbers along one, two or three axes.
        kernel: :math:`h`, with as many axes.
        mode: ``"full"`` (n + k - 1 places), ``"same"`` (n) or ``"valid"`` (n - k + 1).

    Shapes:
        - x: ``(L,)``, ``(H, W)`` or ``(D, H, W)``; kernel: of as many axes.
        - returns: n + k - 1, n or n - k + 1 along each axis.

    Example:
        >>> import torch
        >>> from ansatz.layers import convolve
        >>> convolve(torch.tensor([1.0, 2, 3]), torch.tensor([1.0, 10]))
        tensor([ 1., 12., 23., 30.])

    References:
        Oppenheim & Schafer (2010), Discrete-Time Signal Processing, eq. 2.49.
    """
    require_kernel("convolve", x, kernel, mode)
    return cross_correlate(x, kernel.flip(tuple(range(kernel.ndim))), mode)


def fft_convolve(
    x: Tensor, kernel: Tensor, mode: Literal["full", "same", "valid", "circular"] = "full"
) -> Tensor:
    r"""Convolves by fast Fourier transforms, in O(n log n) steps.

    .. math:: F(x * h) = F x \cdot F h

    On a line both are padded with zeros to n + k - 1 first; ``"circular"`` does not, so that the
    end of x meets its beginning and indices count modulo n.

    Args:
        x: real numbers along any number of axes.
        kernel: :math:`h`, with as many axes; for ``"circular"`` not longer than x.
        mode: as in ``convolve``, or ``"circular"``.

    Shapes:
        - x: any; kernel: as many axes.
        - returns: n + k - 1, n or n - k + 1 along each axis; n if circular.

    Example:
        >>> import torch
        >>> from ansatz.layers import fft_convolve
        >>> y = fft_convolve(torch.tensor([1.0, 2, 3]), torch.tensor([1.0, 10]), "circular")
        >>> y.round().tolist()
        [31.0, 12.0, 23.0]

    References:
        Cooley & Tukey (1965), https://doi.org/10.1090/S0025-5718-1965-0178586-1
    """
    circular = mode == "circular"
    if not circular and mode not in get_args(Mode):
        known = ", ".join((*get_args(Mode), "circular"))
        raise ValueError(f"mode of fft_convolve must be one of {known}, got {mode!r}.")
    require_kernel("fft_convolve", x, kernel, "valid" if circular else mode)
    pairs = list(zip(x.shape, kernel.shape, strict=True))
    size = [n if circular else n + k - 1 for n, k in pairs]
    axes = tuple(range(x.ndim))
    product = torch.fft.rfftn(x, size, axes) * torch.fft.rfftn(kernel, size, axes)
    y = torch.fft.irfftn(product, size, axes)
    if mode == "same":
        return _middle(y, kernel.shape)
    if mode == "valid":
        return y[tuple(slice(k - 1, n) for n, k in pairs)]
    return y


def require_kernel(owner: str, x: Tensor, kernel: Tensor, mode: str) -> None:
    """Refuses a kernel that cannot be laid over x, and modes that do not exist."""
    if mode not in get_args(Mode):
        raise ValueError(f"mode of {owner} must be one of full, same, valid, got {mode!r}.")
    if x.ndim != kernel.ndim or x.ndim == 0 or not x.numel() or not kernel.numel():
        raise ValueError(
            f"{owner} needs x and kernel with as many axes, none empty, got shapes "
            f"{tuple(x.shape)} and {tuple(kernel.shape)}."
        )
    longer = [k > n for n, k in zip(x.shape, kernel.shape, strict=True)]
    if mode == "valid" and any(longer):
        raise ValueError(
            f"a kernel of shape {tuple(kernel.shape)} does not fit into x of {tuple(x.shape)}; "
            f"use mode='full' of {owner}."
        )


def _pad(x: Tensor, margin: list[int]) -> Tensor:
    return torch.nn.functional.pad(x, [m for each in reversed(margin) for m in (each, each)])


def _middle(full: Tensor, kernel: torch.Size) -> Tensor:
    """The n places in the middle: on x lies the middle entry of the kernel.

    Of the two of an even kernel the earlier one when convolving, the later when cross-correlating.
    """
    begin = [(k - 1) // 2 for k in kernel]
    size = [m - k + 1 for m, k in zip(full.shape, kernel, strict=True)]
    return full[tuple(slice(b, b + n) for b, n in zip(begin, size, strict=True))]


def toeplitz_matrix(
    kernel: Tensor, size: int | Sequence[int], mode: Mode = "full", *, correlate: bool = False
) -> Tensor:
    r"""Builds the matrix T for which T x is the convolution of x with ``kernel``.

    .. math:: T_{ij} = h_{i - j + o}, \qquad o = 0 \text{ (full)}, \; \lfloor (k - 1) / 2 \rfloor
        \text{ (same)}, \; k - 1 \text{ (valid)}

    and 0 where h has no such entry. For images x is read row by row, i and j are pairs, and T is
    doubly blocked: a Toeplitz matrix of Toeplitz blocks. A dense layer of this size would hold
    n (n + k - 1) free numbers; T holds k. The transpose of the valid matrix of the
    cross-correlation is the full matrix of the convolution: a layer's gradient.

    Args:
        kernel: :math:`h`.
        size: :math:`n`, the length of x along each axis.
        mode: as in ``convolve``.
        correlate: True for the matrix of ``cross_correlate``.

    Shapes:
        - kernel: ``(k,)``, or an entry per axis of x.
        - returns: ``(M, N)``: N the number of entries of x, M of the result.

    Example:
        >>> import torch
        >>> from ansatz.layers import toeplitz_matrix
        >>> toeplitz_matrix(torch.tensor([1.0, 10]), 3)
        tensor([[ 1.,  0.,  0.],
                [10.,  1.,  0.],
                [ 0., 10.,  1.],
                [ 0.,  0., 10.]])

    References:
        Goodfellow, Bengio & Courville (2016), Deep Learning, section 9.1.
    """
    sizes = whole_numbers("size", size)
    require_kernel("toeplitz_matrix", torch.empty(sizes, device="meta"), kernel, mode)
    h = kernel.flip(tuple(range(kernel.ndim))) if correlate else kernel
    axes = len(sizes)
    places, present, rows = [], torch.ones((), dtype=torch.bool), []
    for axis, (n, k) in enumerate(zip(sizes, h.shape, strict=True)):
        offset = {"full": 0, "same": (k - 1) // 2, "valid": k - 1}[mode]
        rows.append({"full": n + k - 1, "same": n, "valid": n - k + 1}[mode])
        difference = torch.arange(rows[-1])[:, None] - torch.arange(n) + offset  # i - j + o
        shape = [1] * (2 * axes)
        shape[axis], shape[axes + axis] = rows[-1], n
        difference = difference.view(shape)
        present = present & (difference >= 0) & (difference < k)
        places.append(difference.clamp(0, k - 1).to(h.device))
    T = torch.where(present.to(h.device), h[tuple(places)], 0)  # (*rows, *sizes)
    return T.reshape(torch.Size(rows).numel(), torch.Size(sizes).numel())


def mirror_pad(x: Tensor, padding: tuple[tuple[int, int], ...]) -> Tensor:
    r"""Continues a grid beyond its border by reflection at its outermost cells.

    .. math:: x_{-i} = x_i, \qquad x_{n - 1 + i} = x_{n - 1 - i}

    A border that is wider than the grid is reflected again at the other end, so any width will do
    (torch's ``reflect`` padding refuses one of n cells or more). A single cell is repeated.

    Args:
        x: any tensor; its last axes are padded.
        padding: (before, after) for each of these axes, in their order.

    Example:
        >>> import torch
        >>> from ansatz.layers import mirror_pad
        >>> mirror_pad(torch.tensor([1, 2, 3]), ((2, 4),))
        tensor([3, 2, 1, 2, 3, 2, 1, 2, 3])

    References:
        Ronneberger, Fischer and Brox (2015), U-Net, figure 2. https://arxiv.org/abs/1505.04597
    """
    if x.is_floating_point() and x.ndim - len(padding) == 2 and min(x.shape[2:]) > 1:
        return _turn_by_turn(x, padding)
    first = x.ndim - len(padding)
    for axis, (before, after) in enumerate(padding, first):
        if before or after:
            x = x.index_select(axis, mirror_index(x.shape[axis], before, after, x.device))
    return x


def _turn_by_turn(x: Tensor, padding: tuple[tuple[int, int], ...]) -> Tensor:
    """By torch's own padding, which a receptive field is followed through, n - 1 cells at a time.

    After as many the new border is again one at which the continued grid is symmetric.
    """
    most, rest = [n - 1 for n in x.shape[2:]], list(padding)
    while any(before or after for before, after in rest):
        turn = [(min(b, n), min(a, n)) for (b, a), n in zip(rest, most, strict=True)]
        rest = [(b - c, a - d) for (b, a), (c, d) in zip(rest, turn, strict=True)]
        x = pad(x, [cells for pair in reversed(turn) for cells in pair], mode="reflect")
    return x


def mirror_index(
    length: int, before: int, after: int, device: torch.device | None = None
) -> Tensor:
    """Which cell of an axis stands at each place of the padded axis."""
    place = torch.arange(-before, length + after, device=device)
    period = max(2 * (length - 1), 1)  # there and back
    place = place % period
    return torch.minimum(place, period - place) if length > 1 else torch.zeros_like(place)
