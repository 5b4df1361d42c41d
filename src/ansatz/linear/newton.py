"""Newton's method for the losses of linear models, and where no minimum exists."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from scipy.optimize import minimize
from torch import Tensor

from ansatz.linear.criterion import Criterion, Derivatives


class Recession(NamedTuple):
    """A direction along which no row's loss ever rises and some fall for ever."""

    table: Tensor  # (Q, Z), in the coefficients of the standardised columns
    rows: int  # that it drives to a certain prediction


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


class Objective(Protocol):
    """Value, derivatives, and how far a step moves the rows."""

    y: Tensor
    weight: Tensor

    def value(self, theta: Tensor) -> Tensor:
        """The total loss."""

    def derivatives(self, theta: Tensor, free: Tensor | None = None) -> Derivatives:
        """With gradient and Hessian, at least of the free coefficients."""

    def gradient(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Value and gradient only."""

    def linear(self, theta: Tensor) -> Tensor:
        """``(N, Z)``: the numbers that each row's loss depends on."""


GRADIENT_TOLERANCE = 1e-8
STEP_TOLERANCE = 1e-6


Recede = Callable[[Tensor, Tensor, Tensor], Recession | None]


class NewtonState(NamedTuple):
    """The state of the next step: the coefficients, the damping and the derivatives there."""

    theta: Tensor
    damping: float
    derivatives: Derivatives


class NewtonInfo(NamedTuple):
    """Diagnostics of one step.

    ``gradient``: the largest |g_j| / sqrt(n H_jj), free of units. ``move``: the largest change of a
    raw number, in its own unit; it separates convergence from a likelihood that keeps rising, whose
    gradient vanishes too. ``accepted``: False if no shorter step lowered the loss.
    """

    gradient: float
    move: float
    accepted: bool


class Minimum(NamedTuple):
    """The point at which Newton's method stopped."""

    theta: Tensor
    derivatives: Derivatives
    iterations: int
    converged: bool
    gradient: float
    recession: Recession | None  # a direction along which the likelihood never stops rising
    damping: float  # left in the last step; 0 for a pure Newton step
    rescued: bool  # L-BFGS took over on the way


def newton_step(
    criterion: Objective, state: NewtonState, free: Tensor, unit: Tensor
) -> tuple[NewtonState, NewtonInfo, Tensor]:
    r"""Takes one damped Newton step on the free coefficients.

    .. math:: \theta' = \theta - t\,(H + \lambda\, \mathrm{diag}|H|)^{-1} g

    :math:`\lambda` grows until the matrix is positive definite, t halves until the loss falls.
    """
    value, g, h, size = state.derivatives
    direction, damping = _direction(g[free], h[free][:, free], state.damping)
    step = torch.zeros_like(state.theta)
    step[free] = direction
    change = criterion.linear(step).abs().amax(0) / unit
    move = float(change.max()) if len(criterion.y) else 0.0
    scaled = scaled_gradient(state.derivatives, free, criterion.weight)
    slope = float(g @ step)
    # Two sums of the same size cannot be compared beyond their rounding.
    slack = 1e-13 * float(size)
    length = 1.0
    while length > 1e-9:
        theta = state.theta + length * step
        trial = criterion.value(theta)
        if torch.isfinite(trial) and float(trial - value) <= 1e-4 * length * slope + slack:
            calmer = damping if length < 1 else damping / 10 if damping > 1e-4 else 0.0
            fresh = NewtonState(theta, calmer, criterion.derivatives(theta, free))
            return fresh, NewtonInfo(scaled, move, True), step
        length /= 2
    stuck = NewtonState(state.theta, max(10 * damping, 1e-4), state.derivatives)
    return stuck, NewtonInfo(scaled, move, False), step


def scaled_gradient(derivatives: Derivatives, free: Tensor, weight: Tensor) -> float:
    """The largest |g_j| / sqrt(n H_jj) over free coefficients."""
    g, diagonal = derivatives.gradient[free], derivatives.hessian.diagonal()[free]
    if not len(g):
        return 0.0
    size = (weight.sum() * diagonal.abs()).clamp(min=1e-300).sqrt()
    return float((g.abs() / size).max())


def _direction(g: Tensor, h: Tensor, damping: float) -> tuple[Tensor, float]:
    scale = h.diagonal().abs()
    scale = scale.clamp(min=max(1e-12 * float(scale.max()), 1e-300)) if len(scale) else scale
    while True:
        # In units of sqrt(scale) the matrix has ones on its diagonal: rounding is all that is left.
        root = scale.sqrt()
        matrix = h / root.unsqueeze(1) / root + damping * torch.eye(len(g), dtype=g.dtype)
        factor, failed = torch.linalg.cholesky_ex(matrix)
        if not int(failed) and bool(torch.isfinite(factor).all()):
            solution = torch.cholesky_solve((-g / root).unsqueeze(1), factor).squeeze(1)
            return solution / root, damping
        if damping > 1e8:
            return -g / scale, damping
        damping = max(10 * damping, 1e-6)


def minimise(
    criterion: Objective,
    theta: Tensor,
    free: Tensor,
    unit: Tensor,
    *,
    iterations: int = 100,
    rescue: bool = True,
    stop: Callable[[Tensor], bool] | None = None,
    recede: Recede | None = None,
) -> Minimum:
    """Runs Newton's method to a scaled gradient below 1e-8; L-BFGS takes over where it is stuck.

    It stops early where no minimum exists: along some direction every row's loss falls for ever.
    """
    state = NewtonState(theta, 0.0, criterion.derivatives(theta, free))
    count, failures, recession = 0, 0, None
    tolerance = max(GRADIENT_TOLERANCE, _rounding(criterion, theta, unit))
    for count in range(1, iterations + 1):
        state, info, step = newton_step(criterion, state, free, unit)
        if info.gradient < tolerance and info.move < STEP_TOLERANCE:
            return _stopped(criterion, state, free, count, True, None)
        if stop is not None and stop(state.theta):
            return _stopped(criterion, state, free, count, False, None)
        failures = 0 if info.accepted else failures + 1
        if failures > 12:
            break
        if count >= 5 and info.move > 0.1:
            recession = _recession(criterion, recede, state.theta, step, unit)
            if recession is not None:
                return _stopped(criterion, state, free, count, False, recession)
    if rescue:
        theta = _lbfgs(criterion, state.theta, free)
        again = minimise(
            criterion,
            theta,
            free,
            unit,
            iterations=iterations,
            rescue=False,
            stop=stop,
            recede=recede,
        )
        return again._replace(iterations=again.iterations + count, rescued=True)
    return _stopped(criterion, state, free, count, False, None)


def _rounding(criterion: Objective, theta: Tensor, unit: Tensor) -> float:
    """The rounding error of a gradient of numbers of this size, in their units."""
    size = (criterion.linear(theta).abs() / unit).amax() if theta.numel() else torch.zeros(())
    return 4 * torch.finfo(torch.float64).eps * float(size)


def _recession(
    criterion: Objective, recede: Recede | None, theta: Tensor, step: Tensor, unit: Tensor
) -> Recession | None:
    if recede is not None:
        return recede(theta, step, unit)
    assert isinstance(criterion, Criterion)
    return find_recession(criterion, theta, step, unit)


def _stopped(
    criterion: Objective,
    state: NewtonState,
    free: Tensor,
    count: int,
    converged: bool,
    recession: Recession | None,
) -> Minimum:
    gradient = scaled_gradient(state.derivatives, free, criterion.weight)
    theta, damping, derivatives = state
    return Minimum(theta, derivatives, count, converged, gradient, recession, damping, False)


def _lbfgs(criterion: Objective, theta: Tensor, free: Tensor) -> Tensor:
    def function(x: "object") -> "tuple[float, object]":
        full = theta.clone()
        full[free] = torch.as_tensor(x, dtype=theta.dtype)
        value, gradient = criterion.gradient(full)
        return float(value), gradient[free].numpy()

    found = minimize(
        function,
        theta[free].numpy(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 1000, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 20},
    )
    full = theta.clone()
    full[free] = torch.as_tensor(found.x, dtype=theta.dtype)
    return full if torch.isfinite(criterion.value(full)) else theta
