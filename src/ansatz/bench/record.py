"""What one needs to repeat a measurement: machine, versions, commit, date."""

import json
import os
import platform
import subprocess
import time
from importlib import metadata
from pathlib import Path
from typing import Any

Row = dict[str, Any]
PACKAGES = ("torch", "numpy", "scikit-learn", "skorch", "lightning", "keras", "typer")


def circumstances() -> dict[str, Any]:
    """Commit, machine, load, date and the versions of all who took part.

    Example:
        >>> from ansatz.bench.record import circumstances
        >>> sorted(circumstances())
        ['commit', 'date', 'load', 'machine', 'python', 'versions']
    """
    return {
        "commit": commit(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": f"{platform.machine()}, {platform.system()}, {os.cpu_count()} cores",
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
    }


def among_earlier(path: Path, results: list[Row], now: Row) -> list[Row]:
    """New results of some cases in the place of their old ones; the other cases stay.

    Each says at which commit and when it was measured.

    Args:
        path: of the record; it need not be there.
        results: of the cases that were measured.
        now: their circumstances.

    Example:
        >>> from pathlib import Path
        >>> from ansatz.bench.record import among_earlier
        >>> among_earlier(Path("none.json"), [{"name": "lenet5"}], {"commit": "a1", "date": "now"})
        [{'name': 'lenet5', 'commit': 'a1', 'date': 'now'}]
    """

    def dated(row: Row, of: Row) -> Row:
        return {**row, **{key: row.get(key, of[key]) for key in ("commit", "date")}}

    rows: dict[str, Row] = {}
    if path.exists():
        earlier = json.loads(path.read_text(encoding="utf-8"))
        rows = {row["name"]: dated(row, earlier) for row in earlier["results"]}
    return list((rows | {row["name"]: dated(row, now) for row in results}).values())


def commit() -> str | None:
    """The commit of the source tree that runs; None where there is none.

    Example:
        >>> from ansatz.bench.record import commit
        >>> commit() is None or len(commit()) >= 7
        True
    """
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
