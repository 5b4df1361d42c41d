"""Rows that the user brings to stop a training: what they go with."""

from ansatz.errors import UsageError
from ansatz.fitting.job import Job
from ansatz.fitting.task import Task


def check_validation(task: Task, job: Job) -> None:
    """Refuses validation rows where no training stops, and options that they take the place of."""
    if task.is_solved(job):
        raise UsageError("validation_data stops a training, and a linear model is solved exactly.")
    for name in ("holdout", "calibration"):
        if task.settings.get(name):
            raise UsageError(f"validation_data takes the place of {name}: leave one of them out.")
