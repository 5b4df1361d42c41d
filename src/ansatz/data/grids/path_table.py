"""A table with a column of paths to images."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansatz.data.grids.folder import MASK_FOLDERS
from ansatz.data.grids.listing import Listing, family
from ansatz.errors import DataError, UsageError

if TYPE_CHECKING:
    import pandas as pd


_LOOKED_AT = 20  # rows that tell what a column holds


def list_table(
    frame: "pd.DataFrame",
    origin: str,
    folder: Path,
    image: str | None,
    masks: str | None,
    *,
    outcomes: bool = True,
) -> Listing:
    """The files that a table names, with its other columns."""
    if masks is not None and not isinstance(masks, str):
        raise UsageError(f"masks of a table are named by a column, got {type(masks).__name__}.")
    by_name = {str(name): name for name in frame.columns}  # of a frame they may be numbers
    for name in (image, masks if outcomes else None):
        if name is not None and name not in by_name:
            raise UsageError(f"{origin} has no column '{name}'. It has {', '.join(by_name)}.")
    key = _image_column(frame, origin, masks) if image is None else by_name[image]
    notes: list[str] = []
    paths = _paths(frame, key, origin, folder, notes)
    columns = {name: frame[own].tolist() for name, own in by_name.items() if name != masks}
    names = [_name(cell, path, folder) for cell, path in zip(frame[key], paths, strict=True)]
    listing = Listing(origin, paths, names, columns, notes=notes)
    if masks is not None and outcomes:
        listing.masks = _paths(frame, by_name[masks], origin, folder, notes)
        listing.target = "mask"
    return listing


def local_name(folder: Path, cell: str) -> str:
    r"""A path as this machine writes it: backslashes of Windows become slashes."""
    if "\\" in cell and not (folder / cell).is_file():
        own = cell.replace("\\", "/")
        return own if (folder / own).is_file() else cell
    return cell


def image_columns(frame: Any) -> list[Any]:
    """The columns whose first cells all end like image or array files."""
    head = frame.head(_LOOKED_AT)
    return [name for name in head.columns if _are_files(head[name])]


def _are_files(cells: Iterable[Any]) -> bool:
    known = [cell for cell in cells if isinstance(cell, str)]
    return bool(known) and all(family(Path(cell)) for cell in known)


def _image_column(frame: "pd.DataFrame", origin: str, masks: str | None) -> Any:
    found = [name for name in image_columns(frame) if str(name) != masks]
    pictures = [name for name in found if str(name).lower() not in MASK_FOLDERS]
    if len(pictures) == 1:
        return pictures[0]
    if len(found) == 1:
        raise UsageError(
            f"{origin}: column '{found[0]}' seems to name masks, and no other names images. Say "
            "--image COL (image=)."
        )
    if found:
        raise UsageError(
            f"{origin}: which column holds the images, {' or '.join(map(str, found))}? Say --image "
            "(image=), or leave the others out."
        )
    raise DataError(
        f"{origin} has no column of paths to images. Name it, --image COL (image=), or, if the "
        "numbers of a row are a signal, say --x grid (signals=True)."
    )


def _name(cell: Any, path: Path, folder: Path) -> str:
    """A cell as it is; of a number the file's own name, which may begin with zeros."""
    if isinstance(cell, str):
        return local_name(folder, cell)
    return str(cell) if not family(path) else path.name.split(".")[0]


def _paths(
    frame: "pd.DataFrame", name: Any, origin: str, folder: Path, notes: list[str]
) -> list[Path]:
    missing = frame[name].isna().to_numpy()
    if missing.any():
        row = int(missing.argmax()) + 1
        raise DataError(f"{origin}, row {row}: no path in column '{name}'.")
    cells = [str(cell) for cell in frame[name]]
    for row, cell in enumerate(cells, 1):
        if "\0" in cell or "://" in cell:
            raise DataError(f"{origin}, row {row}: {cell!r} is not the path of a local file.")
    given = [folder / local_name(folder, cell) for cell in cells]
    paths = with_endings(given, origin, numbers=frame[name].dtype.kind in "iu")
    ids = [place for place, path in enumerate(paths) if path != given[place]]
    if ids:
        first = ids[0]
        notes.append(
            f"column '{name}' holds names without an ending: {len(ids)} files were found by them "
            f"({cells[first]}: {paths[first].name})."
        )
    return paths


def with_endings(paths: list[Path], origin: str, *, numbers: bool = False) -> list[Path]:
    """Each path, or the only image or array beside it that adds an ending to its name.

    What is not found stays as it is.
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
