"""Images, signals and volumes: read with limits, kept in memory or in their files."""

from ansatz.data.grids.grid_table import GridTable as GridTable
from ansatz.data.grids.grids import Grids as Grids
from ansatz.data.grids.masks import Masks as Masks
from ansatz.data.grids.preprocessing import GridPreprocessor as GridPreprocessor
from ansatz.data.grids.read import read_grids as read_grids
from ansatz.data.grids.recognize import is_grids as is_grids
from ansatz.data.grids.source import GridSource as GridSource
