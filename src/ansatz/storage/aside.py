"""A folder that steps aside for its successor, and comes back if the successor never arrives."""

import os
import re
from pathlib import Path

from ansatz.storage.disk import sync_folder


def new_aside(target: Path) -> Path:
    """The name under which ``target`` waits while it is replaced: ``.<name>.old-<n>`` beside it.

    Example:
        >>> import pathlib, tempfile
        >>> from ansatz.storage.aside import new_aside
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     new_aside(pathlib.Path(parent, "model")).name
        '.model.old-1'
    """
    last = max((_number(path) for path in asides(target)), default=0)
    return target.parent / f".{target.name}.old-{last + 1}"


def asides(target: Path) -> list[Path]:
    """Earlier versions of ``target`` that wait beside it, the newest first.

    Example:
        >>> import pathlib
        >>> from ansatz.storage.aside import asides
        >>> asides(pathlib.Path("no/such/model"))
        []
    """
    pattern = re.compile(re.escape(f".{target.name}.old-") + "[0-9]{1,9}")
    try:
        names = [name for name in os.listdir(target.parent) if pattern.fullmatch(name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted((target.parent / name for name in names), key=_number, reverse=True)


def recover_folder(target: str | Path) -> Path | None:
    """Undoes a replacement that was cut short: the earlier folder gets its name back.

    Between the two renames of a replacement there is an instant in which no folder has the name;
    a machine that stops there leaves the old one aside, whole. Returns the folder if there was
    something to undo; nothing happens while ``target`` exists.

    Example:
        >>> import pathlib, tempfile
        >>> from ansatz.storage import recover_folder
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     pathlib.Path(parent, ".model.old-1").mkdir()
        ...     recover_folder(parent + "/model").name
        'model'
    """
    target = Path(target)
    if os.path.lexists(target):
        return None
    for aside in asides(target):
        os.rename(aside, target)
        sync_folder(target.parent)
        return target
    return None


def _number(aside: Path) -> int:
    return int(aside.name.rpartition("-")[2])
