"""A posed problem as a job: its rows, outcomes, weights and what governs their splits."""

from typing import Any

import torch

from ansatz.errors import DataError
from ansatz.fitting.job import Job
from ansatz.fitting.provenance import seen_rows
from ansatz.fitting.outcome_checks import locate
from ansatz.fitting.problem import Problem
from ansatz.estimators.table_estimator import TableEstimator


def read_job(problem: Problem, estimator: TableEstimator) -> Job:
    """Lets an estimator read the table of a problem; errors name the table's own rows.

    Example:
        >>> from ansatz import Regressor
        >>> from ansatz.fitting.problem import pose
        >>> from ansatz.fitting.reading import read_job
        >>> from ansatz.fitting.uses import Uses
        >>> problem = pose({"x": [1.0, 2.0, 4.0], "y": [0.5, 1.5, 2.5]}, Uses(target=["y"]))
        >>> read_job(problem, Regressor()).y.tolist()
        [0.5, 1.5, 2.5]
    """
    frame = problem.frame
    group, time, part = _order(problem)
    weight, offset = problem.uses.weight(frame), problem.uses.offsets(frame)
    try:
        job = estimator._read(
            problem.features,
            problem.outcomes,
            weight,
            offset,
            columns=None if problem.is_grid else problem.columns,
        )
    except DataError as error:
        raise locate(error, problem.origin, frame, problem.uses) from None
    rows = frame.index.to_numpy()[job.index.numpy()]  # errors name rows as the table counts them
    if rows.dtype.kind == "i":
        job = job._replace(index=torch.from_numpy(rows + 1))
    return job._replace(group=group, time=time, part=part)


def _order(problem: Problem) -> tuple[Any, Any, Any]:
    """The columns that govern every split."""
    frame, uses = seen_rows(problem), problem.uses
    names = uses.group, uses.time, problem.part
    group, time, part = (None if name is None else frame[name].to_numpy() for name in names)
    return group, time, part
