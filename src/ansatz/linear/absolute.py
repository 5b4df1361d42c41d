"""Least absolute deviations: a loss with a kink, approached through smooth ones."""

from collections.abc import Callable

from torch import Tensor

from ansatz.likelihoods.likelihood import Likelihood
from ansatz.linear.criterion import Criterion
from ansatz.linear.newton import Minimum, minimise

KINKED = ("laplace", "mae")


def smooth_loss(likelihood: Likelihood, raw: Tensor, y: Tensor, width: float) -> Tensor:
    r"""The Laplace or absolute loss with :math:`|r|` replaced by :math:`\sqrt{r^2 + \epsilon^2}`.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import create
        >>> smooth_loss(create("mae"), torch.zeros(1, 1), torch.tensor([3.0]), 4.0)
        tensor([5.])
    """
    if not likelihood.is_law:
        return ((y - likelihood.point(raw)) ** 2 + width**2).sqrt()
    law = likelihood.distribution(raw)
    scale = (law.variance / 2).sqrt()
    return ((y - law.mean) ** 2 + width**2).sqrt() / scale + (2 * scale).log()


def minimise_absolute(
    smoothed: Callable[[float], Criterion], theta: Tensor, free: Tensor, unit: Tensor
) -> Minimum:
    """Newton's method on ever sharper losses, each started where the last one ended.

    The minimum of the loss smoothed over a width w is within O(w) of a minimum of the kinked one;
    the last width is 1e-9 of the outcome's unit. Where the minimum is not unique (the median of
    an even number of rows) this gives an inner point of the set.

    Args:
        smoothed: width -> the criterion with the loss smoothed over that width.
        theta: ``(T,)`` where to start.
        free: ``(T,)`` True for coefficients that may move.
        unit: ``(Z,)``, its first entry the unit of the outcome.

    Example:
        >>> import torch
        >>> from ansatz.linear.criterion import Criterion
        >>> one, y = torch.ones(3, 1, dtype=torch.float64), torch.tensor([1.0, 2.0, 9.0]).double()
        >>> def smoothed(w):
        ...     loss = lambda z, y: ((z[:, 0] - y) ** 2 + w**2).sqrt()
        ...     return Criterion(loss, one, y, one[:, 0], ["x"])
        >>> start, free = torch.zeros(1).double(), torch.tensor([True])
        >>> round(minimise_absolute(smoothed, start, free, torch.ones(1)).theta.item(), 6)
        2.0
    """
    size = float(unit[0])
    iterations, best = 0, None
    for power in range(10):
        criterion = smoothed(size * 10.0**-power)
        tolerance = 1e-8 if power == 9 else 1e-4  # on the way, near is near enough
        found = minimise(
            criterion, theta, free, unit, iterations=60, rescue=False, tolerance=tolerance
        )
        iterations += found.iterations
        # On a flat set the curvature vanishes with the gradient: judge by what could add up to it.
        parts = criterion.weight @ criterion.scores(found.theta).abs()  # (Z,)
        gradient = found.derivatives.gradient[free].abs().max()
        settled = found.converged or float(gradient / parts.max()) < 1e-8
        best = found._replace(converged=settled, iterations=iterations)
        theta = found.theta
    assert best is not None
    return best
