"""Standard errors that hold when the variance is not the likelihood's, or rows depend."""

from typing import Literal, get_args

import torch
from torch import Tensor

from ansatz.errors import DataError
from ansatz.linear.absolute import KINKED, is_kinked
from ansatz.linear.covariance import information, invert_apart, location_weight
from ansatz.linear.criterion import Criterion
from ansatz.linear.design import DesignRows
from ansatz.linear.linear_likelihood import LinearLikelihood, Maximum

Robust = Literal["HC0", "HC1", "HC2", "HC3", "cluster"]
ROBUST: tuple[str, ...] = get_args(Robust)
FEW = 30  # groups; with fewer the clustered standard errors are too small on average


def robust_covariance(
    model: LinearLikelihood, rows: DesignRows, criterion: Criterion, found: Maximum, kind: Robust
) -> Tensor:
    r"""The sandwich covariance of all estimates, ``(T, T)``, for frequency weights.

    .. math:: A^{-1} \Big(\sum_i w_i \tilde s_i \tilde s_i^\top\Big) A^{-1} \quad\text{or}\quad
              c\, A^{-1} \Big(\sum_g S_g S_g^\top\Big) A^{-1}, \qquad
              S_g = \sum_{i \in g} w_i s_i

    with A the observed information and :math:`s_i` a row's score. HC0: :math:`\tilde s = s`; HC1
    multiplies by :math:`n / (n - k)`; HC2 and HC3 divide a score by :math:`(1 - h_i)^{1/2}` and
    :math:`1 - h_i`, h the leverage. Where a row's loss depends on several raw numbers the leverage
    is a matrix: then HC3 is the jackknife with one Newton step per row. ``cluster`` sums the scores
    of each of G groups first, :math:`c = \frac{G}{G-1} \frac{n-1}{n-k}`, as statsmodels and Stata.

    References:
        MacKinnon and White (1985), Some heteroskedasticity-consistent covariance matrix estimators.
        Cameron and Miller (2015), A practitioner's guide to cluster-robust inference.
    """
    kinked = model.likelihood.name in KINKED
    smooth = not is_kinked(model.likelihood)
    bread = found.derivatives.hessian if smooth else information(model, rows, criterion, found)
    apart = model.family is not None or kinked
    mask = model.location_mask(criterion)
    inverse = invert_apart(bread, mask if apart else found.free, rest=apart)
    scores = criterion.scores(found.theta)
    if kind in ("HC2", "HC3"):
        scores = _by_leverage(model, rows, criterion, found, scores, -0.5 if kind == "HC2" else -1)
    n, k = float(rows.weight.sum()), int(mask.sum()) if apart else int(found.free.sum())
    factor = 1.0
    if kind == "cluster":
        assert rows.group is not None
        meat, groups = _grouped(criterion, scores * rows.weight.unsqueeze(1), rows.group)
        factor = groups / (groups - 1) * (n - 1) / (n - k) if n > k else float("nan")
    else:
        meat = _outer(criterion, scores, rows.weight)
        if kind == "HC1":
            factor = n / (n - k) if n > k else float("nan")
    if apart:  # location and dispersion are estimated apart
        same = mask.unsqueeze(1) == mask
        meat = torch.where(same, meat, 0.0)
    return factor * inverse @ meat @ inverse


def group_codes(group: Tensor) -> tuple[Tensor, int]:
    """Codes 0..G-1 of the groups and their number; fewer than two are refused."""
    codes = group.unique(return_inverse=True)[1]
    count = int(codes.max()) + 1
    if count < 2:
        raise DataError(
            "clustered standard errors need at least 2 groups, got 1. Name another group column, "
            "or take errors='HC3'."
        )
    return codes, count


def explain_groups(kind: str, group: Tensor | None) -> list[str]:
    """Notes on groups that are few, or that the standard errors ignore."""
    if group is None:
        return []
    count = len(group.unique())
    if kind != "cluster":
        return [
            f"rows belong to {count} groups, but these standard errors take them as independent: "
            "they are too small where rows of a group are alike. Take errors='cluster'."
        ]
    if count < FEW:
        return [
            f"standard errors are clustered by {count} groups. With fewer than about {FEW} they "
            f"tend to be too small; p-values and intervals use Student's t with {count - 1} "
            "degrees of freedom."
        ]
    return []


def df_statistics(kind: str, group: Tensor | None) -> float | None:
    """Degrees of freedom of t statistics with clustered standard errors: G - 1."""
    return float(len(group.unique()) - 1) if kind == "cluster" and group is not None else None


def _outer(criterion: Criterion, scores: Tensor, weight: Tensor) -> Tensor:
    total = torch.zeros(criterion.size, criterion.size, dtype=torch.float64)
    for block in criterion.blocks():
        s = weight[block].sqrt().unsqueeze(1) * scores[block]
        criterion.add_outer(total, s.unsqueeze(2) * s.unsqueeze(1), block)
    return total


def _grouped(criterion: Criterion, scores: Tensor, group: Tensor) -> tuple[Tensor, int]:
    codes, count = group_codes(group)
    sums = torch.zeros(count, criterion.size, dtype=torch.float64)
    for block in criterion.blocks():
        for j, (part, columns) in enumerate(zip(criterion.parts, criterion.columns, strict=True)):
            terms = criterion.matrix[block, columns] * scores[block, j : j + 1]
            sums[:, part] = sums[:, part].index_add(0, codes[block], terms)
    return sums.T @ sums, count


def _by_leverage(
    model: LinearLikelihood,
    rows: DesignRows,
    criterion: Criterion,
    found: Maximum,
    scores: Tensor,
    power: float,
) -> Tensor:
    """The scores times (1 - leverage) to a power."""
    weight = location_weight(model, rows, criterion, found)
    matrix = information(model, rows, criterion, found)
    mask = model.location_mask(criterion)
    scores = scores.clone()
    if weight is not None:
        part = criterion.parts[0]
        inverse = invert_apart(matrix, mask)[part, part]
        x = criterion.matrix
        leverage = weight * ((x @ inverse) * x).sum(1)
        # A row that decides its own fitted value has residual 0: it adds nothing.
        factor = (1 - leverage).clamp(min=1e-12) ** power
        scores[:, 0] *= torch.where(leverage > 1 - 1e-10, 0.0, factor)
        return scores
    inverse = invert_apart(matrix, found.free, rest=False)
    moving = [j for j, part in enumerate(criterion.parts) if part.stop > part.start]
    for block in criterion.blocks():
        z, y = criterion.z(found.theta, block), criterion.y[block]
        hessian = criterion.row_derivatives(z, y, moving)[2]
        shape = _quadratic(criterion, inverse, block)
        scores[block] = _powered(hessian @ shape, scores[block], power)
    return scores


def _quadratic(criterion: Criterion, inverse: Tensor, rows: slice) -> Tensor:
    """A_i inverse A_i^T of every row, ``(B, Z, Z)``."""
    x = criterion.matrix[rows]
    size = len(criterion.parts)
    found = torch.zeros(len(x), size, size, dtype=torch.float64)
    for j in range(size):
        for k in range(j + 1):
            block = inverse[criterion.parts[j], criterion.parts[k]]
            a, b = x[:, criterion.columns[j]], x[:, criterion.columns[k]]
            found[:, j, k] = found[:, k, j] = ((a @ block) * b).sum(1)
    return found


def _powered(leverage: Tensor, scores: Tensor, power: float) -> Tensor:
    """(1 - leverage)^power @ scores, row by row; the leverage has real eigenvalues below 1."""
    if power == -1:
        one = torch.eye(leverage.shape[1], dtype=leverage.dtype)
        return torch.linalg.lstsq(one - leverage, scores.unsqueeze(2)).solution.squeeze(2)
    values, vectors = torch.linalg.eig(leverage)
    inside = torch.linalg.solve(vectors, scores.to(vectors.dtype).unsqueeze(2)).squeeze(2)
    scaled = (1 - values.real).clamp(min=1e-12) ** power * inside
    return (vectors @ scaled.unsqueeze(2)).squeeze(2).real
