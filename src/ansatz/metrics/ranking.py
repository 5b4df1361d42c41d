"""Agreement of predicted orders with observed rankings."""

from typing import Literal

import torch
from torch import Tensor

from ansatz.arrays import takes_arrays
from ansatz.metrics.weights import row_mean, row_weight

Unranked = Literal["last", "absent"]


@takes_arrays
def kendall_tau(
    y: Tensor, order: Tensor, weight: Tensor | None = None, *, unranked: Unranked = "last"
) -> Tensor:
    r"""Computes the mean of Kendall's tau between predicted orders and rankings, in [-1, 1].

    .. math:: \tau_i = \frac{\text{pairs in the same order} - \text{pairs in the other}}
              {\text{pairs whose order is observed}}

    A ranking of some items tells the order of each two of them and, with ``unranked="last"``, of
    each of them before every item that it leaves out; about two items that it leaves out it is
    silent. Rows without any observed pair are left out of the mean. For whole rankings this is
    the tau of Kendall (1938).

    Shapes:
        - y: ``(N, L)`` item codes, best first, -1 behind the last.
        - order: ``(N, K)``, all K codes, best first.
        - weight: ``(N,)`` frequency weights.

    Example:
        >>> import torch
        >>> from ansatz.metrics import kendall_tau
        >>> kendall_tau(torch.tensor([[2, 0, 1]]), torch.tensor([[2, 1, 0]])).item()  # 2 of 3 pairs
        0.3333333333333333

    References:
        Kendall (1938), A new measure of rank correlation. Biometrika 30, 81-93.
    """
    _require_orders("kendall_tau", y, order)
    size = max(1, 2**22 // order.shape[1] ** 2)
    blocks = zip(y.split(size), order.split(size), strict=True)
    parts = [_tau(a.long(), b.long(), unranked) for a, b in blocks]
    tau, pairs = (torch.cat(values) for values in zip(*parts, strict=True))
    return row_mean(tau, row_weight(tau, weight) * (pairs > 0))


@takes_arrays
def top_one_accuracy(
    y: Tensor, order: Tensor, weight: Tensor | None = None, *, unranked: Unranked = "last"
) -> Tensor:
    """Computes the share of rows whose first item is the one predicted to come first.

    With ``unranked="absent"`` it is the item predicted to come first among those that took part;
    rows in which only one did are left out, for there was nothing to predict.

    Shapes:
        - y: ``(N, L)`` item codes, best first, -1 behind the last.
        - order: ``(N, K)``, all K codes, best first.
        - weight: ``(N,)`` frequency weights.

    Example:
        >>> import torch
        >>> from ansatz.metrics import top_one_accuracy
        >>> y, order = torch.tensor([[1, 0], [0, 1]]), torch.tensor([[2, 1, 0], [0, 1, 2]])
        >>> top_one_accuracy(y, order).item(), top_one_accuracy(y, order, unranked="absent").item()
        (0.5, 1.0)
    """
    _require_orders("top_one_accuracy", y, order)
    y, order = y.long(), order.long()
    weight = row_weight(y, weight)
    if unranked == "absent":
        present = _place(y, order.shape[1], -1) >= 0  # (N, K)
        first = present.gather(1, order).long().argmax(1, keepdim=True)
        order, weight = order.gather(1, first), weight * (present.sum(1) > 1)
    return row_mean((y[:, 0] == order[:, 0]).double(), weight)


def _tau(y: Tensor, order: Tensor, unranked: str) -> tuple[Tensor, Tensor]:
    """Tau and the number of observed pairs of each row, ``(B,)``."""
    items = order.shape[1]
    seen = _place(y, items, y.shape[1] if unranked == "last" else -1)  # (B, K)
    known = (seen >= 0).unsqueeze(2) & (seen >= 0).unsqueeze(1)
    observed = torch.where(known, (seen.unsqueeze(1) - seen.unsqueeze(2)).sign(), 0)
    place = order.argsort(1)
    predicted = (place.unsqueeze(1) - place.unsqueeze(2)).sign()
    pairs = observed.abs().sum((1, 2))
    return (observed * predicted).sum((1, 2)) / pairs.clamp(min=1).double(), pairs


def _place(y: Tensor, items: int, left_out: int) -> Tensor:
    """The place of each item in its row, ``(B, K)``."""
    place = torch.full((len(y), items + 1), left_out, device=y.device)
    steps = torch.arange(y.shape[1], device=y.device).expand_as(y)
    return place.scatter(1, torch.where(y >= 0, y, items), steps)[:, :items]


def _require_orders(name: str, y: Tensor, order: Tensor) -> None:
    if y.ndim != 2 or order.ndim != 2 or len(y) != len(order):
        raise ValueError(
            f"{name} needs rankings y (N, L) and orders (N, K), got {tuple(y.shape)} and "
            f"{tuple(order.shape)}."
        )
    if y.numel() and int(y.max()) >= order.shape[1]:
        raise ValueError(
            f"{name} needs orders of all items, got {order.shape[1]} of them and item "
            f"{int(y.max())} in y."
        )
