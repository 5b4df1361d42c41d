"""The second derivatives of each row's loss: exact, or by differences of exact gradients."""

import torch
from torch import Tensor

from ansatz.linear.row_loss import RowLoss

STEP = 2e-3  # in units; the error is some STEP^4 / 30 of a unit's fifth derivative
_WORDS = ("first derivatives only", "is not implemented", "differentiate twice")


def exact_curvature(loss: RowLoss, z: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor] | None:
    """Loss ``(B,)``, gradient ``(B, Z)`` and Hessian ``(B, Z, Z)`` of each row.

    None for a loss that says it has no second derivative, as the tails of the gamma, beta or
    Student laws do.

    Example:
        >>> import torch
        >>> cube = lambda z, y: z[:, 0] ** 3
        >>> exact_curvature(cube, torch.tensor([[2.0]]), torch.zeros(1))[2]
        tensor([[[12.]]])
    """
    z = z.detach().requires_grad_()
    with torch.enable_grad():
        terms = loss(z, y)
        try:
            (gradient,) = torch.autograd.grad(terms.sum(), z, create_graph=True)
            hessian = [_row_of_hessian(gradient[:, j], z) for j in range(z.shape[1])]
        except RuntimeError as error:
            if not any(words in str(error) for words in _WORDS):
                raise
            return None
    return terms.detach(), gradient.detach(), torch.stack(hessian, 1)


def _row_of_hessian(gradient: Tensor, z: Tensor) -> Tensor:
    if not gradient.requires_grad:  # linear in z: torch records nothing to differentiate
        return torch.zeros_like(z)
    (row,) = torch.autograd.grad(
        gradient.sum(), z, retain_graph=True, allow_unused=True, materialize_grads=True
    )
    return row


def differenced_curvature(
    loss: RowLoss, z: Tensor, y: Tensor, unit: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    r"""The same from gradients at four points per number, :math:`h` = STEP units apart.

    .. math:: \ell'' \approx \frac{8 (g(z + h) - g(z - h)) - (g(z + 2h) - g(z - 2h))}{12 h}

    made symmetric. With gradients to ten digits it is good to some 1e-7: Newton's method does not
    notice, and standard errors keep six digits.

    Example:
        >>> import torch
        >>> cube = lambda z, y: z[:, 0] ** 3
        >>> z = torch.tensor([[2.0]], dtype=torch.float64)
        >>> differenced_curvature(cube, z, torch.zeros(1), torch.ones(1))[2]
        tensor([[[12.0000]]], dtype=torch.float64)

    References:
        Abramowitz and Stegun (1964), table 25.2.
    """
    terms, gradient = row_gradient(loss, z, y)
    rows = []
    for j in range(z.shape[1]):
        h = torch.zeros_like(z[0])
        h[j] = STEP * float(unit[j])
        near = row_gradient(loss, z + h, y)[1] - row_gradient(loss, z - h, y)[1]
        far = row_gradient(loss, z + 2 * h, y)[1] - row_gradient(loss, z - 2 * h, y)[1]
        rows.append((8 * near - far) / (12 * h[j]))
    hessian = torch.stack(rows, 1)
    return terms, gradient, (hessian + hessian.mT) / 2


def row_gradient(loss: RowLoss, z: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Loss ``(B,)`` and gradient ``(B, Z)`` of each row.

    Example:
        >>> import torch
        >>> row_gradient(lambda z, y: z[:, 0] ** 2, torch.tensor([[3.0]]), torch.zeros(1))
        (tensor([9.]), tensor([[6.]]))
    """
    z = z.detach().requires_grad_()
    with torch.enable_grad():
        terms = loss(z, y)
        (gradient,) = torch.autograd.grad(terms.sum(), z)
    return terms.detach(), gradient
