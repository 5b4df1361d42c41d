"""The loss of one row as a function of all the numbers it depends on, with derivatives."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.func import functional_call

from ansatz.errors import UsageError
from ansatz.likelihoods.likelihood import Likelihood

RowLoss = Callable[[Tensor, Tensor], Tensor]
LikelihoodLoss = Callable[[Likelihood, Tensor, Tensor], Tensor]


class Constants(NamedTuple):
    """The learned constants of a likelihood: their names, shapes and columns among C numbers."""

    names: tuple[str, ...]
    shapes: tuple[torch.Size, ...]

    @classmethod
    def of(cls, likelihood: Likelihood) -> "Constants":
        """Of every parameter; one that is neither a number nor a list of them is refused."""
        found = dict(likelihood.named_parameters())
        for name, value in found.items():
            if value.ndim > 1:
                raise UsageError(
                    f"a linear model takes constants that are numbers or lists of them, but "
                    f"'{name}' of this {likelihood.name} has shape {tuple(value.shape)}. "
                    "Fit each target by itself."
                )
        return cls(tuple(found), tuple(value.shape for value in found.values()))

    def slices(self) -> Iterator[tuple[str, slice]]:
        """The columns of each constant, in order."""
        start = 0
        for name, shape in zip(self.names, self.shapes, strict=True):
            yield name, slice(start, start + shape.numel())
            start += shape.numel()

    def by_row(self, columns: Tensor) -> dict[str, Tensor]:
        """Columns ``(B, C)`` as the constants' values row by row: ``(B,)`` or ``(B, m)`` each."""
        parts = zip(self.slices(), self.shapes, strict=True)
        return {
            name: columns[:, part] if shape else columns[:, part.start]
            for (name, part), shape in parts
        }

    def values(self, likelihood: Likelihood) -> Tensor:
        """The present values, ``(C,)`` in float64."""
        empty = torch.zeros(0, dtype=torch.float64)
        found = [parameter.detach().double().reshape(-1) for parameter in likelihood.parameters()]
        return torch.cat([empty, *found])

    def store(self, likelihood: Likelihood, values: Tensor) -> None:
        """Puts values ``(C,)`` into the likelihood."""
        parameters = dict(likelihood.named_parameters())
        with torch.no_grad():
            for name, part in self.slices():
                parameters[name].copy_(values[part].reshape(parameters[name].shape))


def row_loss(
    likelihood: Likelihood, outputs: int, function: LikelihoodLoss | None = None
) -> tuple[RowLoss, Tensor]:
    r"""The likelihood's loss as a function of z = (raw, constants), one row of each per outcome.

    A learned constant (a dispersion that does not depend on x, the tail of a Student t, the
    thresholds of ordered classes) is one number or a list in the likelihood; here each number is a
    column, so that all derivatives are derivatives by row.
    """
    module = _Loss(likelihood, function)
    constants = Constants.of(likelihood)

    def loss(z: Tensor, y: Tensor) -> Tensor:
        state = constants.by_row(z[:, outputs:])
        named = {f"likelihood.{name}": value for name, value in state.items()}
        return functional_call(module, named, (z[:, :outputs], y))

    return loss, constants.values(likelihood)


class _Loss(torch.nn.Module):
    """A likelihood's loss as a forward, which ``functional_call`` needs."""

    def __init__(self, likelihood: Likelihood, function: LikelihoodLoss | None) -> None:
        super().__init__()
        self.likelihood, self.function = likelihood, function

    def forward(self, raw: Tensor, y: Tensor) -> Tensor:
        if self.function is None:
            return self.likelihood.loss(raw, y)
        return self.function(self.likelihood, raw, y)


STEP = 2e-3  # in units; the error is some STEP^4 / 30 of a unit's fifth derivative
_WORDS = ("first derivatives only", "is not implemented", "differentiate twice")


def exact_curvature(
    loss: RowLoss, z: Tensor, y: Tensor, columns: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Loss ``(B,)``, gradient ``(B, Z)`` and Hessian ``(B, Z, Z)`` of each row.

    None for a loss that has no second derivative, as the tails of the gamma, beta or
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
