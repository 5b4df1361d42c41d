"""The numbers of some sixty small fits, to compare two commits of the library bit for bit.

    python benchmarks/golden.py --write now.json           # all cases with the ansatz on the path
    python benchmarks/golden.py --write old.json --source ../old/src
    python benchmarks/golden.py --compare old.json now.json
    python benchmarks/golden.py --against COMMIT           # all of it, in a worktree of its own
    python benchmarks/golden.py --record                   # writes benchmarks/results/golden.json

The cases (golden_cases.py) use the commands and the public names alone. Two runs on one machine
agree in every bit of weights, predictions and metrics; between processors the last bits differ,
so tests/test_golden.py compares the numbers of benchmarks/results/golden.json to 1e-6.
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from golden_cases import CASES

import ansatz
from ansatz.bench.record import commit

HERE = Path(__file__).resolve().parent
COMMAND = "python benchmarks/golden.py --record"


def run_case(name: str) -> dict[str, Any]:
    """The record of one case, fitted in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory() as folder, plain_surroundings():
        found: dict[str, Any] = CASES[name](Path(folder))
    return found


@contextlib.contextmanager
def plain_surroundings() -> Iterator[None]:
    """One thread, torch's own default type and seed, and no warnings; as before afterwards."""
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float32)
    torch.default_generator.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_num_threads(threads)


def run_all(names: Sequence[str]) -> dict[str, Any]:
    """The records of the cases, one after the other; seconds go to standard error."""
    print(f"ansatz of {Path(ansatz.__file__).parent}", file=sys.stderr)
    found = {}
    for name in names:
        began = time.process_time()
        found[name] = run_case(name)
        print(f"{time.process_time() - began:6.1f} s  {name}", file=sys.stderr, flush=True)
    return found


def differences(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """A line for everything that is not the same; words of a recipe may change, numbers not."""
    for case in sorted(old.keys() | new.keys()):
        if case not in old or case not in new:
            yield f"{case}: only in {'A' if case in old else 'B'}"
            continue
        a, b = flat(old[case]), flat(new[case])
        for name in sorted(a.keys() | b.keys()):
            if repr(a.get(name, "absent")) != repr(b.get(name, "absent")):
                yield f"{case}: {name}: {a.get(name, 'absent')!r} {b.get(name, 'absent')!r}"


def flat(case: dict[str, Any]) -> dict[str, Any]:
    """Everything that a case pins, by name."""
    return {
        "weights": case["weights"],
        "likelihood": case["likelihood"],
        "numbers of the recipe": re.findall(r"\d[\d.e-]*", case["recipe"]),
        **{f"rows.{name}": count for name, count in case["rows"].items()},
        **case["numbers"],
    }


def compare(first: Path, second: Path) -> int:
    """Prints the differences of two records; 1 where there are any."""
    old, new = (json.loads(path.read_text(encoding="utf-8"))["results"] for path in (first, second))
    found = list(differences(old, new))
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(old.keys() & new.keys())} cases, {len(found)} differences", file=sys.stderr)
    return int(bool(found))


def run_with(source: Path, path: Path, names: Sequence[str]) -> None:
    """Writes the record of the cases with the library in ``source``, in another process."""
    if not (source / "ansatz").is_dir():
        raise SystemExit(f"{source}: no folder 'ansatz' in it; --source wants a checkout's src.")
    words = [sys.executable, __file__, "--write", path, "--only", *names]
    subprocess.run(words, check=True, env={**os.environ, "PYTHONPATH": str(source.resolve())})


def against(reference: str, names: Sequence[str]) -> int:
    """Runs the cases of this file with the library of a commit and with this checkout's."""
    with tempfile.TemporaryDirectory() as folder:
        tree, old, new = (Path(folder) / name for name in ("tree", "old.json", "new.json"))
        git = ["git", "-C", HERE, "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", tree, reference], check=True)
        try:
            run_with(tree / "src", old, names)
        finally:
            subprocess.run([*git, "remove", "--force", tree], check=True)
        run_with(HERE.parent / "src", new, names)
        return compare(old, new)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", type=Path, metavar="FILE", help="run the cases, write FILE")
    parser.add_argument(
        "--record", action="store_true", help="write benchmarks/results/golden.json"
    )
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("A", "B"), help="two such files")
    parser.add_argument("--against", metavar="COMMIT", help="compare this checkout with a commit")
    parser.add_argument("--source", type=Path, metavar="DIR", help="src of another checkout")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=CASES, default=list(CASES))
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    given = parser.parse_args()
    if given.list:
        for name, case in CASES.items():
            print(f"{name:32}{(case.__doc__ or '').splitlines()[0]}")
    elif given.compare:
        return compare(*given.compare)
    elif given.against:
        return against(given.against, given.only)
    elif given.source and given.write:
        run_with(given.source, given.write, given.only)
    elif given.record:
        from ansatz.bench.record import write_record  # not in every commit that --against names

        print(write_record("golden", command=COMMAND, seed=0, results=run_all(given.only)))
    elif given.write:
        document = {"commit": commit(), "torch": torch.__version__, "results": run_all(given.only)}
        given.write.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    else:
        parser.error("one of --write, --record, --compare, --against, --list")
    return 0


if __name__ == "__main__":
    sys.exit(main())
