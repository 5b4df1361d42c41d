"""Files one by one, each at its own size: for what is predicted cell by cell."""

from collections.abc import Iterator
from typing import Any

from ansatz.data.grids.assemble import assemble
from ansatz.data.grids.find import list_files
from ansatz.data.grids.gather import ADVICE, refuse_or_tell
from ansatz.data.grids.grid_table import GridTable
from ansatz.data.grids.image import look
from ansatz.data.grids.listing import family
from ansatz.data.grids.options import Options
from ansatz.data.grids.read import read_grids
from ansatz.errors import DataError


def read_each(
    data: Any, *, notes: list[str], **reading: Any
) -> Iterator[tuple[GridTable, tuple[int, int] | None]]:
    """A table for each file, and the size its image had where it was brought to another.

    What is not a list of files (arrays, a data set by name) is one table.

    Args:
        data: as of :func:`~ansatz.data.grids.read_grids`.
        notes: takes what was assumed and left out, each sentence once; complete at the end.
        reading: options of :func:`~ansatz.data.grids.read_grids`.

    Example:
        >>> import pathlib, tempfile
        >>> from PIL import Image
        >>> from ansatz.data.grids.each import read_each
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> for k in (4, 8):
        ...     Image.new("L", (k, k)).save(folder / f"{k}.png")
        >>> [table.grids.shape for table, _ in read_each(folder, notes=[])]
        [(1, 4, 4), (1, 8, 8)]
    """
    of_table = {name: reading.get(name) for name in ("image", "masks")}
    others = {k: v for k, v in reading.items() if k not in ("image", "masks", "signals", "target")}
    options = Options.of(**{**others, "outcomes": False})
    listing = None
    if not reading.get("signals"):
        listing = list_files(data, options, **of_table)
    if listing is None:
        table = read_grids(data, **{**reading, "outcomes": False})
        notes += table.notes
        yield table, None
        return
    notes += listing.notes
    damaged: dict[int, DataError] = {}
    for place, path in enumerate(listing.paths):
        try:
            table = assemble(listing.one(place), options._replace(on_corrupt="refuse"))
        except DataError as error:
            if not options.skips:
                raise
            damaged[place] = DataError(str(error).removesuffix(ADVICE))
            continue
        said = [note.replace("1 of 1 images", "some images") for note in table.notes]
        notes += [note for note in said if note not in notes]
        is_fitted = options.size is not None and family(path) == "image"
        yield table, look(path, options.limits).size if is_fitted else None
    refuse_or_tell(damaged, len(listing.paths), options.skips, notes)
