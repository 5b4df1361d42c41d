"""The bins into which the range of each number is cut, so that a network can bend sharply."""

from collections.abc import Mapping
from typing import Any

from ansatz.structures.vector.rows import TableRows

_FEATURES = 512  # at most, of all numbers
_NUMBERS = 2**27  # features times rows: half a gigabyte


def choose_bins(
    rows: TableRows,
    wanted: int,
    network: Any,
    network_options: Mapping[str, Any] | None = None,
) -> int:
    """Chooses into how many bins numbers are cut, when the user does not say; 0 for none.

    A network of the user's own takes the columns as they are; embeddings bend by themselves;
    hundreds of columns would become thousands of features, millions of rows gigabytes.

    Args:
        rows: of the table.
        wanted: how many there would be if columns and rows were few.
        network: by name, or a module.
        network_options: as the user set them.
    """
    embeds = "numeric_embedding" in (network_options or {})
    if network != "mlp" or embeds:
        return 0
    features = min(_FEATURES, _NUMBERS // max(len(rows), 1))
    bins = min(wanted, features // max(rows.numbers, 1))
    return bins if bins >= 8 else 0
