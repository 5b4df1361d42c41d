"""Files, frames and arrays in; typed batches out."""

from ansatz.data.batch import Batch as Batch
from ansatz.data.columns import Column as Column
from ansatz.data.columns import describe_columns as describe_columns
from ansatz.data.columns import infer_columns as infer_columns
from ansatz.data.frames import as_frame as as_frame
from ansatz.data.frames import is_frame as is_frame
from ansatz.data.preprocessing import DataWarning as DataWarning
from ansatz.data.preprocessing import Preprocessor as Preprocessor
from ansatz.data.source import Source as Source
from ansatz.data.source import TensorSource as TensorSource
from ansatz.data.table import Table as Table
from ansatz.data.table import read_table as read_table
from ansatz.data.weights import check_weight as check_weight
