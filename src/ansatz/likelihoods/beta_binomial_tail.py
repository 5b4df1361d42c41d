"""The lower tail of the beta-binomial law over its last probability, differentiable."""

import torch
from torch import Tensor

_BLOCK = 2**16  # terms at once: they stay in the cache


def log_sum_below(y: Tensor, a: Tensor, b: Tensor, n: Tensor) -> Tensor:
    r"""log(P(Y <= y) / P(Y = y)) of a beta-binomial law, for whole numbers 0 <= y <= n.

    .. math:: \log \sum_{j=0}^y \prod_{k=y-j+1}^y \frac{p(k-1)}{p(k)}, \qquad
              \frac{p(k-1)}{p(k)} = \frac{k\,(n - k + b)}{(n - k + 1)(k - 1 + a)}

    All terms are positive, so that no digits cancel; as logarithms none overflows. Rows of similar
    length are summed together. Twice differentiable in a and b.

    Args:
        y: the count, in double precision as the others.
        a: the first shape.
        b: the second shape.
        n: the number of trials.

    Shapes:
        - y, a, b, n: the same.

    Example:
        >>> import torch
        >>> one = torch.ones(1, dtype=torch.float64)  # a = b = 1: uniform on 0..n
        >>> round(log_sum_below(2 * one, one, one, 9 * one).exp().item(), 12)
        3.0
    """
    rows = [v.reshape(-1) for v in (y, a, b, n)]
    if not rows[0].numel():
        return torch.zeros_like(y)
    order = torch.argsort(rows[0].detach())
    rows = [v[order] for v in rows]
    value = torch.cat([_sum(*(v[part] for v in rows)) for part in _parts(rows[0])])
    return value[torch.argsort(order)].reshape(y.shape)


def _parts(length: Tensor) -> list[slice]:
    """Slices of rows in ascending order of length that fit into a block of terms."""
    parts, start, rows = [], 0, len(length)
    while start < rows:
        end = min(start + _BLOCK, rows)
        while end > start + 1 and (end - start) * float(length[end - 1]) > _BLOCK:
            end = start + (end - start + 1) // 2
        parts.append(slice(start, end))
        start = end
    return parts


def _sum(y: Tensor, a: Tensor, b: Tensor, n: Tensor) -> Tensor:
    terms = torch.arange(max(1, int(y.max())), dtype=y.dtype, device=y.device)
    y, a, b, n = (v.unsqueeze(-1) for v in (y, a, b, n))
    k = y - terms  # (N, M)
    valid = k >= 1
    k = k.clamp(min=1)
    ratio = k * (n - k + b) / ((n - k + 1) * (k - 1 + a))
    log_term = torch.where(valid, ratio.log().cumsum(-1), -torch.inf)
    largest = log_term.detach().amax(-1, True).clamp(min=0)
    total = (-largest).exp().squeeze(-1) + (log_term - largest).exp().sum(-1)
    return total.log() + largest.squeeze(-1)
