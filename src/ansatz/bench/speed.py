"""How fast a fit is beside what a user would pick instead."""

from collections.abc import Callable, Mapping
from typing import Any

from ansatz.bench.bar import Bar
from ansatz.bench.finding import Finding
from ansatz.bench.options import Options
from ansatz.bench.task import Array, Task

LARGE = {  # MLP 784-256-128-10, batch 128, 20,000 rows
    "skorch": Bar(at_least=2.0),
    "lightning": Bar(at_least=1.7),
    "keras": Bar(at_least=2.0),
    "scikit-learn": Bar(at_least=1.5),
    "hand loop": Bar(at_least=1.0),
    "matrix products": Bar(at_most=2.0),
}
TINY = {  # 1,000 x 20, 64-64, batch 32
    "skorch": Bar(at_least=6.0),
    "scikit-learn": Bar(at_least=2.0),
}


def speed_large(options: Options) -> list[Finding]:
    """A classifier 784-256-128-10 on 20,000 rows, batches of 128.

    Example:
        >>> from ansatz.bench.speed import LARGE
        >>> str(LARGE["skorch"])
        '>= 2'
    """
    from ansatz.bench.task import large

    task = large(options.seed)
    return [_evaluate("speed-large", task, LARGE, options, rounds=7)]


def speed_tiny(options: Options) -> list[Finding]:
    """A regression 20-64-64-1 on 1,000 rows, batches of 32.

    Example:
        >>> from ansatz.bench.speed import TINY
        >>> str(TINY["skorch"])
        '>= 6'
    """
    from ansatz.bench.task import tiny

    task = tiny(options.seed)
    return [_evaluate("speed-tiny", task, TINY, options, rounds=15)]


def ours(task: Task) -> Callable[[Array], Array]:
    """The public estimator with the task's network; nothing else is set but what peers do without.

    The recipe stays the default one, with what it costs: standardised columns, checked outcomes,
    clipped gradients, a schedule of the rate, averaged weights. Peers hold out no rows and drop no
    units, and so do we.

    Example:
        >>> from ansatz.bench.speed import ours
        >>> from ansatz.bench.task import tiny
        >>> task = tiny(epochs=5)
        >>> task.score(ours(task)(task.x)) > 0.5
        True
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
    name: str, task: Task, limit: Mapping[str, Bar], options: Options, *, rounds: int
) -> Finding:
    from ansatz.bench.hand_loop import matrix_products
    from ansatz.bench.peers import PEERS, installed
    from ansatz.bench.race import race

    missing = [peer for peer in PEERS if not installed(peer)]
    runs: dict[str, Callable[[], Any]] = {"ours": lambda: ours(task)}
    for peer, (_, train) in PEERS.items():
        if peer not in missing:
            runs[peer] = lambda train=train: train(task)  # type: ignore[misc]
    runs["matrix products"] = lambda: matrix_products(task)
    found = race(runs, rounds=options.rounds or rounds, seed=options.seed, tell=options.tell)
    # That everyone learned the same thing shows that everyone did the work.
    scores = {who: round(task.score(p(task.x)), 4) for who, p in found.results.items() if p}
    facts = {"rows": task.source, "steps": task.steps, "training score": scores}
    return Finding.of(name, found, dict(limit), missing=missing, facts=facts)
