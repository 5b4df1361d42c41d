"""Files read once: into memory where they fit, otherwise to see that they can be read."""

import math

import numpy as np
import torch
from torch import Tensor

from ansatz.data.grids.grid_files import GridFiles
from ansatz.data.grids.grids import digest
from ansatz.data.grids.image_file import bombs_are_errors
from ansatz.data.grids.runs import in_runs
from ansatz.errors import DataError, ResourceError

ADVICE = " To leave such files out: --skip-corrupt (on_corrupt='skip')."


def gather(files: GridFiles, memory: int, damaged: dict[int, DataError]) -> Tensor | GridFiles:
    """A tensor of all files if it takes at most ``memory`` bytes, else the files with digests.

    Args:
        files: what to read.
        memory: bytes that the decoded files may take.
        damaged: places that are known to be unreadable; those found are added. Their rows of
            the tensor mean nothing.
    """

    def attempt(place: int) -> np.ndarray | DataError:
        try:
            return files.read(files.paths[place])
        except DataError as error:
            return error

    count = len(files.paths)
    size = count * math.prod(files.shape) * files.dtype.itemsize
    fits = size <= memory
    made = _allocated((count, *files.shape), files.dtype, size) if fits else torch.empty(0)
    kept = made.numpy()
    digests = np.zeros(count, np.uint64)
    places = [place for place in range(count) if place not in damaged]
    with bombs_are_errors():
        arrays = in_runs(attempt, places, files.paths, ahead=files.ahead)
        for place, found in zip(places, arrays, strict=True):
            if isinstance(found, DataError):
                damaged[place] = found
            elif fits:
                kept[place] = found
            else:
                digests[place] = digest(found)
    return made if fits else files._replace(digests=digests)


def refuse_or_tell(
    damaged: dict[int, DataError], count: int, skips: bool, notes: list[str]
) -> np.ndarray:
    """The places of the files that can be read; an error or a note about the others."""
    if damaged:
        first, *others = (str(damaged[place]) for place in sorted(damaged))
        many = f" {len(others)} more cannot be read." if others else ""
        if not skips:
            raise DataError(f"{first}{many}{ADVICE}")
        if len(damaged) == count:
            raise DataError(f"{first}{many} Nothing is left.")
        told = " ".join([first, *others[:4]])
        notes.append(f"{len(damaged)} of {count} files left out: {told}")
    return np.array([place for place in range(count) if place not in damaged], np.int64)


def _allocated(shape: tuple[int, ...], dtype: torch.dtype, size: int) -> Tensor:
    try:
        return torch.empty(shape, dtype=dtype)
    except RuntimeError:
        raise ResourceError(
            f"the decoded examples take {size / 2**30:.1f} GB, which are not free. "
            "Read them smaller (--size) or from their files (--memory-limit)."
        ) from None
