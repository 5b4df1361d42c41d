"""Where a command writes: nothing is replaced unasked, and nothing is ever half there."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ansatz.errors import ResourceError, UsageError


def require_free(path: Path, *, overwrite: bool, advice: str) -> None:
    """Refuses, before any work is done, a place that is taken or cannot be written.

    Example:
        >>> from pathlib import Path
        >>> from ansatz.cli.destination import require_free
        >>> require_free(Path("."), overwrite=False, advice="To replace it: --overwrite.")
        Traceback (most recent call last):
        ...
        ansatz.errors.UsageError: '.' exists. To replace it: --overwrite.
    """
    try:
        taken = os.path.lexists(path)
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


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that appears under its name only when it is complete and on the disk.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from ansatz.cli.destination import replacing
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with replacing(Path(folder) / "a.txt") as file:
        ...         _ = file.write(b"done")
        ...     (Path(folder) / "a.txt").read_text()
        'done'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=".tmp-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())  # mkstemp makes it private; a result is as others are
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
