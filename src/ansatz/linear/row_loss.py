"""The loss of one row as a function of all the numbers it depends on."""

from collections.abc import Callable, Iterator
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

    A learned constant (a spread that does not depend on x, the tail of a Student t, the thresholds
    of ordered classes) is one number or a list in the likelihood; here each number is a column, so
    that all derivatives are derivatives by row.

    Args:
        likelihood: gives the loss; it is not changed.
        outputs: P.
        function: ``(likelihood, raw, y) -> (B,)``; default ``likelihood.loss``.

    Returns:
        The function ``(z (B, Z), y) -> (B,)`` and the constants' present values ``(C,)``.
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
