"""Linear quantile regression at one level, with standard errors."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.linear.design import INTERCEPT, DesignRows


class QuantileFit(NamedTuple):
    """A linear model of one quantile.

    Args:
        level: of the quantile.
        names: D + 1 names, ``"(Intercept)"`` first.
        coefficients: ``(D + 1,)``.
        covariance: ``(D + 1, D + 1)``.
        density: of the residuals at 0, which the covariance is made of.
        df: n - p, of the t statistics.

    Example:
        >>> from ansatz.linear import QuantileFit
        >>> QuantileFit._fields[0]
        'level'
    """

    level: float
    names: tuple[str, ...]
    coefficients: Tensor
    covariance: Tensor
    density: float
    df: float

    @property
    def standard_errors(self) -> Tensor:
        """``(D + 1,)``."""
        return self.covariance.diagonal().sqrt()

    def confint(self, level: float = 0.95) -> Tensor:
        """Computes intervals of the coefficients, ``(D + 1, 2)``."""
        half = float(stats.t(self.df).ppf((1 + level) / 2)) * self.standard_errors
        return torch.stack([self.coefficients - half, self.coefficients + half], -1)

    def predict(self, x: Tensor) -> Tensor:
        """The quantile at x ``(N, D)``."""
        return self.coefficients[0] + x.double() @ self.coefficients[1:]


def quantile_regression(
    design: Tensor,
    y: Tensor,
    level: float = 0.5,
    *,
    weight: Tensor | None = None,
    feature_names: Sequence[str] | None = None,
) -> QuantileFit:
    r"""Fits the linear model of a quantile by linear programming.

    .. math:: \hat\beta = \arg\min_\beta \sum_i w_i\, \rho_\tau(y_i - x_i^\top \beta), \qquad
              \mathrm{Cov}(\hat\beta) = \frac{1}{\hat f(0)^2} (X^\top X)^{-1}
              \Big(\sum_i w_i\, \psi_i^2 x_i x_i^\top\Big) (X^\top X)^{-1}

    with :math:`\rho_\tau` the pinball loss, :math:`\psi_i = \tau - 1[r_i < 0]` and
    :math:`\hat f(0)` the density of the residuals at 0 (Epanechnikov's kernel, Hall and Sheather's
    bandwidth). Estimates and standard errors are those of statsmodels' ``QuantReg``.

    Args:
        design: ``(N, D)`` numbers, without an intercept.
        y: ``(N,)``.
        level: :math:`\tau`, in (0, 1).
        weight: ``(N,)`` frequency weights.
        feature_names: D names; default x1, x2, ...

    Example:
        >>> import torch
        >>> from ansatz.linear import quantile_regression
        >>> x = torch.arange(9.0).unsqueeze(1)
        >>> y = torch.tensor([0.0, 1, 2, 3, 4, 5, 6, 7, 80])  # one outlier
        >>> [round(b, 6) + 0.0 for b in quantile_regression(x, y).coefficients.tolist()]
        [0.0, 1.0]

    References:
        Koenker and Bassett (1978), Regression quantiles. https://doi.org/10.2307/1913643
        Koenker (2005), Quantile Regression, section 3.4.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, hstack, identity

    if not 0 < level < 1:
        raise UsageError(f"level of a quantile must be in (0, 1), got {level}.")
    names = feature_names or [f"x{j + 1}" for j in range(design.shape[-1])]
    rows = DesignRows.of(design, y, weight, None, None, names)
    x = np.concatenate([np.ones((len(rows.y), 1)), rows.x.numpy()], 1)
    target, w = rows.y.numpy(), rows.weight.numpy()
    n, p = x.shape
    cost = np.concatenate([np.zeros(p), level * w, (1 - level) * w])
    equal = hstack([csr_array(x), identity(n), -identity(n)], format="csr")
    bounds = [(None, None)] * p + [(0, None)] * (2 * n)
    found = linprog(cost, A_eq=equal, b_eq=target, bounds=bounds, method="highs")
    if found.status != 0:
        raise UsageError(f"the quantile regression has no solution: {found.message}")
    beta = found.x[:p]
    residual = target - x @ beta
    # As many rows as coefficients lie on the line; rounding must not decide on which side.
    residual[np.abs(residual) < 1e-9 * np.abs(target).max()] = 0
    covariance, density = quantile_covariance(x, residual, target, w, level)
    return QuantileFit(
        level,
        (INTERCEPT, *map(str, names)),
        torch.from_numpy(beta.copy()),
        torch.from_numpy(covariance),
        density,
        float(w.sum()) - p,
    )


def quantile_covariance(
    x: NDArray[np.float64],
    residual: NDArray[np.float64],
    y: NDArray[np.float64],
    weight: NDArray[np.float64],
    level: float,
) -> tuple[NDArray[np.float64], float]:
    """The covariance ``(p, p)`` of the coefficients of x ``(N, p)``, and the density at 0."""
    density = density_at_zero(residual, y, weight, level)
    inverse = np.linalg.pinv(x.T @ (weight[:, None] * x))
    square = np.where(residual > 0, level**2, (1 - level) ** 2)
    meat = x.T @ ((weight * square)[:, None] * x)
    return inverse @ meat @ inverse / density**2, density


def density_at_zero(
    residual: NDArray[np.float64], y: NDArray[np.float64], weight: NDArray[np.float64], level: float
) -> float:
    """The density of residuals at 0: Epanechnikov's kernel, Hall and Sheather's bandwidth."""
    n, normal = float(weight.sum()), stats.norm
    z = float(normal.ppf(level))
    bend = 1.5 * float(normal.pdf(z)) ** 2 / (2 * z**2 + 1)
    h = n ** (-1 / 3) * float(normal.ppf(0.975)) ** (2 / 3) * bend ** (1 / 3)
    h = min(h, 0.999 * min(level, 1 - level))  # both ends stay levels where rows are few
    low, high = _quartiles(residual, weight)
    mean = np.average(y, weights=weight)
    sd = float(np.sqrt(np.average((y - mean) ** 2, weights=weight)))
    width = min(sd, (high - low) / 1.34) * float(normal.ppf(level + h) - normal.ppf(level - h))
    if not width > 0:
        return float("nan")
    u = residual / width
    return float(weight @ np.where(np.abs(u) <= 1, 0.75 * (1 - u**2), 0.0)) / (n * width)


def _quartiles(values: NDArray[np.float64], weight: NDArray[np.float64]) -> Any:
    whole = np.round(weight)
    if (whole == weight).all() and weight.sum() < 1e7:
        return np.quantile(np.repeat(values, whole.astype(int)), [0.25, 0.75])
    order = np.argsort(values)
    share = (np.cumsum(weight[order]) - weight[order] / 2) / weight.sum()
    return np.interp([0.25, 0.75], share, values[order])
