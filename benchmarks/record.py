"""What every benchmark keeps of a run: the numbers, and what one needs to repeat them."""

import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch

RESULTS = Path(__file__).parent / "results"


def commit() -> str:
    """The commit that is checked out."""
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return git.stdout.strip()


def write_record(name: str, *, command: str, seed: int, results: Any, **facts: Any) -> Path:
    """Writes ``results/NAME.json`` with seed, commit, machine, versions and ``facts``."""
    record = {
        "command": command,
        "commit": commit(),
        "seed": seed,
        "machine": f"{platform.machine()}, {platform.system()}, {os.cpu_count()} cores",
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "torch": torch.__version__,
        **facts,
        "results": results,
    }
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(record, indent=2) + "\n")
    return path
