"""Compares the speed of two commits: `ansatz bench` of each, in turns on one machine.

    python benchmarks/before_after.py COMMIT [SUITE ...] [--turns N]

Each suite measures its own peers in the same process, so the ratio to a peer is comparable between
turns even where the machine's speed drifts. Writes benchmarks/results/before-after.json, where
suites that were not run keep their earlier results.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ansatz.bench.record import RESULTS, commit, write_record

HERE = Path(__file__).resolve().parent
SUITES = ["speed-tiny", "speed-large", "ensemble", "start"]
MAIN = "from ansatz.cli.main import main; main()"


def ratios(source: Path, suite: str) -> dict[str, float]:
    """The ratios of one run of a suite, by the name of the case and the peer."""
    words = [sys.executable, "-c", MAIN, "bench", suite, "--json"]
    environment = {**os.environ, "PYTHONPATH": str(source.resolve())}
    # Exit status 1 is a bar that was not met, which this comparison does not ask for.
    run = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True)
    found: list[dict[str, Any]] = json.loads(run.stdout)
    return {
        f"{case['name']}: {peer}": ratio
        for case in found
        for peer, ratio in case["ratio"].items()
        if ratio is not None
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("commit", help="the commit to compare this checkout with")
    parser.add_argument("suites", nargs="*", default=SUITES)
    parser.add_argument("--turns", type=int, default=2, help="how often each commit is measured")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", HERE, "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", tree, given.commit], check=True)
        try:
            sides = {given.commit: tree / "src", commit(): HERE.parent / "src"}
            turns: dict[str, dict[str, list[float]]] = {}
            for suite in [suite for suite in given.suites for _ in range(given.turns)]:
                for name, source in sides.items():
                    for what, ratio in ratios(source, suite).items():
                        turns.setdefault(what, {}).setdefault(name, []).append(ratio)
        finally:
            subprocess.run([*git, "remove", "--force", tree], check=True)
    results = {
        what: {
            name: {"median": statistics.median(seen), "turns": seen} for name, seen in by.items()
        }
        for what, by in turns.items()
    }
    for what, by in results.items():
        print(what, *(f"{name} {found['median']:.3g}" for name, found in by.items()), sep="  ")
    words = " ".join(["python benchmarks/before_after.py", given.commit, *given.suites])
    path = RESULTS / "before-after.json"
    earlier = json.loads(path.read_text())["results"] if path.exists() else {}
    write_record("before-after", command=words, seed=0, results={**earlier, **results})


if __name__ == "__main__":
    main()
