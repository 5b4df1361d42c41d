"""Writes the records of benchmarks, which state commit, machine, versions and date."""

import functools
import itertools
import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from ansatz.bench.finding import BenchOptions
from ansatz.errors import DataError
from ansatz.storage import write_json

Row = dict[str, Any]
RESULTS = Path(__file__).parents[3] / "benchmarks" / "results"  # of the source tree
PACKAGES = ("torch", "numpy", "scikit-learn", "skorch", "lightning", "keras", "typer")


def circumstances() -> dict[str, Any]:
    """Describes commit, machine, load, date and versions."""
    return {
        "commit": commit(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": f"{platform.machine()}, {platform.system()}, {os.cpu_count()} cores",
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
    }


def write_record(
    name: str, *, command: str, seed: int, results: Any, folder: Path = RESULTS, **facts: Any
) -> Path:
    """Writes ``NAME.json``, the record of a benchmark: how it was measured, and its results."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    given = {"command": command, "seed": seed, "threads": torch.get_num_threads()}
    write_json(path, {**given, **circumstances(), **facts, "results": results}, overwrite=True)
    return path


def among_earlier(path: Path, results: list[Row], now: Row) -> list[Row]:
    """Replaces the results of the measured cases in an earlier record, each with its date."""

    def dated(row: Row, of: Row) -> Row:
        return {**row, **{key: row.get(key, of[key]) for key in ("commit", "date")}}

    rows: dict[str, Row] = {}
    if path.exists():
        earlier = json.loads(path.read_text(encoding="utf-8"))
        rows = {row["name"]: dated(row, earlier) for row in earlier["results"]}
    return list((rows | {row["name"]: dated(row, now) for row in results}).values())


def commit() -> str | None:
    """Returns the commit of the running source tree; None without one."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=Path(__file__).parent, check=False
        )
    except OSError:
        return None
    return done.stdout.strip() or None


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


class Ledger:
    """A file of finished rows, one JSON line each; a row that exists is not computed again.

    An incomplete last line is dropped. Each line has the commit that was measured.

    Args:
        path: the file; None stores nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self.path, self.rows = path, [] if path is None else _read_lines(path)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._rewrite()

    def part(self, key: Row, compute: Callable[[], Row]) -> Row:
        """Returns the row of ``key``, computed if it does not exist."""
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
        """Deletes the rows of these keys."""
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


def _renamed(row: Row) -> Row:
    """Renames a key of earlier ledgers."""
    return {"likelihood" if key == "law" else key: value for key, value in row.items()}


def _read_lines(path: Path) -> list[Row]:
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    rows: list[Row] = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(_renamed(json.loads(line)))
        except ValueError:
            if number < len(lines):
                raise DataError(
                    f"{path}, line {number}: not JSON. Delete the line: its row is computed again."
                ) from None
    return rows


def repeated(
    suite: str,
    names: Iterable[str],
    fit: Callable[[str, int], Row],
    options: BenchOptions,
    *,
    times: int,
    by: str = "seed",
    **also: Any,
) -> Iterator[tuple[str, list[Row]]]:
    """Computes the rows of each data set that are not yet in the ledger of the suite.

    Args:
        suite: its name, and that of its ledger.
        names: of the data sets.
        fit: computes the row of a data set and a number.
        options: splits, folder and ``fresh``.
        times: number of splits or seeds by default.
        by: what a number is: ``"seed"`` or ``"split"``.
        also: further keys of a row.
    """
    path = None if options.folder is None else options.folder / f"{suite}.jsonl"
    ledger, sets, numbers = Ledger(path), list(names), options.splits or range(times)

    def key(name: str, number: int) -> Row:
        return {"set": name, by: number, **also}

    if options.fresh:
        ledger.forget(itertools.starmap(key, itertools.product(sets, numbers)))
    for name in sets:
        rows = []
        for number in numbers:
            options.notify(f"{name}, {by} {number}")
            rows.append(ledger.part(key(name, number), functools.partial(fit, name, number)))
        yield name, rows


def run_facts(rows: list[Row], by: str) -> Row:
    """Summarises the runs of a data set: their number, median time and commits."""
    seconds = statistics.median(row["seconds"] for row in rows)
    commits = sorted({row["commit"] or "" for row in rows})
    return {f"{by}s": len(rows), "seconds": seconds, "commits": commits}


def mean_of(rows: list[Row], key: str) -> float:
    """Averages an entry over rows."""
    return statistics.fmean(row[key] for row in rows)
