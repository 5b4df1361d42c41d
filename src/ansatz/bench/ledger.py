"""Finished parts of a long benchmark, one line each, so that a stopped run goes on."""

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ansatz.bench.record import commit
from ansatz.errors import DataError

Row = dict[str, Any]


class Ledger:
    """Lines of JSON, appended as parts are finished; a part that is there is not done again.

    A line that was cut short by a kill is dropped. Each line names the commit that was measured.

    Args:
        path: the file; None keeps nothing.

    Example:
        >>> from ansatz.bench.ledger import Ledger
        >>> ledger = Ledger(None)
        >>> ledger.part({"split": 0}, lambda: {"nll": 2.3})["nll"]
        2.3
    """

    def __init__(self, path: Path | None) -> None:
        self.path, self.rows = path, [] if path is None else _read(path)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._rewrite()

    def part(self, key: Row, compute: Callable[[], Row]) -> Row:
        """The row of ``key``: the one that is there, or a new one."""
        for row in self.rows:
            if _is(row, key):
                return row
        made = {**key, **compute(), "commit": commit()}
        self.rows.append(made)
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(made) + "\n")
                file.flush()
                os.fsync(file.fileno())
        return made

    def forget(self, keys: Iterable[Row]) -> None:
        """Drops the rows of these keys and keeps the others."""
        gone = list(keys)
        self.rows = [row for row in self.rows if not any(_is(row, key) for key in gone)]
        if self.path is not None:
            self._rewrite()

    def _rewrite(self) -> None:
        assert self.path is not None
        text = "".join(json.dumps(row) + "\n" for row in self.rows)
        self.path.write_text(text, encoding="utf-8")


def _is(row: Row, key: Row) -> bool:
    return all(row.get(name) == value for name, value in key.items())


def _read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    rows: list[Row] = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(json.loads(line))
        except ValueError:
            if number < len(lines):
                raise DataError(
                    f"{path}, line {number}: not JSON. Delete the line: its part is done again."
                ) from None
    return rows
