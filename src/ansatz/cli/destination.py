"""Where a command writes: nothing is replaced unasked, and that is said before any work."""

import os
from pathlib import Path

from ansatz.errors import ResourceError, UsageError


def require_free(path: Path, *, overwrite: bool, advice: str) -> None:
    """Refuses, before any work is done, a place that is taken or cannot be written."""
    try:
        taken = _is_there(path)
        parent = path.absolute().parent
        while not parent.exists() and parent != parent.parent:
            parent = parent.parent  # folders that are not there yet will be made
    except (OSError, ValueError) as error:  # too long, a loop of links, a NUL
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot write to '{path}': {reason}. Choose another path.") from None
    if taken and not overwrite:
        raise UsageError(f"'{path}' exists. {advice}")
    if not parent.is_dir():
        raise UsageError(f"cannot write to '{path}': '{parent}' is a file, not a folder.")
    if not os.access(parent, os.W_OK):
        raise ResourceError(
            f"cannot write to '{path}': no permission in '{parent}'. Choose another place: --out."
        )


def _is_there(path: Path) -> bool:
    """Not os.path.lexists, which takes a name that no disk can hold for one that is free."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def stem(data: str) -> str:
    """houses.csv.gz -> houses; a folder and a data set's name are their own stem."""
    return Path(data).absolute().name.split(".")[0] or "data"
