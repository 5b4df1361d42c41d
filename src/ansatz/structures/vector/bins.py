"""The pieces into which the range of each number is cut, so that a network can bend sharply."""

from collections.abc import Mapping
from typing import Any

from ansatz.fitting.job import Job

_FEATURES = 512  # at most, of all numbers
_NUMBERS = 2**27  # features times rows: half a gigabyte


def choose_pieces(
    job: Job, wanted: int, network: Any, network_options: Mapping[str, Any] | None = None
) -> int:
    """Into how many pieces numbers are cut, when the user does not say; 0 for none.

    A network of the user's own takes the columns as they are; embeddings bend by themselves;
    hundreds of columns would become thousands of features, millions of rows gigabytes.

    Args:
        job: the rows.
        wanted: how many there would be if columns and rows were few.
        network: by name, or a module.
        network_options: as the user set them.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.structures.vector.bins import choose_pieces
        >>> job = Regressor()._read(np.zeros((3, 20)), np.arange(3.0))
        >>> choose_pieces(job, 32, "mlp"), choose_pieces(job, 32, "random_features")
        (25, 0)
    """
    embeds = "numeric_embedding" in (network_options or {})
    if network != "mlp" or embeds:
        return 0
    columns = job.columns
    numbers = (
        job.rows.shape[1]
        if columns is None
        else sum(column.role == "numeric" for column in columns)
    )
    features = min(_FEATURES, _NUMBERS // max(len(job.y), 1))
    pieces = min(wanted, features // max(numbers, 1))
    return pieces if pieces >= 8 else 0
