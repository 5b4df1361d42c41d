"""The mass matrix of Hamiltonian samplers, by its inverse."""

from typing import NamedTuple

import torch
from torch import Tensor


class Metric(NamedTuple):
    r"""The mass matrix by its inverse, the covariance that positions are thought to have.

    .. math:: K(v) = \tfrac12 v^\top M^{-1} v, \qquad \dot\theta = M^{-1} v, \qquad v \sim N(0, M)

    Args:
        inverse: ``(D,)`` the diagonal, or ``(D, D)`` symmetric and positive definite.
        root: :math:`R` with :math:`R R^\top = M`: ``(D,)``, or ``(D, D)``.

    Example:
        >>> import torch
        >>> from ansatz.inference.samplers import Metric
        >>> Metric.of(torch.tensor([4.0, 1.0])).velocity(torch.ones(1, 2)).tolist()
        [[4.0, 1.0]]
    """

    inverse: Tensor
    root: Tensor

    @classmethod
    def of(cls, covariance: Tensor) -> "Metric":
        """The metric of positions with these variances ``(D,)`` or this covariance ``(D, D)``."""
        if covariance.ndim == 1:
            return cls(covariance, covariance.rsqrt())
        lower = torch.linalg.cholesky(covariance)
        eye = torch.eye(len(covariance), dtype=covariance.dtype)
        root = torch.linalg.solve_triangular(lower.mT, eye, upper=True)
        # In rows, as a checkpoint gives them back: products round by their layout.
        return cls(covariance.contiguous(), root.contiguous())

    def velocity(self, momentum: Tensor) -> Tensor:
        """M^-1 v, ``(C, D)``."""
        return momentum * self.inverse if self.inverse.ndim == 1 else momentum @ self.inverse

    def kinetic(self, momentum: Tensor) -> Tensor:
        """The kinetic energy, ``(C,)``."""
        return 0.5 * (momentum * self.velocity(momentum)).sum(-1)

    def draw(self, like: Tensor, generator: torch.Generator | None) -> Tensor:
        """Momenta v ~ N(0, M) in the shape of positions ``(C, D)``."""
        noise = torch.randn(like.shape, generator=generator, dtype=like.dtype)
        return noise * self.root if self.root.ndim == 1 else noise @ self.root.mT
