"""A folder for blocks that is gone when they are no longer needed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir

from ansatz.storage.disk import explain, forget, new_name, remove, remove_orphans


@contextmanager
def stream_folder(beside: str | Path | None = None) -> Iterator[Path]:
    """A temporary folder beside ``beside``, or where the system keeps such; removed at the end.

    What a killed process left under such a name, the next one removes.

    Args:
        beside: the folder that the run writes to, whose disk has room; None for none.
    """
    parent = Path(gettempdir()) if beside is None else Path(beside).absolute().parent
    folder = parent / new_name()
    try:
        remove_orphans(parent)
        folder.mkdir()
    except OSError as error:
        forget(folder.name)
        raise explain(error, folder) from error
    try:
        yield folder
    finally:
        remove(folder)
        forget(folder.name)
