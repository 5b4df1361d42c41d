"""The second derivatives of each row's loss: exact, or by differences of exact gradients."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ansatz.linear.row_loss import RowLoss

STEP = 2e-3  # in units; the error is some STEP^4 / 30 of a unit's fifth derivative
_WORDS = ("first derivatives only", "is not implemented", "differentiate twice")


def exact_curvature(
    loss: RowLoss, z: Tensor, y: Tensor, columns: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Loss ``(B,)``, gradient ``(B, Z)`` and Hessian ``(B, Z, Z)`` of each row.

    None for a loss that says it has no second derivative, as the tails of the gamma, beta or
    Student distributions do. Numbers that are not among ``columns`` are held: their derivatives are
    0.
    """
    whole, square = torch.zeros_like(z), z.new_zeros(len(z), z.shape[1], z.shape[1])
    if not columns:
        with torch.no_grad():
            return loss(z, y), whole, square
    chosen = z[:, columns].detach().requires_grad_()
    with torch.enable_grad():
        terms = loss(_with(z, columns, chosen), y)
        try:
            (gradient,) = torch.autograd.grad(terms.sum(), chosen, create_graph=True)
            hessian = _rows_of_hessian(gradient, chosen)
        except RuntimeError as error:
            if not any(words in str(error) for words in _WORDS):
                raise
            return None
    whole[:, columns] = gradient.detach()
    for j, row in zip(columns, hessian, strict=True):
        square[:, j, columns] = row
    return terms.detach(), whole, square


def _with(z: Tensor, columns: Sequence[int], chosen: Tensor) -> Tensor:
    """z with these columns replaced."""
    place = {column: j for j, column in enumerate(columns)}
    parts = [chosen[:, place[j]] if j in place else z[:, j].detach() for j in range(z.shape[1])]
    return torch.stack(parts, 1)


def _rows_of_hessian(gradient: Tensor, z: Tensor) -> Sequence[Tensor]:
    if not gradient.requires_grad:  # linear in z: torch records nothing to differentiate
        return [torch.zeros_like(z) for _ in gradient.unbind(1)]
    rows = []
    for g in gradient.unbind(1):
        (row,) = torch.autograd.grad(
            g.sum(), z, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        rows.append(row)
    return rows


def differenced_curvature(
    loss: RowLoss, z: Tensor, y: Tensor, columns: Sequence[int], unit: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    r"""The same from gradients at four points per number, :math:`h` = STEP units apart.

    .. math:: \ell'' \approx \frac{8 (g(z + h) - g(z - h)) - (g(z + 2h) - g(z - 2h))}{12 h}

    made symmetric. With gradients to ten digits it is good to some 1e-7: Newton's method does not
    notice, and standard errors keep six digits.

    References:
        Abramowitz and Stegun (1964), table 25.2.
    """
    terms, gradient = row_gradient(loss, z, y)
    hessian = z.new_zeros(len(z), z.shape[1], z.shape[1])
    for j in columns:
        h = torch.zeros_like(z[0])
        h[j] = STEP * float(unit[j])
        near = row_gradient(loss, z + h, y)[1] - row_gradient(loss, z - h, y)[1]
        far = row_gradient(loss, z + 2 * h, y)[1] - row_gradient(loss, z - 2 * h, y)[1]
        hessian[:, j, columns] = ((8 * near - far) / (12 * h[j]))[:, columns]
    return terms, gradient, (hessian + hessian.mT) / 2


def row_gradient(loss: RowLoss, z: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Loss ``(B,)`` and gradient ``(B, Z)`` of each row."""
    z = z.detach().requires_grad_()
    with torch.enable_grad():
        terms = loss(z, y)
        (gradient,) = torch.autograd.grad(terms.sum(), z)
    return terms.detach(), gradient
