"""Files, frames and arrays in; typed batches out."""

from ansatz.data.batch import Batch as Batch
from ansatz.data.source import Source as Source
from ansatz.data.source import TensorSource as TensorSource
