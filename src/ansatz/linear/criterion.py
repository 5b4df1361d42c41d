"""The total loss of a linear model as a function of its coefficients, with two derivatives.

Legend: N rows, Q columns with the intercept, P raw numbers, C learned constants of the likelihood,
Z = P + C numbers that a row's loss depends on.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from ansatz.linear.row_loss import RowLoss, differenced_curvature, exact_curvature, row_gradient

Kind = Literal["x", "slopes", "one", "fixed"]


class Derivatives(NamedTuple):
    """Value ``()``, gradient ``(T,)`` and Hessian ``(T, T)`` of the total loss.

    ``size``, the sum of the terms' absolute values, bounds the rounding of the value.
    """

    value: Tensor
    gradient: Tensor
    hessian: Tensor
    size: Tensor


class Criterion:
    r"""The weighted sum of row losses of a linear model.

    .. math:: F(\theta) = \sum_i w_i\, \ell(z_i, y_i), \quad
              \nabla^2 F = \sum_i w_i\, A_i^\top \ell''(z_i, y_i)\, A_i, \quad
              z_i = A_i \theta + o_i

    with :math:`\ell''` the (Z, Z) Hessian of one row by automatic differentiation (by differences
    of gradients where the likelihood has no second derivative; ``differenced`` is True then) and
    :math:`A_i` built from the row's columns: raw numbers of kind ``"x"`` have Q coefficients, of
    kind ``"slopes"`` all but the intercept, of kind ``"one"`` only that, of kind ``"fixed"`` none
    (they stay 0).

    Args:
        loss: ``(z (B, Z), y (B,)) -> (B,)``.
        matrix: ``(N, Q)``, its first column ones.
        y: ``(N, ...)``, perhaps with the precision beside it: whatever the loss takes.
        weight: ``(N,)``.
        kinds: Z of them.
        offset: ``(N,)``, added to the first raw number; None for none.
        unit: ``(Z,)`` natural units, in which differences are taken; default 1.
    """

    def __init__(
        self,
        loss: RowLoss,
        matrix: Tensor,
        y: Tensor,
        weight: Tensor,
        kinds: Sequence[Kind],
        offset: Tensor | None = None,
        unit: Tensor | None = None,
    ) -> None:
        self.loss, self.matrix, self.y, self.weight = loss, matrix, y, weight
        self.kinds, self.offset = tuple(kinds), offset
        self.unit = torch.ones(len(kinds)) if unit is None else unit
        self.differenced = False
        ends = {"x": (0, matrix.shape[1]), "slopes": (1, matrix.shape[1])}
        ends |= {"one": (0, 1), "fixed": (0, 0)}
        self.columns = [slice(*ends[kind]) for kind in self.kinds]
        self.parts: list[slice] = []
        start = 0
        for columns in self.columns:
            self.parts.append(slice(start, start + columns.stop - columns.start))
            start = self.parts[-1].stop
        self.size = start
        self._rows = max(256, 2**22 // max(matrix.shape[1], len(kinds) ** 2))  # 32 MB per block

    def table(self, theta: Tensor) -> Tensor:
        """Coefficients as ``(Q, Z)``; what has no coefficient is 0."""
        table = theta.new_zeros(self.matrix.shape[1], len(self.kinds))
        for j, (part, rows) in enumerate(zip(self.parts, self.columns, strict=True)):
            table[rows, j] = theta[part]
        return table

    def pack(self, table: Tensor) -> Tensor:
        """The inverse of :meth:`table`."""
        return torch.cat([table[rows, j] for j, rows in enumerate(self.columns)])

    def linear(self, theta: Tensor, rows: slice = slice(None)) -> Tensor:
        """z without the offset, ``(B, Z)``."""
        return self.matrix[rows] @ self.table(theta)

    def z(self, theta: Tensor, rows: slice = slice(None)) -> Tensor:
        """The numbers that each row's loss depends on, ``(B, Z)``."""
        z = self.linear(theta, rows)
        if self.offset is not None:
            z[:, 0] += self.offset[rows]
        return z

    def blocks(self) -> list[slice]:
        """The rows in blocks that fit in memory."""
        count = len(self.y)
        return [slice(i, min(i + self._rows, count)) for i in range(0, count, self._rows)]

    def terms(self, theta: Tensor) -> Tensor:
        """The loss of each row, ``(N,)``, unweighted."""
        with torch.no_grad():
            return torch.cat([self.loss(self.z(theta, b), self.y[b]) for b in self.blocks()])

    def value(self, theta: Tensor) -> Tensor:
        """F, ``()``."""
        return self.weight @ self.terms(theta)

    def derivatives(self, theta: Tensor, free: Tensor | None = None) -> Derivatives:
        """F, its gradient and its Hessian; only as far as they concern ``free`` coefficients."""
        value, size, gradient = theta.new_zeros(()), theta.new_zeros(()), torch.zeros_like(theta)
        hessian = theta.new_zeros(self.size, self.size)
        moving = [
            j
            for j, part in enumerate(self.parts)
            if part.stop > part.start and (free is None or bool(free[part].any()))
        ]
        for rows in self.blocks():
            terms, g, h = self.row_derivatives(self.z(theta, rows), self.y[rows], moving)
            w = self.weight[rows]
            value += w @ terms
            size += w @ terms.abs()
            self._add_gradient(gradient, w.unsqueeze(1) * g, rows)
            self.add_outer(hessian, w.reshape(-1, 1, 1) * h, rows, moving)
        return Derivatives(value, gradient, hessian, size)

    def row_derivatives(
        self, z: Tensor, y: Tensor, columns: Sequence[int]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Loss ``(B,)``, gradient ``(B, Z)`` and Hessian ``(B, Z, Z)`` of each row by z."""
        if not self.differenced:
            found = exact_curvature(self.loss, z, y, columns)
            if found is not None:
                return found
            self.differenced = True
        return differenced_curvature(self.loss, z, y, columns, self.unit)

    def gradient(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """F and its gradient only."""
        value, gradient = theta.new_zeros(()), torch.zeros_like(theta)
        for rows in self.blocks():
            terms, g = row_gradient(self.loss, self.z(theta, rows), self.y[rows])
            w = self.weight[rows]
            value += w @ terms
            self._add_gradient(gradient, w.unsqueeze(1) * g, rows)
        return value, gradient

    def scores(self, theta: Tensor) -> Tensor:
        """Each row's gradient by z, unweighted, ``(N, Z)``."""
        found = [row_gradient(self.loss, self.z(theta, b), self.y[b])[1] for b in self.blocks()]
        return torch.cat(found)

    def _add_gradient(self, gradient: Tensor, g: Tensor, rows: slice) -> None:
        by_column = self.matrix[rows].T @ g  # (Q, Z)
        for j, (part, columns) in enumerate(zip(self.parts, self.columns, strict=True)):
            gradient[part] += by_column[columns, j]

    def add_outer(
        self, total: Tensor, h: Tensor, rows: slice, columns: Sequence[int] | None = None
    ) -> None:
        """total += sum_i A_i^T h_i A_i for h ``(B, Z, Z)``, each block by one matrix product."""
        x = self.matrix[rows]
        columns = range(len(self.parts)) if columns is None else columns
        for j in columns:
            for k in (k for k in columns if k <= j):
                left, right = self.parts[j], self.parts[k]
                a, b = x[:, self.columns[j]], x[:, self.columns[k]]
                block = a.T @ (h[:, j, k].unsqueeze(1) * b)
                total[left, right] += block
                if j != k:
                    total[right, left] += block.T
