"""The multivariate normal distribution: vectors of numbers that vary together."""

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ansatz.likelihoods.dispersion import PositiveHead
from ansatz.likelihoods.distribution import VectorDistribution
from ansatz.likelihoods.likelihood import (
    Likelihood,
    require_same_shape,
    unit_and_floor,
    weighted_mean,
    weighted_sd,
)
from ansatz.likelihoods.normal import NormalDistribution
from ansatz.likelihoods.support import refuse_outside
from ansatz.spec import TargetSpec


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

    symmetric = True

    def __init__(self, mean: Tensor, sds: Tensor, coefficients: Tensor) -> None:
        self._mean, self.sds = torch.broadcast_tensors(mean, sds)
        self.coefficients = coefficients

    @classmethod
    def of(cls, mean: Tensor, covariance: Tensor) -> "MultivariateNormalDistribution":
        """From a positive definite covariance matrix."""
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
            return self.rsample(shape, generator)

    def rsample(
        self, shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """The draws of ``sample``: the mean plus L times standard normal noise."""
        noise = torch.randn(
            (*self.batch_shape, math.prod(shape), *self.event_shape),
            generator=generator,
            dtype=self._mean.dtype,
            device=self._mean.device,
        )
        # All draws of a row at once: one product of matrices per row.
        draw = (noise @ self.scale_tril.mT).movedim(-2, 0)
        return self._mean + draw.reshape(*shape, *self._mean.shape)


class MultivariateNormal(Likelihood):
    r"""Vectors of K real outcomes with a mean and a covariance matrix.

    .. math:: -\log p(y) = \sum_{i=1}^K \left[\frac{e_i^2}{2 \sigma_i^2} + \log \sigma_i
              + \frac12 \log 2\pi\right], \qquad
              e_i = (y_i - \mu_i) - \sum_{j < i} b_{ij} (y_j - \mu_j)

    Number i is normal given those before it, with regression coefficients b and standard deviation
    sigma: the Cholesky factor of the covariance is :math:`(I - B)^{-1} \mathrm{diag}(\sigma)`.
    Every B and every positive sigma is a covariance matrix and the other way round, and the loss
    needs no matrix inverse: raw numbers of any size keep it finite.

    raw holds the K means (identity link), then r_i with :math:`\sigma_i` = unit_i * softplus(r_i) +
    floor_i, then the K (K - 1) / 2 coefficients row by row, :math:`b_{ij}` = unit_i / unit_j * raw.
    Units are the sd of each number, floors those of the normal distribution. As there, the training
    loss of a predicted dispersion is beta-NLL: term i is weighted by :math:`\sigma_i^{2\beta}`,
    held constant.

    Args:
        covariance: ``"full"``, or ``"diagonal"``: K independent normal distributions.
        dispersion: sigma and b ``"predicted"`` from x, or ``"constant"`` and learned once.
        beta: 0 trains by the plain NLL; see :class:`~ansatz.likelihoods.Normal`.

    Shapes:
        - raw: ``(..., P)``, P = K + K (K + 1) / 2, 2 K if diagonal, K if dispersion is constant.
        - y: ``(..., K)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import MultivariateNormal
        >>> from ansatz.spec import TargetSpec
        >>> MultivariateNormal().outputs(TargetSpec(event=(3,)))
        9

    References:
        Pourahmadi (1999), Joint mean-covariance models with applications to longitudinal data.
        https://doi.org/10.1093/biomet/86.3.677
    """

    name = "multivariate_normal"
    event_ndim = 1

    def __init__(
        self,
        *,
        covariance: Literal["full", "diagonal"] = "full",
        dispersion: Literal["predicted", "constant"] = "predicted",
        beta: float = 0.5,
    ) -> None:
        super().__init__()
        if covariance not in ("full", "diagonal"):
            raise ValueError(f"covariance must be 'full' or 'diagonal', got {covariance!r}.")
        if dispersion not in ("predicted", "constant"):
            raise ValueError(f"dispersion must be 'predicted' or 'constant', got {dispersion!r}.")
        if not 0 <= beta <= 1:
            raise ValueError(f"beta of MultivariateNormal must be in [0, 1], got {beta}.")
        self.covariance, self.beta, self.size = covariance, beta, 0
        self.dispersion = PositiveHead(dispersion)
        learned = dispersion == "constant" and covariance == "full"
        self.coefficients = nn.Parameter(torch.zeros(0)) if learned else None

    def _resize(self, size: int) -> None:
        """Remembers K, and makes room for the learned coefficients."""
        pairs = size * (size - 1) // 2
        if self.coefficients is not None and len(self.coefficients) != pairs:
            self.coefficients = nn.Parameter(self.coefficients.detach().new_zeros(pairs))
        self.size = size

    def outputs(self, target: TargetSpec) -> int:
        """K means and, unless constant, K standard deviations and K (K - 1) / 2 coefficients."""
        if len(target.event) != 1 or target.event[0] < 1:
            raise ValueError(f"{self.name} needs vectors, TargetSpec(event=(K,)), got {target}.")
        self._resize(size := target.event[0])
        return self._count(size)

    def _count(self, size: int) -> int:
        if not self.dispersion.outputs:
            return size
        return 2 * size + (size * (size - 1) // 2 if self.covariance == "full" else 0)

    def check(self, y: Tensor) -> None:
        """Vectors of finite numbers."""
        _require_vectors(self.name, y)
        refuse_outside(~y.isfinite(), y, "Multivariate normal outcomes must be finite numbers")

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Unit and floor of each number."""
        _require_vectors(self.name, y)
        self._resize(y.shape[-1])
        self.dispersion.observe(*unit_and_floor(y, weight))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The mean, and the covariance by the regression of each number on those before it."""
        mean, sd = weighted_mean(y, weight), weighted_sd(y, weight)
        seen = weight > 0
        z = (y[seen] - mean) / self.dispersion.unit.to(y)
        moments = (z.T * weight[seen]) @ z / weight.sum()  # (K, K)
        coefficients, sds = _regressions(moments.double(), self.covariance == "full")
        r = self.dispersion.start(sds.to(y) * self.dispersion.unit.to(y))
        scale = torch.where(sd > 0, sd, 1.0)
        if not self.dispersion.outputs:
            if self.coefficients is not None:
                with torch.no_grad():
                    self.coefficients.copy_(coefficients)
            return mean, scale
        shape = torch.cat([r, coefficients.to(y)])
        return torch.cat([mean, shape]), torch.cat([scale, torch.ones_like(shape)])

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The negative log-likelihood."""
        distribution = self.distribution(raw)
        require_same_shape(self.name, raw, y, event=tuple(distribution.event_shape))
        return -distribution.log_prob(y)

    def training_loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """Each term of the loss times its sigma^(2 beta), in units of y and held constant."""
        if not self.dispersion.outputs or self.beta == 0:
            return self.loss(raw, y)
        distribution = self.distribution(raw)
        require_same_shape(self.name, raw, y, event=tuple(distribution.event_shape))
        factor = (distribution.sds / self.dispersion.unit.to(raw.dtype)).detach() ** (2 * self.beta)
        return -(factor * distribution.log_terms(y)).sum(-1)

    def distribution(self, raw: Tensor) -> MultivariateNormalDistribution:
        """N(mean, covariance)."""
        size = self._size_of(raw)
        mean, rest = raw[..., :size], raw[..., size:]
        sds = self.dispersion(
            rest[..., :size, None] if self.dispersion.outputs else mean[..., None]
        )
        if self.covariance == "diagonal":
            matrix = raw.new_zeros((*raw.shape[:-1], size, size))
        else:
            entries = rest[..., size:] if self.coefficients is None else self.coefficients
            entries = entries.to(raw.dtype).expand(*raw.shape[:-1], size * (size - 1) // 2)
            unit = self.dispersion.unit.to(raw.dtype).expand(size)
            matrix = strictly_lower(entries, size) * (unit.unsqueeze(-1) / unit)
        return MultivariateNormalDistribution(mean, sds, matrix)

    def _size_of(self, raw: Tensor) -> int:
        """K, from the number of raw numbers."""
        count = raw.shape[-1]
        if not self.dispersion.outputs:
            size = count
        elif self.covariance == "diagonal":
            size = count // 2
        else:  # count = K (K + 3) / 2
            size = (math.isqrt(9 + 8 * count) - 3) // 2
        if self._count(size) != count or (self.size and size != self.size):
            raise ValueError(
                f"{self.name} got raw {tuple(raw.shape)}: {count} raw numbers do not describe "
                f"vectors of {self.size or 'any number of'} outcomes."
            )
        return size

    def _load_from_state_dict(self, state: Any, prefix: str, *rest: Any) -> None:
        saved = state.get(prefix + "coefficients")
        if self.coefficients is not None and saved is not None:
            self._resize((1 + math.isqrt(1 + 8 * len(saved))) // 2)
        super()._load_from_state_dict(state, prefix, *rest)


def _require_vectors(name: str, y: Tensor) -> None:
    if y.ndim < 2:
        raise ValueError(f"{name} needs vectors, y of shape (B, K), got {tuple(y.shape)}.")


def _regressions(moments: Tensor, full: bool) -> tuple[Tensor, Tensor]:
    """Coefficients of each number on those before it, row by row, and the sds that remain."""
    rows, variances = [], [moments[0, 0]]
    for i in range(1, len(moments)):
        before, with_it = moments[:i, :i], moments[:i, i]
        if full:
            # By the pseudo-inverse: numbers that determine each other share the coefficient.
            b = torch.linalg.pinv(before, hermitian=True, rtol=1e-12) @ with_it
            variances.append(moments[i, i] - 2 * b @ with_it + b @ before @ b)
            rows.append(b)
        else:
            variances.append(moments[i, i])
    coefficients = torch.cat(rows) if rows else moments.new_zeros(0)
    return coefficients, torch.stack(variances).clamp(min=0).sqrt()
