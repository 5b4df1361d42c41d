"""Tables larger than memory: read in blocks, learned from in one pass, trained on in batches."""

from ansatz.data.streams.available import available_memory as available_memory
from ansatz.data.streams.block_source import BlockFile as BlockFile
from ansatz.data.streams.block_source import BlockSource as BlockSource
from ansatz.data.streams.blocks import Blocks as Blocks
from ansatz.data.streams.blocks import open_blocks as open_blocks
from ansatz.data.streams.blocks import read_blocks as read_blocks
from ansatz.data.split import HashSplit as HashSplit
from ansatz.data.streams.learner import Learner as Learner
from ansatz.data.streams.learner import Moments as Moments
from ansatz.data.streams.survey import RowSample as RowSample
from ansatz.data.streams.survey import Survey as Survey
