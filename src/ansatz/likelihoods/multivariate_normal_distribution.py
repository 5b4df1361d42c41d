"""The multivariate normal distribution as a chain of regressions."""

import math

import torch
from torch import Tensor

from ansatz.likelihoods.normal import NormalDistribution
from ansatz.likelihoods.vector_distribution import VectorDistribution


def strictly_lower(entries: Tensor, size: int) -> Tensor:
    """A ``(..., K, K)`` matrix with ``entries`` ``(..., K (K - 1) / 2)`` below its diagonal."""
    row, column = torch.tril_indices(size, size, -1, device=entries.device)
    flat = entries.new_zeros((*entries.shape[:-1], size * size))
    flat = flat.index_copy(-1, row * size + column, entries)
    return flat.reshape(*entries.shape[:-1], size, size)


class MultivariateNormalDistribution(VectorDistribution):
    r"""Normal vectors: each number is normal given those before it.

    .. math:: y_i = \mu_i + \sum_{j < i} b_{ij} (y_j - \mu_j) + \sigma_i \varepsilon_i

    The covariance is :math:`L L^\top` with :math:`L = (I - B)^{-1} \mathrm{diag}(\sigma)`.

    Args:
        mean: ``(..., K)``.
        sds: ``(..., K)``, the :math:`\sigma_i`, positive.
        coefficients: ``(..., K, K)``, B, strictly lower triangular.

    Example:
        >>> import torch
        >>> B = torch.tensor([[0.0, 0.0], [0.5, 0.0]])
        >>> MultivariateNormalDistribution(torch.zeros(2), torch.ones(2), B).covariance
        tensor([[1.0000, 0.5000],
                [0.5000, 1.2500]])

    References:
        Pourahmadi (1999), Joint mean-covariance models with applications to longitudinal data.
        https://doi.org/10.1093/biomet/86.3.677
    """

    def __init__(self, mean: Tensor, sds: Tensor, coefficients: Tensor) -> None:
        self._mean, self.sds = torch.broadcast_tensors(mean, sds)
        self.coefficients = coefficients

    @classmethod
    def of(cls, mean: Tensor, covariance: Tensor) -> "MultivariateNormalDistribution":
        """From a positive definite covariance matrix.

        Example:
            >>> import torch
            >>> MultivariateNormalDistribution.of(torch.zeros(2), 4 * torch.eye(2)).sds
            tensor([2., 2.])
        """
        factor = torch.linalg.cholesky(covariance)
        sds = factor.diagonal(dim1=-2, dim2=-1)
        identity = torch.eye(factor.shape[-1]).to(factor)
        inverse = torch.linalg.solve_triangular(
            factor / sds.unsqueeze(-2), identity.expand_as(factor), upper=False, unitriangular=True
        )
        return cls(mean, sds, identity - inverse)

    @property
    def mean(self) -> Tensor:
        """The location, ``(..., K)``."""
        return self._mean

    @property
    def mode(self) -> Tensor:
        """The location."""
        return self._mean

    @property
    def median(self) -> Tensor:
        """The location."""
        return self._mean

    @property
    def scale_tril(self) -> Tensor:
        """L, the Cholesky factor of the covariance, ``(..., K, K)``."""
        identity = torch.eye(self.sds.shape[-1]).to(self.sds)
        return torch.linalg.solve_triangular(
            identity - self.coefficients,
            torch.diag_embed(self.sds),
            upper=False,
            unitriangular=True,
        )

    @property
    def covariance(self) -> Tensor:
        """L L', ``(..., K, K)``."""
        factor = self.scale_tril
        return factor @ factor.mT

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance, ``(..., K)``."""
        return (self.scale_tril**2).sum(-1)

    @property
    def entropy(self) -> Tensor:
        """The sum of log sigma, plus K log(2 pi e) / 2."""
        return (self.sds.log() + 0.5 * math.log(2 * math.pi * math.e)).sum(-1)

    @property
    def marginal(self) -> NormalDistribution:
        """The normal distribution of each number."""
        return NormalDistribution(self._mean, self.variance.sqrt())

    def log_terms(self, y: Tensor) -> Tensor:
        """The log density of each number given those before it, ``(..., K)``."""
        gap = y - self._mean
        rest = gap - (self.coefficients * gap.unsqueeze(-2)).sum(-1)
        return NormalDistribution(torch.zeros_like(rest), self.sds).log_prob(rest)

    def log_prob(self, y: Tensor) -> Tensor:
        """The log density, by the chain of regressions."""
        return self.log_terms(y).sum(-1)

    def sample(
        self, shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """Independent vectors, ``(*shape, ..., K)``."""
        with torch.no_grad():
            count = math.prod(shape)
            noise = torch.randn(
                (*self.batch_shape, count, *self.event_shape),
                generator=generator,
                dtype=self._mean.dtype,
                device=self._mean.device,
            )
            # All draws of a row at once: one product of matrices per row.
            draw = (noise @ self.scale_tril.mT).movedim(-2, 0)
            return self._mean + draw.reshape(*shape, *self._mean.shape)
