"""Signals, images and volumes for a fitted model, and masks predicted at their own size."""

import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ansatz.data import components
from ansatz.data import instances as number_objects
from ansatz.data.grids import Grids, GridTable
from ansatz.data.grids.nifti import encode_like, read_header
from ansatz.data.grids.spacing import alike, resample
from ansatz.data.streams.available import parse_bytes
from ansatz.errors import DataError, UsageError
from ansatz.fitting.model import Model
from ansatz.fitting.problem import check_known
from ansatz.fitting.read_again import Notify, ReadAgain, Written
from ansatz.structures.grid.mask_files import (
    Value,
    encode_mask,
    is_tiff,
    mask_values,
    pixels_of,
    restored,
    write_mask_files,
)
from ansatz.structures.grid.reading import read_each_like, read_like

_Labelled = tuple[str | None, str | None, NDArray[Any], Path | None]


class Images(ReadAgain):
    """Reads examples when they are asked for, brought to the size that the model was fitted to.

    Args:
        model: fitted to grids.
        data: a folder, a file, or a data set's name.
        outcomes: whether they are evaluated: those without a target are left out.
        options: of :func:`~ansatz.structures.grid.reading.read_like`; ``stream`` and
            ``memory_limit`` decide what stays in files.
        notify: takes notes.
    """

    def __init__(
        self, model: Model, data: str, *, outcomes: bool, options: Mapping[str, Any], notify: Notify
    ) -> None:
        self.model, self.data, self.outcomes, self.notify = model, data, outcomes, notify
        self.options = _with_limit_in_bytes(options)

    @cached_property
    def table(self) -> GridTable:
        """The examples, with the columns beside them."""
        table = read_like(self.model, self.data, outcomes=self.outcomes, **self.options)
        for note in table.notes:
            self.notify(note)
        self.tell_if_at_once(table)
        return self._known(table) if self.outcomes else table

    @property
    def names(self) -> Mapping[str, list[str]]:
        """The examples' files, where they have some."""
        found = self.table.grids.names
        return {} if found is None else {"image": list(found)}

    def take(self, mask: NDArray[np.bool_]) -> GridTable:
        """Some examples, with the columns beside them."""
        return self.table.rows(np.flatnonzero(mask))

    def rows(self, estimator: Any, most: int) -> Grids:
        """The first examples, which are such as the model was fitted to."""
        found = self.table.grids[slice(0, most)]
        dense = self.model.axis == "element"
        self.model.encoder.preprocessor.check(found, any_size=dense)  # type: ignore[attr-defined]
        return found

    def writes(self, path: Path) -> bool:
        """False: one answer for an example is a row of a table."""
        if is_tiff(path):
            raise UsageError(f"--out {path}: predictions are CSV; name the file something.csv.")
        return False

    def tell_if_at_once(self, table: GridTable) -> None:
        """Notes examples in memory that exceed the limit."""
        limit = self.options.get("memory_limit")
        if limit is not None and table.grids.is_in_memory and table.grids.nbytes > limit:
            self.notify(f"{self.data} was read at once; --stream and --memory-limit are for files.")

    def _known(self, table: GridTable) -> GridTable:
        """Examples whose outcome is known, checked; masks are checked where they are encoded."""
        column_roles, frame = self.model.column_roles, table.frame
        assert column_roles is not None
        if self.model.axis == "element":
            return table
        absent = [name for name in column_roles.outcome_columns if name not in frame.columns]
        if absent:
            there = ", ".join(map(str, frame.columns)) or "none"
            raise DataError(
                f"{table.origin}: no '{absent[0]}' to evaluate by: the model predicts it. "
                f"Columns: {there}. To predict without it: ansatz predict."
            )
        known = self.model.outcome.known(frame, column_roles)
        if not known.any():
            raise DataError(
                f"{table.origin}: no example has a value of '{column_roles.outcome_name}'."
            )
        if not known.all():
            self.notify(f"examples without the target, left out: {int((~known).sum())}.")
        table = table.rows(np.flatnonzero(known))
        check_known(self.model, table.frame, table.origin)
        return table


class LabelledImages(Images):
    """Examples with a class for every pixel: predicted one by one, each mask at its own size."""

    def frames(
        self, estimator: Any, *, instances: bool = False, **options: Any
    ) -> Iterator[pd.DataFrame]:
        """The share of each class among the pixels of every example, and its objects."""
        rows, first = [], estimator.classes_[0]
        for name, _, labels, _ in self._labelled(estimator):
            row: dict[str, Any] = {} if name is None else {"image": name}
            row |= {f"share_{each}": (labels == each).mean() for each in estimator.classes_}
            if instances:
                others = (each for each in estimator.classes_ if each != first)
                row |= {f"objects_{each}": len(components(labels == each)[1]) for each in others}
            rows.append(row)
        yield pd.DataFrame(rows)

    def writes(self, path: Path) -> bool:
        """Tests whether masks are written as a folder of images, or as the pages of one file."""
        return is_tiff(path) or not path.suffix

    def write(
        self, estimator: Any, path: Path, *, overwrite: bool, instances: bool = False
    ) -> Written:
        """Writes masks as images of the classes' numbers or colours, or of numbered objects.

        A folder gets a PNG file for each image, a TIFF file for each stack of pages and each
        array, and a NIfTI file with the volume's own header for each NIfTI volume; a
        TIFF file gets all masks as its pages.
        """
        if len(self.model.encoder.spec.size) < 2:
            raise UsageError("masks of signals are arrays: use predict in Python.")
        values = mask_values(estimator.classes_.tolist())
        stacks: dict[str, list[bytes]] = {}
        volumes: dict[str, bytes] = {}
        count = 0
        for count, (name, stack, labels, volume) in enumerate(self._labelled(estimator), 1):
            known = str(count - 1) if name is None else name
            if instances:
                codes = sum(k * (labels == each) for k, each in enumerate(estimator.classes_))
                labels = number_objects(np.asarray(codes)[None])[0].astype(np.uint16)
            pages = labels if labels.ndim == 3 else labels[None]
            pages = pages if instances else pixels_of(pages, values)
            if volume is not None and not is_tiff(path):
                volumes[known] = encode_like(volume, pages if labels.ndim == 3 else pages[0])
                continue
            stacks.setdefault(stack or known, []).extend(map(encode_mask, pages))
        write_mask_files(path, stacks, overwrite=overwrite, volumes=volumes)
        if instances:
            meaning = f"0 is {estimator.classes_[0]}, 1, 2, ... are objects"
            return Written({"masks": count, "out": path}, f"{count} masks: {path} ({meaning})")
        return Written(
            {"masks": count, "out": path, "values": values},
            f"{count} masks: {path} ({_meaning(values)})",
        )

    def _labelled(self, estimator: Any) -> Iterator[_Labelled]:
        """Each example's name, its stack's, its pixels' classes at its own size, its NIfTI file."""
        notes: list[str] = []
        for table, size, stack, volume in read_each_like(
            self.model, self.data, notes=notes, **self.options
        ):
            for number in range(len(table)):
                (labels,) = estimator.predict(table.grids[np.arange(number, number + 1)])
                name = None if table.grids.names is None else table.grids.names[number]
                if volume is not None:
                    labels = _at_own_spacing(labels, volume, table.grids.spacing)
                yield name, stack, labels if size is None else restored(labels, size), volume
            if size is None and len(table) > 1:
                self.tell_if_at_once(table)
        for note in notes:
            self.notify(note)


def _at_own_spacing(
    labels: NDArray[Any], volume: Path, spacing: tuple[float, ...] | None
) -> NDArray[Any]:
    """The classes of the voxels in the volume's file."""
    header = read_header(volume)
    size = header.shape[-labels.ndim :]
    if spacing is None or (alike(header.widths, spacing) and labels.shape == size):
        return labels
    names, codes = np.unique(labels, return_inverse=True)
    found = codes.reshape(labels.shape).astype(np.int32)
    at_own: NDArray[Any] = names[resample(found, spacing, header.widths, mode="nearest", size=size)]
    return at_own


def _with_limit_in_bytes(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of the reader: ``stream`` is a limit of one byte, or none."""
    found = dict(options)
    stream, limit = found.pop("stream", None), found.pop("memory_limit", None)
    if stream is not None:
        found["memory_limit"] = 1 if stream else sys.maxsize
    elif limit is not None:
        found["memory_limit"] = parse_bytes(limit)
    return found


def _meaning(values: Mapping[Any, Value]) -> str:
    """Lists the values of mask files with their classes."""
    if not all(isinstance(value, int) for value in values.values()):
        return f"colours: {', '.join(values)}"
    listed = (str(v) if str(v) == str(name) else f"{v} {name}" for name, v in values.items())
    return f"values: {', '.join(listed)}"
