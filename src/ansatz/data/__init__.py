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
from ansatz.data.keys import row_keys as row_keys
from ansatz.data.leakage import find_duplicates as find_duplicates
from ansatz.data.leakage import find_leaks as find_leaks
from ansatz.data.leakage import split_warnings as split_warnings
from ansatz.data.split import Split as Split
from ansatz.data.split import fold_numbers as fold_numbers
from ansatz.data.split import split_rows as split_rows
