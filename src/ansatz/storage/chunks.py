"""A file written as it grows, and there only when it is whole."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from ansatz.errors import UsageError
from ansatz.storage.disk import explain, sync_folder
from ansatz.storage.temporary import forget, new_name


def write_chunks(target: str | Path, chunks: Iterable[bytes], *, overwrite: bool = False) -> Path:
    """Writes chunks to a temporary file beside ``target``, syncs and renames it.

    Args:
        target: the file; an error in between leaves what was there before.
        chunks: its content, made while it is written.
        overwrite: replace what is there.

    Example:
        >>> import tempfile
        >>> from ansatz.storage.chunks import write_chunks
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_chunks(folder + "/a.csv", [b"x,", b"y"]).read_bytes()
        b'x,y'
    """
    target = Path(target)
    if os.path.lexists(target) and not overwrite:
        raise UsageError(f"{target} exists. Choose another name, or --overwrite to replace it.")
    temporary = target.parent / new_name()
    made = False
    try:
        with temporary.open("xb") as file:
            made = True
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
        made = False
        sync_folder(target.parent)
    except OSError as error:
        raise explain(error, target) from error
    finally:
        if made:
            with contextlib.suppress(OSError):
                temporary.unlink()
        forget(temporary.name)
    return target
