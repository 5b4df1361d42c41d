"""Files, frames and arrays in; typed batches out."""

from ansatz.data.batch import Batch as Batch
from ansatz.data.frames import as_frame as as_frame
from ansatz.data.source import Source as Source
from ansatz.data.source import TensorSource as TensorSource
from ansatz.data.table import Table as Table
from ansatz.data.table import read_table as read_table
