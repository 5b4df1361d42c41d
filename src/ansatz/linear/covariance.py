"""Covariance matrices of the coefficients of a linear fit."""

import torch
from torch import Tensor

from ansatz.linear.absolute import KINKED, is_kinked
from ansatz.linear.criterion import Criterion
from ansatz.linear.design import Design, DesignRows
from ansatz.linear.family import fisher_weight
from ansatz.linear.linear_likelihood import LinearLikelihood, Maximum
from ansatz.linear.quantile_fit import density_at_zero


def information(
    model: LinearLikelihood, rows: DesignRows, criterion: Criterion, found: Maximum
) -> Tensor:
    r"""The information matrix of all estimates, ``(T, T)``; phi is 1 for exponential families.

    Exponential families with constant dispersion: the Fisher information of the coefficients,
    :math:`\sum_i w_i \omega_i x_i x_i^\top` with the working weights of iteratively reweighted
    least squares (what R and statsmodels use; equal to the observed one for canonical links).
    Laplace: :math:`\sum_i w_i x_i x_i^\top / b_i^2`, since its density has a kink; where it is
    censored or truncated, the sum of :math:`w_i s_i s_i^\top` over the rows' scores. All others:
    the observed information, the Hessian of the negative log-likelihood.
    """
    matrix = found.derivatives.hessian.clone()
    mask = model.location_mask(criterion)
    weight = location_weight(model, rows, criterion, found)
    if weight is None:
        if is_kinked(model.likelihood):
            return _outer_scores(criterion, found.theta, rows.weight.sqrt())
        return matrix
    part = criterion.parts[0]
    x = criterion.matrix
    matrix[mask] = 0
    matrix[:, mask] = 0
    matrix[part, part] = x.T @ ((rows.weight * weight).unsqueeze(1) * x)
    return matrix


def location_weight(
    model: LinearLikelihood, rows: DesignRows, criterion: Criterion, found: Maximum
) -> Tensor | None:
    """The working weight of each row where it informs one location alone, ``(N,)``; else None."""
    raw = criterion.z(found.theta)[:, : model.outputs]
    if model.family is not None:
        precision = torch.ones_like(rows.weight) if rows.precision is None else rows.precision
        if model.likelihood.name == "binomial":  # n trials are n rows
            precision = precision * rows.y[:, 1]
        return fisher_weight(model.fitted(criterion, found.theta), raw, precision)
    if model.likelihood.name in KINKED:
        likelihood = model.fitted(criterion, found.theta)
        if likelihood.has_distribution:
            return 2 / likelihood.distribution(raw).variance.detach()
        if model.outputs > 1:  # quantiles at several levels claim no density at their kinks
            return torch.full_like(rows.weight, torch.nan)
        y, centre = rows.y.numpy(), likelihood.point(raw).detach().numpy()
        density = density_at_zero(y - centre, y, rows.weight.numpy(), 0.5)
        slope = 2.0 if model.likelihood.name == "mae" else 1.0  # of the loss, between its two sides
        return torch.full_like(rows.weight, slope * density)
    return None


def model_covariance(
    model: LinearLikelihood,
    rows: DesignRows,
    criterion: Criterion,
    found: Maximum,
    dispersion: float,
) -> Tensor:
    """The inverse information; for exponential families the coefficients' block times phi."""
    matrix, mask = information(model, rows, criterion, found), model.location_mask(criterion)
    if model.family is None and model.likelihood.name not in KINKED:
        return invert_apart(matrix, found.free, rest=False)
    inverse = invert_apart(matrix, mask)
    if model.family is not None:
        inverse[mask.unsqueeze(1) & mask] *= dispersion
    return inverse


def sandwich_covariance(
    model: LinearLikelihood, rows: DesignRows, criterion: Criterion, found: Maximum
) -> Tensor:
    r"""White's HC0 with sampling weights.

    .. math:: A^{-1} \Big(\sum_i w_i^2 s_i s_i^\top\Big) A^{-1}

    with A the observed information and :math:`s_i` a row's score: right when the weights are
    sampling weights or the variance is not that of the likelihood. There is no small-sample
    factor.
    """
    kinked = model.likelihood.name in KINKED
    smooth = not is_kinked(model.likelihood)
    bread = found.derivatives.hessian if smooth else information(model, rows, criterion, found)
    meat = _outer_scores(criterion, found.theta, rows.weight)
    if kinked and not model.likelihood.has_distribution and model.outputs == 1:
        # Rows on the line have no slope, but count as those beside it: all slopes are alike.
        half = 1.0 if model.likelihood.name == "mae" else 0.5
        x = half * rows.weight.unsqueeze(1) * criterion.matrix
        meat = x.T @ x
    apart = model.family is not None or kinked
    mask = model.location_mask(criterion)
    inverse = invert_apart(bread, mask if apart else found.free, rest=apart)
    if apart:
        parts = [_sandwich(inverse, meat, part) for part in (mask, ~mask)]
        return parts[0] + parts[1]
    return inverse @ meat @ inverse


def _outer_scores(criterion: Criterion, theta: Tensor, factor: Tensor) -> Tensor:
    """The sum over rows of the outer product of factor * score with itself, ``(T, T)``."""
    scores = criterion.scores(theta)
    total = torch.zeros(criterion.size, criterion.size, dtype=torch.float64)
    for block in criterion.blocks():
        s = factor[block].unsqueeze(1) * scores[block]
        criterion.add_outer(total, s.unsqueeze(2) * s.unsqueeze(1), block)
    return total


def _sandwich(inverse: Tensor, meat: Tensor, mask: Tensor) -> Tensor:
    result = torch.zeros_like(meat)
    if bool(mask.any()):
        bread = inverse[mask][:, mask]
        result[mask.unsqueeze(1) & mask] = (bread @ meat[mask][:, mask] @ bread).flatten()
    return result


def invert_apart(matrix: Tensor, first: Tensor, rest: bool = True) -> Tensor:
    """Inverts two blocks apart (0 for the second without ``rest``).

    Location and dispersion, since a dispersion at its floor does not inform the coefficients; or
    what was estimated, and not what was held at a limit.
    """
    inverse = torch.zeros_like(matrix)
    for mask in (first, ~first) if rest else (first,):
        if bool(mask.any()):
            inverse[mask.unsqueeze(1) & mask] = invert(matrix[mask][:, mask]).flatten()
    return inverse


def invert(matrix: Tensor) -> Tensor:
    """The inverse of a positive definite matrix, or nan throughout if it is not."""
    root = matrix.diagonal().clamp(min=0).sqrt()
    factor, failed = torch.linalg.cholesky_ex(matrix / root.unsqueeze(1) / root)
    if int(failed) or not bool(torch.isfinite(factor).all()):
        return torch.full_like(matrix, torch.nan)
    return torch.cholesky_inverse(factor) / root.unsqueeze(1) / root


def in_original_units(
    covariance: Tensor, model: LinearLikelihood, criterion: Criterion, design: Design
) -> tuple[Tensor, tuple[tuple[int, int], ...]]:
    """The covariance of the raw coefficients in the columns' own units, and what they belong to."""
    size = criterion.parts[model.outputs - 1].stop
    back = torch.eye(size, dtype=torch.float64)
    entries: list[tuple[int, int]] = []
    for column, part in enumerate(criterion.parts[: model.outputs]):
        rows = criterion.columns[column]
        back[part, part] = design.back[rows, rows]
        entries += [(int(row), column) for row in design.rows[rows]]
    return back @ covariance[:size, :size] @ back.T, tuple(entries)
