"""What a fit would do: the data read, the columns' roles, the law; nothing trained or written."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansatz.cli.document import print_document
from ansatz.cli.evidence import print_columns
from ansatz.cli.terminal import remark, say

if TYPE_CHECKING:
    from ansatz.fitting import Request


def print_plan(request: "Request", folder: Path, as_json: bool) -> None:
    r"""Prints what ``ansatz fit`` would do with these options."""
    from ansatz.fitting.first_steps import reading, task_of, with_structure
    from ansatz.fitting.reading import read_job

    asked = with_structure(request)
    with reading(asked) as problem:
        task = task_of(asked, problem)
        task.rehearse(read_job(problem, task))  # raises what the fit would before training
    plan: dict[str, Any] = {
        "rows": problem.size,
        "likelihood": problem.likelihood if len(problem.laws) == 1 else None,
        "candidates": problem.laws,
        "network": str(task.settings.network),
        "columns": [{"name": c.name, "role": c.role} for c in problem.columns],
        "out": folder,
    }
    why = [] if problem.on_disk is None else [problem.on_disk.why]
    for note in (*why, *problem.notes):
        remark(f"note: {note}")
    if as_json:
        print_document(plan)
        return
    if problem.columns:
        print_columns(problem.columns)
        say()
    law = f"likelihood {problem.likelihood}"
    if len(problem.laws) > 1:
        law = f"likelihood chosen among {', '.join(problem.laws)}"
    spec = problem.rows.spec
    what = f"{problem.size} rows"
    if spec is not None:
        shape = " x ".join(map(str, (spec.features, *spec.size)))
        what = f"{problem.size} examples of {shape} numbers"
    say(f"{what}, {law}, network {plan['network']}; would write {folder}")
