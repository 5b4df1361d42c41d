"""Where no maximum-likelihood estimate exists: separated classes, a level without events."""

from typing import NamedTuple

import torch
from torch import Tensor

from ansatz.linear.criterion import Criterion


class Recession(NamedTuple):
    """A direction along which no row's loss ever rises and some fall for ever.

    Args:
        table: ``(Q, Z)``, the direction in the coefficients of the standardised columns.
        rows: how many rows it drives to a certain prediction.
    """

    table: Tensor
    rows: int


def find_recession(
    criterion: Criterion, theta: Tensor, step: Tensor, unit: Tensor
) -> Recession | None:
    r"""Tests whether Newton's method is on its way to infinity.

    The loss of separated classes, or of a level of a factor whose counts are all zero, has no
    minimum: it falls along a direction :math:`\delta` with :math:`x_i^\top \delta = 0` for the rows
    that overlap and a change for the better for all others (Albert and Anderson 1984). Newton's
    steps turn into it, and under complete separation so does :math:`\theta` itself. Each is tried
    as it is and projected on the directions that leave the overlapping rows alone, and is then
    proved row by row: no loss may rise while the raw numbers go 20 of their units further.

    Args:
        criterion: the loss.
        theta: ``(T,)`` where we are.
        step: ``(T,)`` the last Newton step.
        unit: ``(Z,)``, the natural unit of each number that a row's loss depends on.

    Returns:
        The direction, or None if neither is one.

    References:
        Albert and Anderson (1984), On the existence of maximum likelihood estimates in logistic
        regression models. Biometrika 71, 1-10.
    """
    here = criterion.terms(theta)
    for candidate in (step, theta):
        table = _in_units(criterion, criterion.table(candidate), unit)
        if table is None:
            continue
        change = ((criterion.matrix @ table) / unit).abs().amax(1)
        alone = _leave_alone(criterion.matrix[change < 0.05], table)
        for direction in (table, _in_units(criterion, alone, unit, least=0.1)):
            if direction is not None and _never_rises(criterion, theta, here, direction):
                change = ((criterion.matrix @ direction) / unit).abs().amax(1)
                return Recession(direction, int((change > 1e-3).sum()))
    return None


def _in_units(
    criterion: Criterion, table: Tensor, unit: Tensor, least: float = 0.0
) -> Tensor | None:
    """The direction whose largest change of a raw number is one unit; None without a change."""
    largest = float(((criterion.matrix @ table) / unit).abs().max())
    return table / largest if least < largest < float("inf") else None


def _never_rises(criterion: Criterion, theta: Tensor, here: Tensor, table: Tensor) -> bool:
    direction = criterion.pack(table)
    middle, far = (criterion.terms(theta + t * direction) for t in (10.0, 20.0))
    allowed = 1e-7 * (1 + here.abs())
    if not bool(torch.isfinite(far).all()):
        return False
    return not bool(((middle > here + allowed) | (far > middle + allowed)).any())


def _leave_alone(rows: Tensor, table: Tensor) -> Tensor:
    """Projects the columns of ``table`` on the directions that do not move ``rows``."""
    if not len(rows):
        return table
    values, vectors = torch.linalg.eigh(rows.T @ rows)
    null = vectors[:, values <= 1e-10 * values[-1].clamp(min=1e-300)]
    return null @ (null.T @ table)
