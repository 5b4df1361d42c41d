"""Runs commands on damaged files of every format and counts what became of them.

    python benchmarks/fuzz.py --record               # 12,000 inputs, 15 minutes on two free cores
    python benchmarks/fuzz.py --inputs 500 --only tiff --only model --seed 1
    python benchmarks/fuzz.py --show model:17        # one input again, with all its lines

Each input is a whole file, model or checkpoint with a few seeded edits. A forked process runs one
command on it, with limits on time and memory; all that it writes is watched. The outcomes:

    accepted       exit status 0: the damage did no harm, or could not be noticed
    refused        exit status 2 to 7 and one line that names the file
    unexpected     "unexpected error"
    escaped        a traceback
    hang           more than 30 seconds of the processor, or 300 by the clock
    crash          ended by a signal
    memory         no memory left
    stray          lines on standard error that are not ours, as codecs print
    outside        a change outside of the working folder, a connection, another process
    unnamed        refused in a line that does not name the file
    several lines  refused in more than one line, or in none

With --record, results/fuzz.json gets the counts of the formats that were run. Exit status 1 if any
outcome but the first two occurred.
"""

import argparse
import gc
import importlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from fuzz_cases import FORMATS, Input
from fuzz_child import BAD, OUTCOMES, Result, Row, run_forked, run_here
from fuzz_corpus import write_corpus

INPUTS = 12_000


class Job(NamedTuple):
    """An input by its format and number."""

    form: str
    number: int


def jobs(inputs: int, only: Sequence[str] = ()) -> list[Job]:
    """Shares a number of inputs among the formats, at least one each."""
    shares = {name: maker.share for name, maker in FORMATS.items() if not only or name in only}
    whole = sum(shares.values())
    counts = {name: max(1, round(inputs * share / whole)) for name, share in shares.items()}
    return [Job(name, number) for name, count in counts.items() for number in range(count)]


def prepare(folder: Path) -> Path:
    """Writes the corpus and imports, in this process, all that the commands import."""
    corpus = folder / "corpus"
    corpus.mkdir(parents=True)
    os.environ["MPLCONFIGDIR"] = str(folder)  # where matplotlib keeps its list of fonts
    _in_child(lambda: _write(corpus))
    modules = folder / "modules.json"
    _in_child(lambda: _warm(corpus, modules))
    for name in json.loads(modules.read_text()):
        try:
            importlib.import_module(name)
        except Exception:  # a part that only its own package can import
            continue
    import torch

    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # a collection in a child would copy all that it shares with this process
    return corpus


def _in_child(function: Any) -> None:
    """This process stays without threads, so that it can be forked."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            function()
            status = 0
        finally:
            os._exit(status)
    if os.waitpid(child, 0)[1] != 0:
        raise RuntimeError("the corpus could not be made")


def _write(corpus: Path) -> None:
    from ansatz.cli.main import run

    write_corpus(corpus, run)


def _warm(corpus: Path, modules: Path) -> None:
    from ansatz.cli.main import run

    os.chdir(corpus.parent)
    for words in (
        *(["predict", f"{corpus}/number-model", f"{corpus}/table.{end}"] for end in _TABLES),
        ["evaluate", f"{corpus}/ensemble-model", f"{corpus}/table.csv"],
        ["predict", f"{corpus}/images-model", f"{corpus}/images"],
        ["predict", f"{corpus}/images-model", f"{corpus}/lzw.tif"],
        ["inspect", f"{corpus}/linear-model"],
        ["export", f"{corpus}/number-model", "warm.onnx"],
        ["fit", f"{corpus}/table.csv", "--target", "y", "--dry-run", "--stream"],
        ["fit", f"{corpus}/table.csv", "--target", "y", "--network", "linear", "--out", "warm"],
        ["report", "warm", "--out", "warm.html", "--quiet"],
        ["evaluate", f"{corpus}/survival-model", f"{corpus}/table.csv"],
    ):
        run(words)
    modules.write_text(json.dumps([name for name in sys.modules if name != "__main__"]))


_TABLES = ("csv", "csv.gz", "parquet", "feather", "npz", "xlsx", "dta", "rds")


def run_job(job: Job, corpus: Path, folder: Path, seed: int) -> Row:
    """Makes an input, runs its command, and removes what both left."""
    work = Path(tempfile.mkdtemp(dir=folder))
    before = _content(corpus)
    try:
        made = _make(job, corpus, work, seed)
        result = run_here(made.arguments, work, made.names)
        if _content(corpus) != before:
            result = result._replace(outcome="outside")
    finally:
        shutil.rmtree(work)
        shutil.rmtree(f"{work}.log", ignore_errors=True)
    command = " ".join(made.arguments).replace(f"{corpus}/", "")
    return {**job._asdict(), **result._asdict(), "command": command}


def _make(job: Job, corpus: Path, work: Path, seed: int) -> Input:
    random = Random(f"{seed} {job.form} {job.number}")
    return FORMATS[job.form].make(corpus, work, random)


def _content(folder: Path) -> list[tuple[str, int, int]]:
    found = []
    for place, _, names in os.walk(folder):
        for name in names:
            seen = os.lstat(os.path.join(place, name))
            found.append((os.path.join(place, name), seen.st_size, seen.st_mtime_ns))
    return found


def run_all(
    todo: Sequence[Job], corpus: Path, folder: Path, seed: int, processes: int
) -> list[Row]:
    """The rows of all inputs; several processes share them."""
    if processes == 1:
        return _run_part(todo, corpus, folder, seed)
    children = []
    for part in range(processes):
        path, child = folder / f"rows-{part}.json", os.fork()
        if child == 0:
            try:
                rows = _run_part(todo[part::processes], corpus, folder, seed)
                path.write_text(json.dumps(rows))
                os._exit(0)
            finally:
                os._exit(1)
        children.append((child, path))
    found: list[Row] = []
    for child, path in children:
        if os.waitpid(child, 0)[1] != 0:
            raise RuntimeError("a worker failed; its rows are lost")
        found += json.loads(path.read_text())
    return found


def _run_part(todo: Sequence[Job], corpus: Path, folder: Path, seed: int) -> list[Row]:
    def one(number: int) -> Row:
        row = run_job(todo[number], corpus, folder, seed)
        _print(row)
        return row

    def lost(number: int, outcome: str) -> Row:
        job, result = todo[number], Result(outcome, -1, (), 0, 0.0)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            made = _make(job, corpus, Path(work), seed)
        command = " ".join(made.arguments).replace(f"{corpus}/", "")
        row = {**job._asdict(), **result._asdict(), "command": command}
        _print(row)
        return row

    return run_forked(len(todo), one, lost)


def _print(row: Row) -> None:
    if row["outcome"] in BAD:
        said = "\n    ".join(row["lines"][-4:])
        place = f"{row['form']}:{row['number']}"
        print(f"{place} {row['outcome']}: ansatz {row['command']}\n    {said}", flush=True)


def summarize(rows: Sequence[Row]) -> dict[str, Any]:
    """Counts outcomes and exit statuses per format."""
    found: dict[str, Any] = {}
    for form in FORMATS:
        own = [row for row in rows if row["form"] == form]
        if not own:
            continue
        outcomes = Counter(row["outcome"] for row in own)
        statuses = Counter(row["status"] for row in own)
        found[form] = {
            "inputs": len(own),
            **{name: outcomes[name] for name in OUTCOMES},
            "statuses": {str(status): statuses[status] for status in sorted(statuses)},
            "longest_seconds": round(max(row["seconds"] for row in own), 2),
            "most_megabytes": max(row["megabytes"] for row in own),
        }
    return found


def main() -> int:
    """Runs the inputs that were asked for; a whole run is recorded."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--inputs", type=int, default=INPUTS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", default=[], choices=list(FORMATS))
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--record", action="store_true", help="write results/fuzz.json")
    parser.add_argument("--show", metavar="FORMAT:NUMBER", help="run one input, print its lines")
    given = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = prepare(folder)
        if given.show:
            form, _, number = given.show.partition(":")
            row = run_job(Job(form, int(number)), corpus, folder, given.seed)
            print(*row["lines"], *(f"{key}: {value}" for key, value in row.items()), sep="\n")
            return 0
        todo = jobs(given.inputs, given.only)
        rows: list[Row] = []
        for form in FORMATS:  # recorded one by one: a run that is stopped loses little
            own = [job for job in todo if job.form == form]
            if own:
                rows += run_all(own, corpus, folder, given.seed, given.processes)
                results = summarize(rows[-len(own) :])
                shown = {key: value for key, value in results[form].items() if value}
                print(f"{form:18s} {json.dumps(shown)}", flush=True)
                if given.record:
                    _record(results, given.seed)
    total = Counter(row["outcome"] for row in rows)
    print(len(rows), dict(total), f"{time.perf_counter() - began:.0f} s")
    return 1 if any(total[name] for name in BAD) else 0


def _record(results: dict[str, Any], seed: int) -> None:
    """Writes the counts; formats that were not asked for stay as they were."""
    from ansatz.bench.record import RESULTS, commit, write_record
    from ansatz.storage import read_json

    path = RESULTS / "fuzz.json"
    kept = read_json(path)["results"] if path.exists() else {}
    kept.pop("all", None)
    now = {form: {**counts, "commit": commit()} for form, counts in results.items()}
    every = {form: {**kept, **now}[form] for form in FORMATS if form in {**kept, **now}}
    names = ("inputs", *OUTCOMES)
    totals = {name: sum(counts[name] for counts in every.values()) for name in names}
    write_record(
        "fuzz",
        command="python benchmarks/fuzz.py --record",
        seed=seed,
        results={"all": totals, **every},
    )


if __name__ == "__main__":
    sys.exit(main())
