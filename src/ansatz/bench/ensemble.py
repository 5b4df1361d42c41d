"""What ten members cost together, and in turn."""

from collections.abc import Callable
from typing import Any

from ansatz.bench.bar import Bar
from ansatz.bench.finding import Finding
from ansatz.bench.options import Options

MEMBERS = 10


def ensemble(options: Options) -> list[Finding]:
    """Ten members fitted together beside ten fits in turn, both by the default recipe's own terms.

    A fit in turn is one network of the ensemble's size with its budget of steps and its share of
    held-out rows. Both stop by patience, so the time per step and network is compared.

    Example:
        >>> from ansatz.bench.ensemble import MEMBERS
        >>> MEMBERS
        10
    """
    from ansatz.bench.race import Race, Time, race
    from ansatz.bench.task import tiny
    from ansatz.estimators import Regressor

    task, steps = tiny(options.seed), {}

    def fit(inference: str) -> Callable[[], Any]:
        def run() -> None:
            model = Regressor("normal", inference=inference, n_jobs=1, device="cpu")  # type: ignore[arg-type]
            model.fit(task.x, task.y)
            steps[inference] = model.history_.steps

        return run

    runs = {"together": fit("ensemble"), "in turn": fit("point")}
    found = race(runs, rounds=options.rounds or 3, seed=options.seed, tell=options.tell)
    share = {"together": steps["ensemble"], "in turn": steps["point"] / MEMBERS}
    each = {
        who: [Time(t.processor / share[who], t.wall / share[who]) for t in times]
        for who, times in found.times.items()
    }
    finding = Finding.of("ensemble", Race(each), {"in turn": Bar(at_most=0.4)}, us="together")
    finding.unit = "seconds of processor time per step of ten members"
    finding.facts |= {"steps": steps, "members": MEMBERS}
    return [finding]
