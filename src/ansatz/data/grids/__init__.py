"""Images, signals and volumes: read with limits, kept in memory or in their files."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ansatz.data.grids.grid_table import GridTable as GridTable
    from ansatz.data.grids.grids import Grids as Grids
    from ansatz.data.grids.masks import Masks as Masks
    from ansatz.data.grids.preprocessing import GridPreprocessor as GridPreprocessor
    from ansatz.data.grids.read import read_grids as read_grids
    from ansatz.data.grids.recognize import is_grids as is_grids
    from ansatz.data.grids.source import GridSource as GridSource

# Imported when first asked for: who asks whether data are images loads no reader of images.
_HOMES = {
    "GridPreprocessor": "preprocessing",
    "GridSource": "source",
    "GridTable": "grid_table",
    "Grids": "grids",
    "Masks": "masks",
    "is_grids": "recognize",
    "read_grids": "read",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"ansatz.data.grids.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_HOMES)
