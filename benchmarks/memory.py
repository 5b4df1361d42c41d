"""How much memory a fit takes to a CSV file that is larger: ``python benchmarks/memory.py``.

Generates a table of 20 numbers and 3 categories with a signal in both, trains through the command
in a process of its own, and records that process's peak of resident memory. The file is deleted.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from ansatz.bench.record import commit, write_record

SEED, LIMIT = 0, 2**30  # the bar: 1 GB
NUMBERS, LEVELS = 20, (3, 12, 40)
ROWS = 100_000  # generated at once


def generate(path: Path, size: int) -> int:
    """Writes ``size`` bytes of CSV, and returns the number of rows."""
    rng = np.random.default_rng(SEED)
    effects = [rng.normal(size=count) for count in LEVELS]
    slopes = rng.normal(size=NUMBERS) / 4
    rows = 0
    with path.open("wb") as file:
        while file.tell() < size:
            x = rng.normal(size=(ROWS, NUMBERS)).round(6)
            codes = [rng.integers(count, size=ROWS) for count in LEVELS]
            y = x @ slopes + np.sin(2 * x[:, 0]) * x[:, 1] + rng.normal(size=ROWS) / 2
            y += sum(effect[code] for effect, code in zip(effects, codes, strict=True))
            columns = {f"x{k + 1}": x[:, k] for k in range(NUMBERS)}
            for k, code in enumerate(codes):
                columns[f"c{k + 1}"] = np.char.add("level", code.astype(str))
            table = pa.table({**columns, "y": y.round(6)})
            options = pyarrow.csv.WriteOptions(include_header=rows == 0)
            pyarrow.csv.write_csv(table, file, options)
            rows += ROWS
    return rows


def run(path: Path, out: Path, epochs: int, stream: list[str]) -> dict[str, object]:
    """One fit through the command; peak memory is that of the process and no other."""
    command = [sys.executable, "-m", "ansatz", "fit", str(path), "--target", "y", "--out", str(out)]
    command += ["--set", f"epochs={epochs}", "--json", "--quiet", *stream]
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"the fit failed ({done.returncode}): {done.stderr[-2000:]}")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    document = json.loads(done.stdout)
    return {
        "peak_rss_bytes": peak,
        "seconds": round(seconds, 1),
        "rows": document["rows"],
        "epochs": document["epochs"],
        "likelihood": document["likelihood"],
        "rmse": document["metrics"]["rmse"],
        "linear_rmse": document["linear"]["rmse"],
    }


def main() -> None:
    """Generates, trains, records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=None, help="where the file is generated")
    parser.add_argument("--stream", action="store_true", help="force it, for small files")
    parser.add_argument("--no-record", action="store_true")
    chosen = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    measured = commit()  # it takes minutes, in which others may commit
    with tempfile.TemporaryDirectory(dir=chosen.folder) as place:
        path = Path(place) / "table.csv"
        began = time.perf_counter()
        rows = generate(path, round(chosen.gigabytes * 10**9))
        print(
            f"{rows:,} rows, {path.stat().st_size / 1e9:.2f} GB of CSV, "
            f"generated in {time.perf_counter() - began:.0f} s",
            flush=True,
        )
        limit = ["--stream"] if chosen.stream else ["--memory-limit", "1GB"]
        result = {"csv_bytes": path.stat().st_size} | run(
            path, Path(place) / "model", chosen.epochs, limit
        )
    result["limit_bytes"], result["holds"] = LIMIT, result["peak_rss_bytes"] < LIMIT
    print(json.dumps(result, indent=2))
    if not chosen.no_record:
        print(
            write_record(
                "memory",
                command="python benchmarks/memory.py",
                seed=SEED,
                results=result,
                commit=measured,
            )
        )
    if not result["holds"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
