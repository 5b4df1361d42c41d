"""What a fit would do: the data read, the columns' roles, the law; nothing trained or written."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansatz.cli.document import print_document
from ansatz.cli.evidence import print_columns
from ansatz.cli.terminal import remark, say

if TYPE_CHECKING:
    from ansatz.cli.config import FitConfig

_READER = (
    *("delimiter", "header", "names", "comment", "missing", "decimal", "encoding"),
    *("image", "masks", "pages", "pieces", "size", "channels", "unlabelled", "on_corrupt"),
)
_USES = (
    *("target", "event", "entry", "lower", "upper", "trials"),
    *("weights", "offset", "exposure", "group", "time"),
)


def print_plan(chosen: "FitConfig", folder: Path, as_json: bool) -> None:
    r"""Prints what ``ansatz fit`` would do with these options.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from ansatz.cli.config import FitConfig
        >>> from ansatz.cli.plan import print_plan
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "a.csv"
        ...     _ = file.write_text("x,y\n1,0.5\n2,1.5\n3,2.1\n")
        ...     print_plan(FitConfig(data=str(file), target=["y"]), Path("a-model"), False)
        column  role     note
        x       numeric
        <BLANKLINE>
        3 rows, likelihood chosen among normal, ..., network mlp; would write a-model
    """
    from ansatz.fitting.fit import as_start
    from ansatz.fitting.posing import default_network

    weights, options = as_start(chosen.weights, chosen.options)
    chosen = chosen.model_copy(update={"weights": weights, "options": dict(options)})
    problem, rows = _pose(chosen)
    network = chosen.network or default_network(problem)
    _rehearse(chosen, problem, network)
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


def _rehearse(chosen: "FitConfig", problem: Any, network: str) -> None:
    """Raises what the fit would raise about outcomes, network and options before it trains."""
    from ansatz.fitting.kinds import make_estimator, split_options
    from ansatz.fitting.reading import read_job

    estimator = make_estimator(
        problem,
        network,
        inference=chosen.inference,
        options=split_options(chosen.likelihood, chosen.options)[0],
        random_state=chosen.seed,
        device=chosen.device,
    )
    estimator._rehearse(read_job(problem, estimator))


def _pose(chosen: "FitConfig") -> tuple[Any, int]:
    """The problem and its number of rows; of a table larger than memory, from one pass."""
    from ansatz import structures
    from ansatz.data.streams.available import reason_to_stream
    from ansatz.fitting.kinds import split_options
    from ansatz.fitting.posing import pose_as, structure_of
    from ansatz.fitting.uses import Uses

    options = chosen.model_dump(exclude_defaults=True)
    uses = Uses(**{use: options[use] for use in _USES if use in options})
    how: dict[str, Any] = {
        "likelihood": chosen.likelihood,
        "options": split_options(chosen.likelihood, chosen.options)[1],
        "roles": chosen.roles,
        "drop": chosen.drop,
        "reader": {name: options[name] for name in _READER if name in options},
    }
    x = structure_of(chosen.data, chosen.x, image=chosen.image)
    structures.registry.get(x)  # a wrong name suggests the nearest right one
    why = None
    if x == "vector":
        why = reason_to_stream(chosen.data, stream=chosen.stream, memory_limit=chosen.memory_limit)
    if why is None:
        problem = pose_as(x, chosen.data, uses, **how)
        return problem, len(problem.frame)
    from ansatz.data.streams.folder import stream_folder
    from ansatz.structures.vector.stream_problem import pose_stream

    with stream_folder() as folder:
        posed = pose_stream(chosen.data, uses, folder, seed=chosen.seed, **how)
    remark(f"note: {why}")
    return posed.problem, posed.rows
