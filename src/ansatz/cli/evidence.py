"""What a fit tells its user: columns, recipe, and the test beside simpler models."""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ansatz.cli.terminal import number, print_table, print_note, print_line

_FIRST = ("nll", "crps", "rmse", "mae", "r2", "accuracy", "brier", "ece", "auc")


def print_fit(fit: Any) -> None:
    """Prints an ``ansatz.Fit``: results on stdout, notes on stderr."""
    if fit.columns:
        print_columns(fit.columns)
    for note in fit.notes:
        print_note(f"note: {note}")
    if fit.candidates:
        print_line()
        print_candidates(fit.candidates)
    parts = ("train", "valid", "test")
    rows = ", ".join(f"{fit.rows[part]} {part}" for part in parts if fit.rows.get(part))
    print_line()
    print_line(
        f"{fit.likelihood} likelihood, {fit.network} with {fit.parameters} parameters, {rows}"
    )
    for key, value in fit.recipe.items():
        print_line(f"  {key}: {value}")
    trained = f"trained {fit.epochs} epochs" if fit.epochs else "fitted"
    print_line(f"{trained} in {number(float(fit.seconds))} s, seed {fit.seed}")
    if fit.log_likelihood is not None:
        print_line(f"log-likelihood {fit.log_likelihood:.3f} on the rows learned from")
    if any(value is not None for value in (fit.metrics or {}).values()):
        print_line()
        print_metrics({"model": fit.metrics, "linear": fit.linear, "constant": fit.constant})
    if fit.network == "linear":
        for line in f"\n{fit.summary()}".splitlines():
            print_line(line)
    if fit.folder is None:
        return
    folder = shlex.quote(str(fit.folder))
    print_line()
    print_line(f"model: {folder}")
    source = "" if fit.provenance is None else str(fit.provenance.source.path or "")
    new = fit.fitted.structure.new_data(fit.fitted, source)
    bounds = " --interval 0.9" * fit.fitted.outcome.has_interval(fit.fitted.likelihood)
    print_line(f"next:  ansatz predict {folder} {new}{bounds}")
    print_line(f"       ansatz inspect {folder}")


def print_candidates(candidates: Sequence[Mapping[str, Any]]) -> None:
    """Prints how the likelihoods compare, best first."""
    rows = [
        [
            row["likelihood"],
            number(float(row["score"])),
            number(float(row["worse"])) if row["worse"] > 0 else "",
            number(float(row["error"])) if row["worse"] > 0 else "",
        ]
        for row in sorted(candidates, key=lambda row: row["worse"])
    ]
    header = ["likelihood", "out-of-fold log score", "worse by", "+-"]
    print_table(header, rows, numbers=range(1, 4))


def print_columns(columns: Sequence[Any]) -> None:
    """Prints what each column was taken for; a wide table is summed up by role."""
    from ansatz.data import describe_columns

    shown = columns[:40]
    print_table(["column", "role", "note"], describe_columns(shown))
    if len(columns) > len(shown):
        counts = Counter(str(column.role) for column in columns[len(shown) :])
        more = ", ".join(f"{count} {role}" for role, count in counts.items())
        print_line(f"and {len(columns) - len(shown)} more columns: {more}")


def print_metrics(models: Mapping[str, Mapping[str, Any] | None]) -> None:
    """Prints one row per metric and one column per model; undefined is a dash."""
    shown = {name: metrics for name, metrics in models.items() if metrics}
    keys = dict.fromkeys([*_FIRST, *(key for metrics in shown.values() for key in metrics)])
    rows = [
        [key, *(number(metrics.get(key)) for metrics in shown.values())]
        for key in keys
        if any(metrics.get(key) is not None for metrics in shown.values())
    ]
    if rows:
        print_table(["metric", *shown], rows, numbers=range(1, len(shown) + 1))
