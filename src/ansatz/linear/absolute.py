"""Least absolute deviations: a loss with a kink, approached through smooth ones."""

from collections.abc import Callable

import torch
from torch import Tensor

from ansatz.likelihoods.censored import Censored
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.likelihoods.quantiles import Quantiles
from ansatz.likelihoods.truncated import Truncated
from ansatz.linear.criterion import Criterion
from ansatz.linear.design import independent_columns
from ansatz.linear.naming import inner
from ansatz.linear.newton import Minimum, minimise

KINKED = ("laplace", "mae", "quantiles")


def is_kinked(likelihood: Likelihood) -> bool:
    """Tests whether a loss, censored and truncated ones too, has a kink in its location."""
    return inner(likelihood).name in KINKED


def smooth_loss(likelihood: Likelihood, raw: Tensor, y: Tensor, width: float) -> Tensor:
    r"""The Laplace, absolute or pinball loss with :math:`|r|` as :math:`\sqrt{r^2 + \epsilon^2}`.

    The pinball loss of level :math:`\tau` is :math:`(|r| + (2 \tau - 1) r) / 2`.
    """
    if isinstance(likelihood, Censored | Truncated):
        exact, value = torch.ones_like(y, dtype=torch.bool), y
        if isinstance(likelihood, Censored):  # the tails of censored rows have no kink
            exact = y[:, 0] == y[:, 1]
            value = torch.where(exact, y[:, 0], 0.0)
        inside = likelihood.likelihood
        change = smooth_loss(inside, raw, value, width) - inside.loss(raw, value)
        return likelihood.loss(raw, y) + torch.where(exact, change, 0.0)
    if isinstance(likelihood, Quantiles):
        r = y.unsqueeze(-1) - likelihood.quantiles(raw)  # (B, Q)
        tilt = 2 * torch.tensor(likelihood.levels, dtype=raw.dtype) - 1
        return ((r**2 + width**2).sqrt() + tilt * r).sum(-1) / 2
    if not likelihood.has_distribution:
        return ((y - likelihood.point(raw)) ** 2 + width**2).sqrt()
    distribution = likelihood.distribution(raw)
    scale = (distribution.variance / 2).sqrt()
    return ((y - distribution.mean) ** 2 + width**2).sqrt() / scale + (2 * scale).log()


def minimise_absolute(
    smoothed: Callable[[float], Criterion],
    theta: Tensor,
    free: Tensor,
    unit: Tensor,
    *,
    vertex: bool = True,
) -> Minimum:
    """Runs Newton's method on ever sharper losses, each started where the last one ended.

    The minimum of the loss smoothed over a width is within O(width) of a minimum of the kinked
    one; the last width is 1e-9 of the outcome's unit. With a constant scale the answer passes
    exactly through as many rows as it has coefficients: as soon as these rows are known,
    :func:`exact_vertex` proves it and the search is over. Where the minimum is not unique (the
    median of an even number of rows) this gives one point of the set.
    """
    size = float(unit[0])
    iterations, best = 0, None
    for power in range(10):
        criterion = smoothed(size * 10.0**-power)
        found = minimise(criterion, theta, free, unit, iterations=60, rescue=False)
        theta, iterations = found.theta, iterations + found.iterations
        if vertex and int(free.sum()) == criterion.matrix.shape[1]:  # the location alone
            corner = exact_vertex(criterion, theta)
            if corner is not None:
                return found._replace(
                    theta=corner, iterations=iterations, converged=True, gradient=0.0
                )
        # On a flat set the curvature vanishes with the gradient: evaluate by what could add up to
        # it.
        parts = criterion.weight @ criterion.scores(theta).abs()  # (Z,)
        gradient = float(found.derivatives.gradient[free].abs().max() / parts.max())
        settled = found.converged or gradient < 1e-7
        best = found._replace(converged=settled, iterations=iterations)
    assert best is not None
    return best


def exact_vertex(criterion: Criterion, theta: Tensor) -> Tensor | None:
    r"""The fit through the Q rows with the least residuals, if it is a minimum of sum w |r|.

    With B those rows and s the signs of all other residuals, 0 is in the subdifferential when

    .. math:: X_B^\top a = -\sum_{i \notin B} w_i s_i x_i, \qquad |a_i| \le w_i

    has a solution: the dual certificate of the linear programme (Koenker and Bassett, theorem 3.3).
    """
    x, weight = criterion.matrix, criterion.weight
    y = criterion.y if criterion.offset is None else criterion.y - criterion.offset
    size = x.shape[1]
    near = (y - criterion.linear(theta)[:, 0]).abs().argsort()[: 4 * size]
    kept, _ = independent_columns(
        x[near].T, torch.zeros(len(near), dtype=torch.bool), explain=False
    )
    rows = near[kept]
    if len(rows) < size:
        return None
    coefficients = torch.linalg.solve(x[rows], y[rows])
    r = y - x @ coefficients
    sign = torch.where(r.abs() > 1e-11 * y.abs().max(), r.sign(), 0.0)
    sign[rows] = 0
    dual = torch.linalg.solve(x[rows].T, -(x.T @ (weight * sign)))
    if not bool((dual.abs() <= weight[rows] * (1 + 1e-9)).all()):
        return None
    theta = theta.clone()
    theta[criterion.parts[0]] = coefficients
    return theta
