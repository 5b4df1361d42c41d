"""Reads signals, images and volumes: as a fit read them, and as a user hands them over."""

import warnings
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansatz.data.grids import Grids, GridTable, is_grids, read_grids
from ansatz.data.grids.arrays import is_idx
from ansatz.data.grids.find import is_data_set, is_image_file, is_table
from ansatz.data.grids.layout import doubtful_images
from ansatz.data.grids.listing import family, files_below
from ansatz.data.grids.nifti import is_nifti
from ansatz.data.grids.read import Each, read_each
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.model import Model
from ansatz.fitting.provenance import Provenance, provenance_of
from ansatz.structures.grid.encoder import GridEncoder
from ansatz.structures.grid.recognition import files_of, is_list_of_images, shape_of


def grid_table(model: Model, table: Any, *, outcomes: bool) -> GridTable:
    """Examples as they are, or read from a folder, a file or arrays."""
    return table if isinstance(table, GridTable) else read_like(model, table, outcomes=outcomes)


def read_like(model: Model, data: Any, *, outcomes: bool = True, **options: Any) -> GridTable:
    """Examples as those of a fit were, brought to their size: to be predicted or evaluated.

    Args:
        model: fitted to grids.
        data: a folder, a file, the name of a data set, or arrays.
        outcomes: whether they are evaluated; False reads the examples alone.
        options: of :func:`ansatz.data.grids.read_grids`: ``on_corrupt``, ``memory_limit``,
            ``pages``, ``masks``.
    """
    reading = {**_reading(model, data, outcomes=outcomes), **options}
    return read_grids(data, outcomes=outcomes, **reading)


def read_each_like(model: Model, data: Any, *, notes: list[str], **options: Any) -> Iterator[Each]:
    """Examples to label pixel by pixel: files or pages one by one, each at its own size.

    Where the fit was given a size, images are brought to it, and their own size is given beside.
    """
    reading = {**_reading(model, data, outcomes=False), **options}
    return read_each(data, notes=notes, **reading)


def _reading(model: Model, data: Any, *, outcomes: bool) -> dict[str, Any]:
    """The options to read data for a fitted model: its shape, and the options of the fit."""
    encoder: GridEncoder = model.encoder  # type: ignore[assignment]
    preprocessor, provenance = encoder.preprocessor, provenance_of(model)
    spec, column_roles = preprocessor.spec, model.column_roles
    reader = {} if provenance is None else provenance.asked.reader()
    if is_data_set(data):
        return {}
    if holds_signals(data, reader):
        special = [] if column_roles is None else special_columns(column_roles)
        dropped = provenance.asked.options["drop"] if provenance else ()
        return {"signals": True, "target": [*special, *dropped]}
    options = _some(reader, "limit_pixels", "limit_bytes")
    if len(spec.size) > 1 or spec.features > 1:
        options["channels"] = spec.features
    if len(spec.size) == 2:
        # Masks may be of any size, unless the fit was given one.
        size = reader.get("size") if model.axis == "element" else spec.size
        options |= {"size": sides(size), "shares": _holds_shares(preprocessor)}
    if preprocessor.spacing is not None and _holds_nifti(data):
        options["spacing"] = tuple(reversed(preprocessor.spacing))  # as headers count
        if model.axis != "element":
            options["size"] = spec.size
    elif _holds_nifti(data):
        options["spacing"] = "none"
    if provenance is None:
        return options
    pages = _pages(data, provenance)
    if pages is not None:
        options["pages"] = pages
    if pages == "volume":
        options["shares"] = _holds_shares(preprocessor)
    if outcomes and (model.axis == "element" or _numbers_classes(data)):
        options |= _some(reader, "classes", "unlabelled")
    return options | _paths_and_masks(data, provenance)


def _pages(data: Any, provenance: Provenance) -> str | None:
    """The fit's option for pages; None where data are not image files."""
    reader = provenance.asked.reader()
    said = reader.get("pages")
    if said is None and "masks" in reader and is_image_file(provenance.source.path):
        said = "images"  # as one file with a file of masks is read when nobody says
    return said if said is not None and _holds_image_files(data) else None


def _holds_nifti(data: Any) -> bool:
    if isinstance(data, str | Path):
        path = Path(data)
        return any(map(is_nifti, files_below(path))) if path.is_dir() else is_nifti(path)
    is_list = isinstance(data, list | tuple) and bool(data) and isinstance(data[0], str | Path)
    return is_list and is_nifti(Path(data[0]))


def _holds_image_files(data: Any) -> bool:
    if isinstance(data, str | Path) and Path(data).is_dir():
        return any(family(path) == "image" for path in files_below(Path(data)))
    is_list = isinstance(data, list | tuple) and bool(data) and isinstance(data[0], str | Path)
    return is_list or is_image_file(data) or is_table(data)


def _paths_and_masks(data: Any, provenance: Provenance) -> dict[str, Any]:
    """The columns or the folder that the fit was given, where data are such a table or folder."""
    given, source = _some(provenance.asked.reader(), "image", "masks"), provenance.source.path
    if source is None or is_table(source):
        return given if is_table(data) else {}
    masks = given.get("masks")
    if isinstance(masks, str) and isinstance(data, str | Path):
        is_same = str(Path(data).absolute()) == source
        if is_same or (Path(data).is_dir() and Path(data, masks).is_dir()):
            return {"masks": masks}
    return {}


def _some(reader: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: reader[name] for name in names if name in reader}


def _numbers_classes(data: Any) -> bool:
    """Tests whether data may give classes as numbers; folders and tables name them."""
    if isinstance(data, str | Path):
        return Path(data).suffix.lower() == ".npz" or is_idx(Path(data))
    return isinstance(data, Mapping)


def sides(size: Any) -> Any:
    """A size as the reader takes it: one number is that of all sides."""
    return size[0] if isinstance(size, list | tuple) and len(size) == 1 else size


def _holds_shares(preprocessor: Any) -> bool | None:
    """Tests whether a model was trained on numbers in [0, 1] (images of 16 bits), not on bytes.

    Such numbers of mean m have a variance of at most m (1 - m). None for other numbers.
    """
    if preprocessor.unit == 255:
        return False
    moments = zip(preprocessor.mean, preprocessor.scale, strict=True)
    return True if all(s**2 <= m * (1 - m) + 1e-9 for m, s in moments) else None


def holds_signals(data: Any, reader: Mapping[str, Any]) -> bool:
    """Tests whether the rows of numbers of a table are signals: a table that names no images."""
    return not is_grids(data) and not {"image", "masks"} & set(reader)


def special_columns(column_roles: ColumnRoles) -> list[str]:
    """Columns of a table that are not part of its rows' signals."""
    named = [
        column_roles.weights,
        column_roles.offset,
        column_roles.exposure,
        column_roles.group,
        column_roles.time,
        column_roles.event,
    ]
    return [*column_roles.outcome_columns, *(name.split("=")[0] for name in named if name)]


def grids_of(X: Any, *, estimator: Any, reset: bool) -> Grids:
    """Converts an estimator's X to grids.

    Arrays of three and more axes, lists of images as arrays, lists and arrays of image or array
    files, and what ``read_grids`` gives are grids; an array of two axes holds signals. Files to
    predict are brought to the fit's size; their folder will do, too.
    """
    if isinstance(X, Grids | GridTable):
        grids = X.grids if isinstance(X, GridTable) else X
    elif isinstance(X, str | PathLike) and reset:
        raise UsageError(
            f"X is the path '{X}': read it first, table = read_grids(X), and fit table.grids and a "
            "column of table.frame."
        )
    elif isinstance(X, str | PathLike) or (files := files_of(X)) is not None:
        named = X if isinstance(X, str | PathLike) else files
        table = read_grids(named) if reset else read_like(estimator.model_, named, outcomes=False)
        grids = table.grids
    else:
        grids = _of_arrays(X, reset=reset)
    if reset:
        if not len(grids):
            raise ValueError("Found array with 0 sample(s), but a minimum of 1 is required.")
        estimator.n_features_in_ = int(np.prod(grids.shape))
        estimator.__dict__.pop("feature_names_in_", None)
    return grids


def _of_arrays(X: Any, *, reset: bool) -> Grids:
    values = X.to_numpy() if hasattr(X, "to_numpy") else X
    if is_list_of_images(values):
        values = _stacked(values)
    doubt = doubtful_images(np.shape(values)) if reset else None
    if doubt:
        warnings.warn(f"X {doubt}", stacklevel=2)
    return Grids.of(values)


def _stacked(X: Any) -> NDArray[Any]:
    arrays = [each.detach().cpu() if hasattr(each, "detach") else each for each in X]
    first = shape_of(arrays[0])
    for place, each in enumerate(arrays):
        if shape_of(each) != first:
            raise DataError(
                f"X holds examples of several shapes, {first} and {shape_of(each)} at X[{place}]: "
                "bring them to one. Images in files are: give a list of their paths."
            )
    return np.stack([np.asarray(each) for each in arrays])
