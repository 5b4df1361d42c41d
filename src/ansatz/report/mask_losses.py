"""The loss of each image whose cells have classes: the mean over those that are labelled."""

import torch
from torch import Tensor

from ansatz.data.unlabelled import UNLABELLED
from ansatz.likelihoods import Likelihood


def labelled(y: Tensor) -> Tensor:
    """1 where a cell has a label, ``(N, *size)`` in double.

    Example:
        >>> import torch
        >>> from ansatz.report.mask_losses import labelled
        >>> labelled(torch.tensor([[0, -1]])).tolist()
        [[1.0, 0.0]]
    """
    return (y != UNLABELLED).double()


def mask_losses(law: Likelihood, raw: Tensor, y: Tensor) -> Tensor:
    """The mean negative log-likelihood of the labelled cells of each image, ``(N,)``.

    Args:
        law: of a cell's class.
        raw: its parameters at every cell.
        y: codes of the classes, -1 where there is no label.

    Shapes:
        - raw: ``(N, *size, P)``; y: ``(N, *size)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Categorical
        >>> from ansatz.report.mask_losses import mask_losses
        >>> mask_losses(Categorical(), torch.zeros(1, 2, 2), torch.tensor([[0, -1]]))
        tensor([0.6931], dtype=torch.float64)
    """
    seen = labelled(y).flatten(1)
    with torch.no_grad():
        cells = law.loss(raw, y.clamp(min=0)).double().flatten(1)
    return (cells * seen).sum(1) / seen.sum(1).clamp(min=1)
