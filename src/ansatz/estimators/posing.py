"""A problem of the structure that x has, and the network that suits it."""

from typing import Any

from ansatz.errors import UsageError
from ansatz.estimators.grid_problem import pose_grids
from ansatz.estimators.problem import Problem, pose
from ansatz.estimators.uses import Uses
from ansatz.structures import Grid, Vector


def pose_as(x: str, data: Any, uses: Uses, **how: Any) -> Problem:
    """Reads data of a structure and decides what is predicted.

    Args:
        x: the structure: ``"vector"`` or ``"grid"``.
        data: a table, or grids.
        uses: what columns are for.
        how: options of :func:`~ansatz.estimators.problem.pose`.

    Example:
        >>> from ansatz.estimators.posing import pose_as
        >>> from ansatz.estimators.uses import Uses
        >>> pose_as("vector", {"a": [1.0, 2.0], "y": [0.5, 1.5]}, Uses(target=["y"])).has_features
        True
    """
    if x == "vector":
        return pose(data, uses, **how)
    roles = how.pop("roles", None)
    if roles:
        raise UsageError(f"--role {next(iter(roles))}: columns beside grids are no features.")
    reader = dict(how.pop("reader", None) or {})
    if _is_a_table(data, reader):
        reader |= {"signals": True, "target": _special(uses)}
    return pose_grids(data, uses, reader=reader, **how)


def default_network(problem: Problem) -> str:
    """The network of a problem when nobody says.

    Example:
        >>> from ansatz.estimators.posing import default_network
        >>> from ansatz.estimators.problem import pose
        >>> from ansatz.estimators.uses import Uses
        >>> default_network(pose({"a": [1.0, 2.0], "y": [0.5, 1.5]}, Uses(target=["y"])))
        'mlp'
    """
    if problem.is_grid:
        return Grid(masks=problem.masks is not None).network
    return Vector.network if problem.has_features else "linear"


def _is_a_table(data: Any, reader: dict[str, Any]) -> bool:
    """Whether the rows of numbers of a table are signals: a table that names no images."""
    from ansatz.data.grids import is_grids

    return not is_grids(data) and "image" not in reader


def _special(uses: Uses) -> list[str]:
    """Columns that are no part of a signal."""
    named = [uses.weights, uses.offset, uses.exposure, uses.group, uses.time, uses.event]
    return [*uses.outcome_columns, *(name.split("=")[0] for name in named if name)]
