"""A problem of the structure that x has, and the network that suits it."""

import inspect
from pathlib import Path
from typing import Any

from ansatz.data.grids import GridTable, is_grids, read_grids
from ansatz.errors import UsageError
from ansatz.estimators.grid_problem import pose_grids
from ansatz.estimators.problem import Problem, pose
from ansatz.estimators.uses import Uses
from ansatz.structures import Grid, Vector


def structure_of(data: Any, x: str | None = None) -> str:
    """What x looks like: as it was said, else as the data look.

    Args:
        data: a table, or grids.
        x: the structure that was asked for.

    Example:
        >>> import numpy as np
        >>> from ansatz.estimators.posing import structure_of
        >>> structure_of({"x": np.zeros((5, 8, 8)), "y": range(5)}), structure_of("houses.csv")
        ('grid', 'vector')
    """
    grids = is_grids(data)
    if x == "vector" and grids and isinstance(data, str | Path) and Path(data).is_dir():
        raise UsageError(f"{data} is a folder of images, which are no rows: leave out --x vector.")
    return x or ("grid" if grids else "vector")


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
    size = reader.get("size")
    if isinstance(size, list | tuple) and len(size) == 1:
        reader["size"] = size[0]  # of all sides
    odd = [name for name in reader if name not in inspect.signature(read_grids).parameters]
    if odd:
        raise UsageError(f"'{odd[0]}' is an option of tables; these data are grids.")
    if _is_a_table(data, reader):
        reader |= {"signals": True, "target": special_columns(uses)}
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


def read_like(estimator: Any, data: Any) -> GridTable:
    """Examples as those of a fit were, brought to their size: to be predicted or judged.

    Args:
        estimator: fitted to grids.
        data: a folder, a file, the name of a data set, or arrays.

    Example:
        >>> import numpy as np
        >>> from ansatz import Classifier
        >>> from ansatz.estimators.posing import read_like
        >>> images = np.random.default_rng(0).normal(size=(20, 12, 12)).astype(np.float32)
        >>> model = Classifier(network="linear_grid", epochs=1).fit(images, np.arange(20) % 2)
        >>> len(read_like(model, {"x": images, "y": np.arange(20) % 2}))
        20
    """
    spec, uses = estimator.model_.preprocessor.spec, getattr(estimator, "uses_", None)
    options: dict[str, Any] = {}
    if not is_grids(data):
        options = {"signals": True, "target": [] if uses is None else special_columns(uses)}
    elif len(spec.size) == 2:
        options = {"channels": spec.features} if spec.features in (1, 3) else {}
        if not estimator.labels_cells:  # masks may be of any size
            options["size"] = spec.size
    return read_grids(data, **options)


def _is_a_table(data: Any, reader: dict[str, Any]) -> bool:
    """Whether the rows of numbers of a table are signals: a table that names no images."""
    return not is_grids(data) and "image" not in reader


def special_columns(uses: Uses) -> list[str]:
    """Columns of a table that are no part of its rows' signals.

    Example:
        >>> from ansatz.estimators.posing import special_columns
        >>> from ansatz.estimators.uses import Uses
        >>> special_columns(Uses(target=["rhythm"], group="patient"))
        ['rhythm', 'patient']
    """
    named = [uses.weights, uses.offset, uses.exposure, uses.group, uses.time, uses.event]
    return [*uses.outcome_columns, *(name.split("=")[0] for name in named if name)]
