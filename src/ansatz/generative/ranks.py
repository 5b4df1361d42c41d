"""Ranks of log densities among those of rows that were held out."""

import torch
from torch import Tensor


def two_sided_rank(values: Tensor, reference: Tensor) -> Tensor:
    r"""A p-value for each value: twice the smaller of its two ranks among the reference.

    .. math:: p = \min\Big(1,\; 2 \min\Big(\frac{1 + \#\{r \le v\}}{1 + M},
              \frac{1 + \#\{r \ge v\}}{1 + M}\Big)\Big)

    It is uniform, up to 1/M, for a row that is exchangeable with the reference. Networks find some
    strangers *more* likely than what they were trained on: both tails count.

    Args:
        values: ``(N,)``.
        reference: ``(M,)``, of held-out rows.

    Example:
        >>> import torch
        >>> from ansatz.generative.ranks import two_sided_rank
        >>> two_sided_rank(torch.tensor([-5.0, 1.5]), torch.tensor([0.0, 1.0, 2.0])).tolist()
        [0.5, 1.0]
    """
    ordered = reference.double().sort().values
    count = len(ordered)
    values = values.double().contiguous()
    below = torch.searchsorted(ordered, values, right=True)
    above = count - torch.searchsorted(ordered, values, right=False)
    smaller = torch.minimum(below, above).double()
    return (2 * (1 + smaller) / (1 + count)).clamp(max=1.0)
