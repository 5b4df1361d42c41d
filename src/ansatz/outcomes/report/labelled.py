"""Which elements of an example have a label."""

from torch import Tensor

from ansatz.data.batch import UNLABELLED


def labelled(y: Tensor) -> Tensor:
    """1 where a cell has a label, ``(N, *size)`` in double."""
    return (y != UNLABELLED).double()
