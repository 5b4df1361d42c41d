"""Blocks of rows in one file of our own, each found by its place."""

from pathlib import Path
from typing import TYPE_CHECKING

from ansatz.data.arrow import _import
from ansatz.data.streams.kinds import Kinds
from ansatz.storage.disk import explain

if TYPE_CHECKING:
    import pandas as pd


class BlockFile:
    """A table written block by block and read in any order: what text costs is paid once.

    Each block is an Arrow stream of its own, uncompressed, so that the kind of a column may still
    change while the file grows; :class:`Kinds` settles it in reading.

    Args:
        path: a new file.
        kinds: what the columns hold.

    Example:
        >>> import pandas as pd, pathlib, tempfile
        >>> from ansatz.data.streams.block_file import BlockFile
        >>> from ansatz.data.streams.kinds import Kinds
        >>> kinds = Kinds("t")
        >>> file = BlockFile(pathlib.Path(tempfile.mkdtemp()) / "blocks", kinds)
        >>> for values in ([1, 2], [0.5]):
        ...     frame = pd.DataFrame({"a": values})
        ...     kinds.observe(frame)
        ...     file.append(frame)
        >>> file.read(0)["a"].tolist(), file.counts
        ([1.0, 2.0], [2, 1])
    """

    def __init__(self, path: Path, kinds: Kinds) -> None:
        self.path, self.kinds = path, kinds
        self.counts: list[int] = []
        self._starts = [0]

    def append(self, frame: "pd.DataFrame") -> None:
        """Writes one block; a full disk is a :class:`~ansatz.errors.ResourceError`."""
        arrow = _import("ipc", "streams")
        table = arrow.Table.from_pandas(frame, preserve_index=False)
        sink = arrow.BufferOutputStream()
        with arrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        content = sink.getvalue()
        try:
            with self.path.open("ab") as file:
                file.write(content)
        except OSError as error:
            raise explain(error, self.path) from error
        self.counts.append(len(frame))
        self._starts.append(self._starts[-1] + len(content))

    def read(self, number: int) -> "pd.DataFrame":
        """One block, its index that of the rows before it were all blocks one table."""
        arrow = _import("ipc", "streams")
        with self.path.open("rb") as file:
            file.seek(self._starts[number])
            content = file.read(self._starts[number + 1] - self._starts[number])
        frame = arrow.ipc.open_stream(content).read_all().to_pandas(ignore_metadata=True)
        return self.kinds.settle(frame)
