"""Validation rows that the user gives, joined with the training rows as one job."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import sparse

from ansatz.errors import UsageError
from ansatz.fitting.job import Job
from ansatz.fitting.task import Task
from ansatz.fitting.validation import check_validation


def join_validation(
    X: Any, y: Any, sample_weight: Any, validation_data: Any, others: Mapping[str, Any]
) -> tuple[Any, Any, Any, int]:
    """Puts validation rows behind the training rows.

    Args:
        X: training rows.
        y: their outcomes.
        sample_weight: their weights.
        validation_data: ``(X, y)`` or ``(X, y, sample_weight)``.
        others: other columns of the training rows, by name, which validation rows do not have.

    Returns:
        X, y and weights of all rows, and how many of them are training rows.
    """
    given = [name for name, value in others.items() if value is not None]
    if given:
        raise UsageError(f"validation_data has no {given[0]}: leave it out, or use holdout.")
    if not isinstance(validation_data, tuple | list) or len(validation_data) not in (2, 3):
        raise UsageError("validation_data must be (X, y) or (X, y, sample_weight).")
    rows, outcomes, *weights = validation_data
    count, more = len(y), len(outcomes)
    weight = None
    if sample_weight is not None or weights:
        mine = np.ones(count) if sample_weight is None else np.asarray(sample_weight)
        weight = np.concatenate([mine, np.asarray(weights[0]) if weights else np.ones(more)])
    return _joined("X", X, rows), _joined("y", y, outcomes), weight, count


def mark_validation(task: Task, job: Job, count: int) -> Job:
    """Marks the rows behind the first ``count`` as those that stop the training."""
    check_validation(task, job)
    is_valid = job.index.numpy() >= count
    if not is_valid.any() or is_valid.all():
        raise UsageError("validation_data must leave rows on both sides, with weights above 0.")
    part = np.where(is_valid, "validation", "train")
    return job._replace(part=part, valid=np.flatnonzero(is_valid))


def _joined(name: str, first: Any, second: Any) -> Any:
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        first, second = pd.DataFrame(first), pd.DataFrame(second)
    try:
        if hasattr(first, "followed_by"):
            return first.followed_by(second)
        if isinstance(first, pd.DataFrame | pd.Series):
            if isinstance(first, pd.DataFrame) and list(first.columns) != list(second.columns):
                raise ValueError("the columns differ")
            return pd.concat([first, second], ignore_index=True)
        if isinstance(first, torch.Tensor):
            return torch.cat([first, torch.as_tensor(second)])
        if sparse.issparse(first):
            return sparse.vstack([first, second]).tocsr()
        if isinstance(first, list) and isinstance(second, list):
            return [*first, *second]
        return np.concatenate([np.asarray(first), np.asarray(second)])
    except (ValueError, TypeError, AttributeError, RuntimeError) as error:
        raise UsageError(
            f"{name} of validation_data is not like that of the fit: {error}."
        ) from None
