"""What Newton's method needs of a loss."""

from typing import Protocol

from torch import Tensor

from ansatz.linear.criterion import Derivatives


class Objective(Protocol):
    """Value, derivatives, and how far a step moves the rows.

    Example:
        >>> from ansatz.linear.criterion import Criterion
        >>> hasattr(Criterion, "derivatives") and hasattr(Criterion, "linear")
        True
    """

    y: Tensor
    weight: Tensor

    def value(self, theta: Tensor) -> Tensor:
        """The total loss."""

    def derivatives(self, theta: Tensor, free: Tensor | None = None) -> Derivatives:
        """With gradient and Hessian, at least of the free coefficients."""

    def gradient(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Value and gradient only."""

    def linear(self, theta: Tensor) -> Tensor:
        """``(N, Z)``: the numbers that each row's loss depends on."""
