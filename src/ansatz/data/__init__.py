"""Files, frames and arrays in; typed batches out."""

from typing import TYPE_CHECKING, Any

from ansatz.data import augmentation as augmentation
from ansatz.data.batch import Batch as Batch
from ansatz.data.columns import Column as Column
from ansatz.data.columns import describe_columns as describe_columns
from ansatz.data.columns import infer_columns as infer_columns
from ansatz.data.components import Cleaning as Cleaning
from ansatz.data.components import clean as clean
from ansatz.data.components import components as components
from ansatz.data.components import instances as instances
from ansatz.data.registry import Dataset as Dataset
from ansatz.data.frames import as_frame as as_frame
from ansatz.data.frames import is_frame as is_frame
from ansatz.data.graphs import Graph as Graph
from ansatz.data.graphs import Graphs as Graphs
from ansatz.data.grids import Grids as Grids
from ansatz.data.grids import GridSource as GridSource
from ansatz.data.grids import GridTable as GridTable
from ansatz.data.grids import Masks as Masks
from ansatz.data.grids import is_grids as is_grids
from ansatz.data.keys import row_keys as row_keys
from ansatz.data.leakage import find_duplicates as find_duplicates
from ansatz.data.leakage import find_leaks as find_leaks
from ansatz.data.leakage import split_warnings as split_warnings
from ansatz.data.molecules import Molecules as Molecules
from ansatz.data.points import Clouds as Clouds
from ansatz.data.points import solids as solids
from ansatz.data.prefetch import Prefetch as Prefetch
from ansatz.data.prefetch import Transformed as Transformed
from ansatz.data.preprocessing import DataWarning as DataWarning
from ansatz.data.preprocessing import Preprocessor as Preprocessor
from ansatz.data.rankings import Rankings as Rankings
from ansatz.data.rankings import read_rankings as read_rankings
from ansatz.data.registry import describe as describe
from ansatz.data.registry import fetch as fetch
from ansatz.data.registry import load as load
from ansatz.data.registry import names as names
from ansatz.data.registry import register as register
from ansatz.data.registry import registry as registry
from ansatz.data.sets import Elements as Elements
from ansatz.data.sets import Sets as Sets
from ansatz.data.source import Source as Source
from ansatz.data.source import TensorSource as TensorSource
from ansatz.data.spelling import Spelling as Spelling
from ansatz.data.split import Split as Split
from ansatz.data.split import fold_numbers as fold_numbers
from ansatz.data.split import split_rows as split_rows
from ansatz.data.table import Table as Table
from ansatz.data.description import table_one as table_one
from ansatz.data.table import read_table as read_table
from ansatz.data.batch import check_weight as check_weight

if TYPE_CHECKING:
    from ansatz.data.grids import read_grids as read_grids


def __getattr__(name: str) -> Any:
    if name != "read_grids":  # which loads the readers of images, that a table does not need
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ansatz.data import grids

    return grids.read_grids


def __dir__() -> list[str]:
    return [*(set(globals()) - {"Any", "TYPE_CHECKING"}), "read_grids"]
