"""Grids continued beyond their border by their mirror image."""

import torch
from torch import Tensor
from torch.nn.functional import pad


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

    After so many the new border is again one at which the continued grid is symmetric.
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
