"""The total loss of a linear model as a function of its coefficients, with two derivatives.

Legend: N rows, Q columns with the intercept, P raw numbers, C learned constants of the likelihood,
Z = P + C numbers that a row's loss depends on.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.func import functional_call

from ansatz.errors import UsageError
from ansatz.likelihoods.likelihood import Likelihood

Kind = Literal["x", "one", "fixed"]
RowLoss = Callable[[Tensor, Tensor], Tensor]
LawLoss = Callable[[Likelihood, Tensor, Tensor], Tensor]


class Derivatives(NamedTuple):
    """Value ``()``, gradient ``(T,)`` and Hessian ``(T, T)`` of the total loss.

    ``size``, the sum of the terms' absolute values, tells how far the value can be trusted.

    Example:
        >>> import torch
        >>> from ansatz.linear.criterion import Derivatives
        >>> zero = torch.zeros(())
        >>> Derivatives(zero, torch.zeros(2), torch.eye(2), zero).hessian.shape
        torch.Size([2, 2])
    """

    value: Tensor
    gradient: Tensor
    hessian: Tensor
    size: Tensor


def row_loss(
    likelihood: Likelihood, outputs: int, function: LawLoss | None = None
) -> tuple[RowLoss, Tensor]:
    r"""The likelihood's loss as a function of z = (raw, constants), one row of each per outcome.

    A learned constant (a spread that does not depend on x, the tail of a Student t) is one number
    in the likelihood; here it is a column, so that all derivatives are derivatives by row.

    Args:
        likelihood: gives the loss; it is not changed.
        outputs: P.
        function: ``(likelihood, raw, y) -> (B,)``; default ``likelihood.loss``.

    Returns:
        The function ``(z (B, Z), y) -> (B,)`` and the constants' present values ``(C,)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Normal
        >>> loss, constants = row_loss(Normal(dispersion="constant"), outputs=1)
        >>> loss(torch.zeros(3, 2), torch.zeros(3)).shape, constants.shape
        (torch.Size([3]), torch.Size([1]))
    """
    module = _Loss(likelihood, function)
    names = [name for name, _ in module.named_parameters()]
    values = [parameter.detach().double() for parameter in module.parameters()]
    if any(value.numel() != 1 for value in values):
        raise UsageError(
            f"a linear model takes one outcome per row, but this {likelihood.name} holds one "
            "constant per target. Fit each target by itself."
        )

    def loss(z: Tensor, y: Tensor) -> Tensor:
        raw, constants = z[:, :outputs], z[:, outputs:]
        state = {name: constants[:, c] for c, name in enumerate(names)}
        return functional_call(module, state, (raw, y))

    empty = torch.zeros(0, dtype=torch.float64)
    return loss, torch.cat([empty, *(value.reshape(1) for value in values)])


class _Loss(torch.nn.Module):
    """A likelihood's loss as a forward, which ``functional_call`` needs."""

    def __init__(self, likelihood: Likelihood, function: LawLoss | None) -> None:
        super().__init__()
        self.likelihood, self.function = likelihood, function

    def forward(self, raw: Tensor, y: Tensor) -> Tensor:
        if self.function is None:
            return self.likelihood.loss(raw, y)
        return self.function(self.likelihood, raw, y)


class Criterion:
    r"""The weighted sum of row losses of a linear model.

    .. math:: F(\theta) = \sum_i w_i\, \ell(z_i, y_i), \quad
              \nabla^2 F = \sum_i w_i\, A_i^\top \ell''(z_i, y_i)\, A_i, \quad
              z_i = A_i \theta + o_i

    with :math:`\ell''` the (Z, Z) Hessian of one row by automatic differentiation and
    :math:`A_i` built from the row's columns: raw numbers of kind ``"x"`` have Q coefficients,
    of kind ``"one"`` a single one, of kind ``"fixed"`` none (they stay 0).

    Args:
        loss: ``(z (B, Z), y (B,)) -> (B,)``.
        matrix: ``(N, Q)``, its first column ones.
        y: ``(N,)``, or ``(N, 2)`` with the precision beside it: whatever the loss takes.
        weight: ``(N,)``.
        kinds: Z of them.
        offset: ``(N,)``, added to the first raw number; None for none.

    Example:
        >>> import torch
        >>> from ansatz.linear.criterion import Criterion
        >>> one = torch.ones(3, 1, dtype=torch.float64)
        >>> y, weight = 2 * one[:, 0], one[:, 0]
        >>> squares = Criterion(lambda z, y: (z[:, 0] - y) ** 2, one, y, weight, ["x"])
        >>> squares.derivatives(torch.zeros(1, dtype=torch.float64)).gradient
        tensor([-12.], dtype=torch.float64)
    """

    def __init__(
        self,
        loss: RowLoss,
        matrix: Tensor,
        y: Tensor,
        weight: Tensor,
        kinds: Sequence[Kind],
        offset: Tensor | None = None,
    ) -> None:
        self.loss, self.matrix, self.y, self.weight = loss, matrix, y, weight
        self.kinds, self.offset = tuple(kinds), offset
        sizes = {"x": matrix.shape[1], "one": 1, "fixed": 0}
        self.parts: list[slice] = []
        start = 0
        for kind in self.kinds:
            self.parts.append(slice(start, start + sizes[kind]))
            start += sizes[kind]
        self.size = start
        self._rows = max(256, 2**22 // max(matrix.shape[1], len(kinds) ** 2))  # 32 MB per block

    def table(self, theta: Tensor) -> Tensor:
        """Coefficients as ``(Q, Z)``; what has no coefficient is 0."""
        table = theta.new_zeros(self.matrix.shape[1], len(self.kinds))
        for j, part in enumerate(self.parts):
            table[: part.stop - part.start, j] = theta[part]
        return table

    def pack(self, table: Tensor) -> Tensor:
        """The inverse of :meth:`table`."""
        columns = [table[: part.stop - part.start, j] for j, part in enumerate(self.parts)]
        return torch.cat(columns)

    def linear(self, theta: Tensor, rows: slice = slice(None)) -> Tensor:
        """z without the offset, ``(B, Z)``."""
        return self.matrix[rows] @ self.table(theta)

    def z(self, theta: Tensor, rows: slice = slice(None)) -> Tensor:
        """What each row's loss depends on, ``(B, Z)``."""
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

    def row_derivatives(self, z: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Loss ``(B,)``, gradient ``(B, Z)`` and Hessian ``(B, Z, Z)`` of each row."""
        z = z.detach().requires_grad_()
        with torch.enable_grad():
            terms = self.loss(z, y)
            (gradient,) = torch.autograd.grad(terms.sum(), z, create_graph=True)
            hessian = [self._row_of_hessian(gradient[:, j], z) for j in range(z.shape[1])]
        return terms.detach(), gradient.detach(), torch.stack(hessian, 1)

    def _row_of_hessian(self, gradient: Tensor, z: Tensor) -> Tensor:
        if not gradient.requires_grad:  # linear in z: torch records nothing to differentiate
            return torch.zeros_like(z)
        (row,) = torch.autograd.grad(
            gradient.sum(), z, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        return row

    def derivatives(self, theta: Tensor) -> Derivatives:
        """F, its gradient and its Hessian."""
        value, size, gradient = theta.new_zeros(()), theta.new_zeros(()), torch.zeros_like(theta)
        hessian = theta.new_zeros(self.size, self.size)
        for rows in self.blocks():
            terms, g, h = self.row_derivatives(self.z(theta, rows), self.y[rows])
            w = self.weight[rows]
            value += w @ terms
            size += w @ terms.abs()
            self._add_gradient(gradient, w.unsqueeze(1) * g, rows)
            self.add_outer(hessian, w.reshape(-1, 1, 1) * h, rows)
        return Derivatives(value, gradient, hessian, size)

    def gradient(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """F and its gradient only."""
        value, gradient = theta.new_zeros(()), torch.zeros_like(theta)
        for rows in self.blocks():
            z = self.z(theta, rows).detach().requires_grad_()
            with torch.enable_grad():
                terms = self.weight[rows] @ self.loss(z, self.y[rows])
                (g,) = torch.autograd.grad(terms, z)
            value += terms.detach()
            self._add_gradient(gradient, g, rows)
        return value, gradient

    def scores(self, theta: Tensor) -> Tensor:
        """Each row's gradient by z, unweighted, ``(N, Z)``."""
        found = [self.row_derivatives(self.z(theta, b), self.y[b])[1] for b in self.blocks()]
        return torch.cat(found)

    def _add_gradient(self, gradient: Tensor, g: Tensor, rows: slice) -> None:
        by_column = self.matrix[rows].T @ g  # (Q, Z)
        for j, part in enumerate(self.parts):
            gradient[part] += by_column[: part.stop - part.start, j]

    def add_outer(self, total: Tensor, h: Tensor, rows: slice) -> None:
        """total += sum_i A_i^T h_i A_i for h ``(B, Z, Z)``, each block by one matrix product."""
        x = self.matrix[rows]
        for j, left in enumerate(self.parts):
            for k, right in enumerate(self.parts[: j + 1]):
                if left.stop == left.start or right.stop == right.start:
                    continue
                a = x[:, : left.stop - left.start]
                block = a.T @ (h[:, j, k].unsqueeze(1) * x[:, : right.stop - right.start])
                total[left, right] += block
                if j != k:
                    total[right, left] += block.T
