"""Files that a table names without their ending: ``0001`` for ``0001.png``."""

from collections import defaultdict
from pathlib import Path

from ansatz.data.grids.listing import family
from ansatz.errors import DataError


def with_endings(paths: list[Path], origin: str, *, numbers: bool = False) -> list[Path]:
    """Each path, or the only image or array beside it that adds an ending to its name.

    What is not found stays as it is.

    Args:
        paths: as a table names them.
        origin: what errors call the table.
        numbers: whether the table holds numbers: ``1`` is then ``0001.png``, too.

    Example:
        >>> import pathlib, tempfile
        >>> from ansatz.data.grids.file_ids import with_endings
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "0001.png").write_bytes(b"")
        >>> [path.name for path in with_endings([folder / "0001"], "cells.csv")]
        ['0001.png']
        >>> [path.name for path in with_endings([folder / "1"], "cells.csv", numbers=True)]
        ['0001.png']
    """
    folders: dict[Path, dict[str, list[Path]]] = {}
    found = []
    for row, path in enumerate(paths, 1):
        if family(path) or path.is_file():
            found.append(path)
            continue
        if path.parent not in folders:
            folders[path.parent] = _by_id(path.parent, numbers)
        files = folders[path.parent].get(path.name, [path])
        if len(files) > 1:
            first, second = sorted(file.name for file in files)[:2]
            raise DataError(
                f"{origin}, row {row}: '{path.name}' may be {first} or {second}. Write the names "
                "with their endings."
            )
        found.append(files[0])
    return found


def _by_id(folder: Path, numbers: bool) -> dict[str, list[Path]]:
    found = defaultdict(list)
    for path in folder.iterdir() if folder.is_dir() else ():
        name = Path(path.name.removesuffix(".gz")).stem
        if family(path):
            found[str(int(name)) if numbers and name.isdecimal() else name].append(path)
    return found
