"""The pinball loss: how good quantiles are."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ansatz.metrics.weights import row_mean


def pinball(
    y: Tensor, quantiles: Tensor, levels: Sequence[float], weight: Tensor | None = None
) -> Tensor:
    r"""The mean pinball loss over levels and rows, in the unit of y: smaller is better.

    .. math:: \max(\tau e, (\tau - 1) e), \qquad e = y - q_\tau

    Its expectation is least at the tau-quantile. Over all levels from 0 to 1 its mean is half the
    CRPS; at 1/2 alone it is half the absolute error.

    Args:
        y: ``(N,)``, or ``(N, K)``: then the mean over the K targets too.
        quantiles: ``(N, Q)`` or ``(N, K, Q)``, one per level.
        levels: Q numbers strictly between 0 and 1.
        weight: ``(N,)`` frequency weights.

    Example:
        >>> import torch
        >>> from ansatz.metrics import pinball
        >>> round(pinball(torch.tensor([3.0]), torch.tensor([[1.0]]), [0.9]).item(), 4)  # 0.9 * 2
        1.8

    References:
        Koenker and Bassett (1978), Regression quantiles. https://doi.org/10.2307/1913643
    """
    level = torch.tensor(list(levels), dtype=torch.float64, device=y.device)
    if quantiles.shape != (*y.shape, len(level)):
        raise ValueError(
            f"pinball needs one quantile per level, {(*y.shape, len(level))}, "
            f"got {tuple(quantiles.shape)}."
        )
    if len(level) == 0 or not bool(((level > 0) & (level < 1)).all()):
        raise ValueError(f"levels must be strictly between 0 and 1, got {list(levels)}.")
    error = y.double().unsqueeze(-1) - quantiles.double()
    return row_mean(torch.maximum(level * error, (level - 1) * error).mean(-1), weight).mean()
