"""Which elements of an example have a label."""

from torch import Tensor

from ansatz.data.unlabelled import UNLABELLED


def labelled(y: Tensor) -> Tensor:
    """1 where a cell has a label, ``(N, *size)`` in double.

    Example:
        >>> import torch
        >>> from ansatz.outcomes.report.labelled import labelled
        >>> labelled(torch.tensor([[0, -1]])).tolist()
        [[1.0, 0.0]]
    """
    return (y != UNLABELLED).double()
