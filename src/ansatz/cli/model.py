"""The two things that predict, evaluate and inspect open."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansatz.errors import ModelError

if TYPE_CHECKING:
    import pandas as pd


def open_model(folder: Path) -> Any:
    """The estimator in a folder that ``ansatz fit`` wrote; nothing in it is ever executed.

    Example:
        >>> from pathlib import Path
        >>> from ansatz.cli.model import open_model
        >>> open_model(Path("no-such-model"))
        Traceback (most recent call last):
        ...
        ansatz.errors.ModelError: no-such-model: no such folder. A model is what ansatz fit wrote.
    """
    try:
        there = folder.is_dir()
    except (OSError, ValueError):  # too long, a NUL
        there = False
    if not there:
        what = "not a folder" if folder.is_file() else "no such folder"
        raise ModelError(f"{folder}: {what}. A model is what ansatz fit wrote.")
    import ansatz

    return ansatz.load(folder)


def open_table(data: str, options: Mapping[str, Any]) -> "pd.DataFrame":
    """The rows of a file, or of a data set by its name.

    Example:
        >>> from ansatz.cli.model import open_table
        >>> open_table("no-such-file.csv", {})
        Traceback (most recent call last):
        ...
        ansatz.errors.DataError: ...
    """
    from ansatz.data import read_table

    return read_table(data, **options).frame
