"""Measures the speed and memory of fits and of the command beside the peers."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ansatz.bench.finding import BenchOptions, Bound, Finding
from ansatz.bench.mlp_task import Array, BenchTask
from ansatz.bench.race import Time
from ansatz.errors import ResourceError

LARGE = {  # MLP 784-256-128-10, batch 128, 20,000 rows
    "skorch": Bound(at_least=2.0),
    "lightning": Bound(at_least=1.7),
    "keras": Bound(at_least=2.0),
    "scikit-learn": Bound(at_least=1.5),
    "hand loop": Bound(at_least=1.0),
    "matrix products": Bound(at_most=2.0),
}
TINY = {  # 1,000 x 20, 64-64, batch 32
    "skorch": Bound(at_least=6.0),
    "scikit-learn": Bound(at_least=2.0),
}


def speed_large(options: BenchOptions) -> list[Finding]:
    """Measures a classifier 784-256-128-10 on 20,000 rows, batches of 128."""
    from ansatz.bench.mlp_task import large

    task = large(options.seed)
    return [_evaluate("speed-large", task, LARGE, options, rounds=7)]


def speed_tiny(options: BenchOptions) -> list[Finding]:
    """Measures a regression 20-64-64-1 on 1,000 rows, batches of 32."""
    from ansatz.bench.mlp_task import tiny

    task = tiny(options.seed)
    return [_evaluate("speed-tiny", task, TINY, options, rounds=15)]


def ours(task: BenchTask) -> Callable[[Array], Array]:
    """Trains the public estimator with the task's network and otherwise the default recipe.

    That includes standardised columns, checked outcomes, clipped gradients, a schedule and averaged
    weights. Like the peers it has no validation rows and no dropout.
    """
    from ansatz.estimators import Classifier, Regressor

    settings: dict[str, Any] = {
        "widths": task.widths,
        "activation": "relu",
        "dropout": 0.0,
        "epochs": task.epochs,
        "batch_size": task.batch,
        "learning_rate": task.rate,
        "holdout": 0.0,
        "n_jobs": 1,
        "device": "cpu",
    }
    model = Classifier(**settings) if task.classes else Regressor("mse", **settings)
    model.fit(task.x, task.y)
    predict: Callable[[Array], Array] = model.predict
    return predict


def _evaluate(
    name: str, task: BenchTask, limit: Mapping[str, Bound], options: BenchOptions, *, rounds: int
) -> Finding:
    from ansatz.bench.mlp_task import matrix_products
    from ansatz.bench.peers import PEERS, installed
    from ansatz.bench.race import race

    missing = [peer for peer in PEERS if not installed(peer)]
    runs: dict[str, Callable[[], Any]] = {"ours": lambda: ours(task)}
    for peer, (_, train) in PEERS.items():
        if peer not in missing:
            runs[peer] = lambda train=train: train(task)  # type: ignore[misc]
    runs["matrix products"] = lambda: matrix_products(task)
    found = race(runs, rounds=options.rounds or rounds, seed=options.seed, notify=options.notify)
    # Equal training scores show that all did the same work.
    scores = {who: round(task.score(p(task.x)), 4) for who, p in found.results.items() if p}
    facts = {"rows": task.source, "steps": task.steps, "training score": scores}
    return Finding.of(name, found, dict(limit), missing=missing, facts=facts)


def memory(options: BenchOptions) -> list[Finding]:
    """Measures the peak memory of a fit to a 2 GB CSV, at most 1 GB.

    The script ``benchmarks/memory.py`` of the source tree generates the file and measures.
    """
    path = script()
    limit = {"ours": Bound(at_most=1.0)}
    if not path.exists():
        return [Finding("memory", "GiB", missing=[f"{path.name} of the source tree"])]
    options.notify("generating 2 GB of CSV and fitting it; this takes minutes")
    command = [sys.executable, str(path), "--no-record"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    text = done.stdout[done.stdout.find("{") :]
    if not text:
        raise ResourceError(f"{path.name} failed: {done.stderr.strip()[-300:] or done.stdout}")
    result = json.loads(text)
    return [Finding("memory", "GiB", result["peak_rss_bytes"] / 2**30, limit=limit, facts=result)]


def script() -> Path:
    """Returns the path of the script in the source tree."""
    return Path(__file__).parents[3] / "benchmarks" / "memory.py"


# A minimal typer command with a help page of the same kind.
EMPTY = """
import typer
app = typer.Typer(rich_markup_mode="rich")

@app.command()
def hello(name: str = "you") -> None:
    '''Say hello.'''

app()
"""
OURS = "from ansatz.cli.main import main; main()"


def start(options: BenchOptions) -> list[Finding]:
    """Measures ``ansatz --help`` beside an empty typer application, each a new process."""
    from ansatz.bench.race import race

    runs: dict[str, Callable[[], Any]] = {
        "ours": partial(_help, OURS),
        "empty typer application": partial(_help, EMPTY),
    }
    rounds = options.rounds or 15
    found = race(
        runs, rounds=rounds, seed=options.seed, measure=measured_child, notify=options.notify
    )
    limit = {"empty typer application": Bound(at_most=1.4)}
    return [Finding.of("start", found, limit)]


def measured_child(run: Callable[[], Any]) -> Time:
    """Times the processes that ``run`` starts; without process times by the wall clock."""
    used, began = _child_seconds(), time.perf_counter()
    run()
    wall = time.perf_counter() - began
    after = _child_seconds()
    return Time(wall if used is None or after is None else after - used, wall)


def _child_seconds() -> float | None:
    try:
        import resource
    except ImportError:
        return None
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _help(code: str) -> None:
    subprocess.run([sys.executable, "-c", code, "--help"], check=True, stdout=subprocess.DEVNULL)


MEMBERS = 10


def ensemble(options: BenchOptions) -> list[Finding]:
    """Measures an ensemble of ten beside ten single fits in turn.

    Both use the default recipe and stop early on validation rows.
    """
    from ansatz.bench.mlp_task import tiny
    from ansatz.bench.race import race
    from ansatz.estimators import Regressor

    task = tiny(options.seed)
    steps: dict[str, list[int]] = {}

    def together() -> None:
        model = Regressor("normal", inference="ensemble", n_jobs=1, device="cpu")
        steps["together"] = [model.fit(task.x, task.y).history_.steps]

    def in_turn() -> None:
        members = [
            Regressor("normal", n_jobs=1, device="cpu", random_state=seed).fit(task.x, task.y)
            for seed in range(MEMBERS)
        ]
        steps["in turn"] = [member.history_.steps for member in members]

    runs = {"together": together, "in turn": in_turn}
    found = race(runs, rounds=options.rounds or 3, seed=options.seed, notify=options.notify)
    facts = {"steps": steps, "members": MEMBERS}
    limit = {"in turn": Bound(at_most=0.4)}
    return [Finding.of("ensemble", found, limit, us="together", facts=facts)]
