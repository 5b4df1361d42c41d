"""What one needs to repeat a measurement: machine, versions, commit, date."""

import os
import platform
import subprocess
import time
from importlib import metadata
from pathlib import Path
from typing import Any

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
