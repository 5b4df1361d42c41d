"""What ten members cost together, and in turn."""

from ansatz.bench.bar import Bar
from ansatz.bench.finding import Finding
from ansatz.bench.options import Options

MEMBERS = 10


def ensemble(options: Options) -> list[Finding]:
    """An ensemble of ten beside ten single fits in turn, whole fits with everything they do.

    Both sides take the default recipe and stop by patience on held-out rows.

    Example:
        >>> from ansatz.bench.ensemble import MEMBERS
        >>> MEMBERS
        10
    """
    from ansatz.bench.race import race
    from ansatz.bench.task import tiny
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
    found = race(runs, rounds=options.rounds or 3, seed=options.seed, tell=options.tell)
    facts = {"steps": steps, "members": MEMBERS}
    limit = {"in turn": Bar(at_most=0.4)}
    return [Finding.of("ensemble", found, limit, us="together", facts=facts)]
