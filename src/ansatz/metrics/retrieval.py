"""Metrics of embeddings: what the nearest rows are."""

import torch
from torch import Tensor

from ansatz.arrays import takes_arrays
from ansatz.metrics.weights import row_mean

_BLOCK = 2**24  # distances at a time


@takes_arrays
def neighbour_precision(
    y: Tensor, embeddings: Tensor, weight: Tensor | None = None, *, k: int | None = 1
) -> Tensor:
    r"""Computes the mean share of the k nearest other rows that have the class of a row.

    .. math:: \frac{1}{N} \sum_i \frac{1}{k_i} \sum_{j \in \text{nearest } k_i \text{ of } i}
              1[y_j = y_i]

    With k = 1 it is the accuracy of leave-one-out nearest-neighbour retrieval. With ``k=None`` each
    row has as many neighbours as others have its class (R-precision): 1 where every class is apart
    from the others. Rows that are alone in their class count for k only.

    Shapes:
        - y: ``(N,)`` class codes.
        - embeddings: ``(N, D)``, compared by their Euclidean distances.
        - weight: ``(N,)`` frequency weights of the rows that ask.

    Example:
        >>> import torch
        >>> from ansatz.metrics import neighbour_precision
        >>> places = torch.tensor([[0.0], [0.1], [0.15], [5.0]])
        >>> neighbour_precision(torch.tensor([0, 0, 1, 1]), places).item()
        0.5

    References:
        Musgrave, Belongie and Lim (2020), A metric learning reality check, section 3.
        https://arxiv.org/abs/2003.08505
    """
    if y.ndim != 1 or embeddings.ndim != 2 or len(y) != len(embeddings):
        raise ValueError(
            "neighbour_precision needs y (N,) and embeddings (N, D), got "
            f"{tuple(y.shape)} and {tuple(embeddings.shape)}."
        )
    if len(y) < 2 or (k is not None and not 1 <= k < len(y)):
        raise ValueError(f"k must be from 1 to {len(y) - 1} other rows, got {k}.")
    embeddings = embeddings.double()
    _, codes, sizes = y.unique(return_inverse=True, return_counts=True)
    counts = sizes[codes] - 1 if k is None else torch.full_like(codes, k)
    most, shares = int(counts.max()), []
    place = torch.arange(1, max(most, 1) + 1, device=y.device)
    for rows in torch.arange(len(y), device=y.device).split(max(1, _BLOCK // len(y))):
        distance = torch.cdist(embeddings[rows], embeddings)
        distance[torch.arange(len(rows)), rows] = torch.inf  # not itself
        nearest = distance.topk(max(most, 1), largest=False, sorted=True).indices
        hits = (codes[nearest] == codes[rows].unsqueeze(1)) & (place <= counts[rows].unsqueeze(1))
        shares.append(hits.sum(1).double() / counts[rows].clamp(min=1))
    share, asks = torch.cat(shares), counts > 0
    known = None if weight is None else weight[asks]
    return row_mean(share[asks], known).mean()
