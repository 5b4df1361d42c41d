"""What a fit would do: the data read, the columns' roles, the law; nothing trained or written."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansatz.cli.document import print_document
from ansatz.cli.evidence import print_columns
from ansatz.cli.terminal import remark, say

if TYPE_CHECKING:
    from ansatz.fitting import Request
    from ansatz.fitting.problem import Problem


def print_plan(request: "Request", folder: Path, as_json: bool) -> None:
    r"""Prints what ``ansatz fit`` would do with these options.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from ansatz.cli.plan import print_plan
        >>> from ansatz.fitting import Request
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "a.csv"
        ...     _ = file.write_text("x,y\n1,0.5\n2,1.5\n3,2.1\n")
        ...     print_plan(Request.of(str(file), {"target": "y"}), Path("a-model"), False)
        column  role     note
        x       numeric
        <BLANKLINE>
        3 rows, likelihood chosen among normal, ..., network mlp; would write a-model
    """
    problem, rows, network = _pose(request)
    plan: dict[str, Any] = {
        "rows": rows,
        "likelihood": problem.likelihood if len(problem.laws) == 1 else None,
        "candidates": problem.laws,
        "network": network,
        "columns": [{"name": c.name, "role": c.role} for c in problem.columns],
        "out": folder,
    }
    for note in problem.notes:
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
    what = f"{rows} rows"
    if problem.is_grid:
        what = f"{rows} examples of {' x '.join(map(str, problem.features.shape))} numbers"
    say(f"{what}, {law}, network {plan['network']}; would write {folder}")


def _pose(asked: "Request") -> tuple["Problem", int, str]:
    """The problem, its number of rows and the network; raises what the fit would before training.

    Of a table larger than memory, all that comes from one pass.
    """
    from ansatz.data.streams.folder import stream_folder
    from ansatz.fitting.first_steps import (
        estimator_for,
        pose_request,
        pose_streamed,
        why_a_stream,
        with_structure,
    )
    from ansatz.fitting.reading import read_job

    request = with_structure(asked)
    why = why_a_stream(request)
    if why is None:
        problem = pose_request(request)
        rows = len(problem.frame)
    else:
        with stream_folder() as folder:
            posed = pose_streamed(request, folder)
        problem, rows = posed.problem, posed.rows
        remark(f"note: {why}")
    estimator = estimator_for(request, problem)
    estimator._rehearse(read_job(problem, estimator))
    return problem, rows, str(estimator.network)
