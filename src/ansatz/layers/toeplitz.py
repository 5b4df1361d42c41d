"""The matrix of a convolution: constant along its diagonals, in blocks for images."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ansatz.layers.convolution import Mode, require_kernel
from ansatz.layers.output_size import whole_numbers


def toeplitz_matrix(
    kernel: Tensor, size: int | Sequence[int], mode: Mode = "full", *, correlate: bool = False
) -> Tensor:
    r"""The matrix T for which T x is the convolution of x with ``kernel``.

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
