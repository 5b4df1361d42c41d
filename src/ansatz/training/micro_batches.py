"""A batch in pieces, whose losses and weights add up to the whole."""

from itertools import pairwise

from ansatz.data.batch import Batch, take_rows


def micro_batches(batch: Batch, pieces: int) -> list[Batch]:
    """The rows of ``batch`` in at most ``pieces`` runs of nearly equal length.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch
        >>> from ansatz.training.micro_batches import micro_batches
        >>> batch = Batch.of(torch.randn(5, 2), torch.zeros(5))
        >>> [piece.index.tolist() for piece in micro_batches(batch, 2)]
        [[0, 1], [2, 3, 4]]
    """
    rows = len(batch.index)
    pieces = min(pieces, rows)
    if pieces <= 1:
        return [batch]
    bounds = [rows * i // pieces for i in range(pieces + 1)]
    return [take_rows(batch, slice(*ends)) for ends in pairwise(bounds)]
