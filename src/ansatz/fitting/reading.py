"""A problem as a job: its rows, outcomes, weights and what governs their splits."""

from typing import Any

import numpy as np
import torch

from ansatz.errors import DataError
from ansatz.fitting.beside import read_column, read_weights
from ansatz.fitting.job import Job
from ansatz.fitting.outcome_checks import locate
from ansatz.fitting.problem import Problem
from ansatz.fitting.task import Task


def read_job(problem: Problem, task: Task) -> Job:
    """Reads the rows of a problem for a task; errors name the table's own rows.

    The task's outcome remembers what it read: names and classes.

    Args:
        problem: rows with their outcomes.
        task: what will be fitted.
    """
    frame = problem.frame
    weight, offset = problem.uses.weight(frame), problem.uses.offsets(frame)
    try:
        job = _read(problem, task, weight, offset)
    except DataError as error:
        raise locate(error, problem.origin, frame, problem.uses) from None
    rows = frame.index.to_numpy()[job.index.numpy()]  # errors name rows as the table counts them
    if rows.dtype.kind == "i":
        job = job._replace(index=torch.from_numpy(rows + 1))
    group, time, part = _order(problem)
    return job._replace(group=group, time=time, part=part)


def _read(problem: Problem, task: Task, weight: Any, offset: Any) -> Job:
    rows, outcome = problem.rows, task.outcome
    codes, target = outcome.encode(
        outcome.beside(problem.outcomes, rows), task.settings, reset=True
    )
    mass, extra = read_weights(weight, rows), read_column("offset", offset, len(rows))
    seen = mass > 0  # a row of weight 0 is a row that is not there
    if not seen.all():
        rows, codes, mass = rows[seen], codes[seen], mass[seen]
        extra = None if extra is None else extra[seen]
    job = Job(
        rows,
        torch.from_numpy(np.array(codes)),  # a copy: the given one may be read-only
        target,
        torch.from_numpy(outcome.reweight(codes, mass, task.settings)),
        None if extra is None else torch.from_numpy(extra),
        torch.from_numpy(np.flatnonzero(seen)),
    )
    return outcome.read(job)


def _order(problem: Problem) -> tuple[Any, Any, Any]:
    """The columns that govern every split."""
    frame, uses = problem.seen, problem.uses
    names = uses.group, uses.time, problem.part
    group, time, part = (None if name is None else frame[name].to_numpy() for name in names)
    return group, time, part
