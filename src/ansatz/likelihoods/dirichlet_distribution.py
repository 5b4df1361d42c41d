"""The Dirichlet distribution as a distribution of compositions."""

import math

import torch
from torch import Tensor

from ansatz.likelihoods.beta import BetaDistribution
from ansatz.likelihoods.special.gamma import HALF_LOG_2PI, stirling
from ansatz.likelihoods.special.tensors import wide
from ansatz.likelihoods.vector_distribution import VectorDistribution


class DirichletDistribution(VectorDistribution):
    r"""K positive parts of a whole, with means mu and precision phi = 1 / dispersion.

    .. math:: p(y) = \Gamma(\phi) \prod_k \frac{y_k^{\mu_k\phi - 1}}{\Gamma(\mu_k\phi)}

    Args:
        logits: ``(..., K)``; mu is their softmax.
        dispersion: ``(...)``, positive; the variance of part k is mu_k (1 - mu_k) / (1 + phi).

    Example:
        >>> import torch
        >>> d = DirichletDistribution(torch.zeros(3), torch.tensor(1 / 3))  # uniform on the simplex
        >>> d.mean, d.log_prob(torch.tensor([0.2, 0.3, 0.5])).exp()
        (tensor([0.3333, 0.3333, 0.3333]), tensor(2.))

    References:
        Kotz, Balakrishnan and Johnson (2000), Continuous Multivariate Distributions, chapter 49.
    """

    lower, upper = 0.0, 1.0

    def __init__(self, logits: Tensor, dispersion: Tensor) -> None:
        self.log_mean = torch.log_softmax(logits, -1)
        self.dispersion = dispersion.expand(logits.shape[:-1])

    @property
    def mean(self) -> Tensor:
        """mu, ``(..., K)``."""
        return self.log_mean.exp()

    @property
    def shapes(self) -> Tensor:
        """a = mu phi, ``(..., K)``."""
        return self.mean / self.dispersion.unsqueeze(-1)

    @property
    def variance(self) -> Tensor:
        """Of each part, mu (1 - mu) / (1 + phi)."""
        share = self.dispersion / (1 + self.dispersion)
        return self.mean * (1 - self.mean) * share.unsqueeze(-1)

    @property
    def mode(self) -> Tensor:
        """(a - 1) / (phi - K); parts with a < 1 are 0, and if all are, the largest is the whole."""
        above = (self.shapes - 1).clamp(min=0)
        total = above.sum(-1, keepdim=True)
        corner = torch.nn.functional.one_hot(self.log_mean.argmax(-1), above.shape[-1])
        return torch.where(total > 0, above / torch.where(total > 0, total, 1.0), corner.to(above))

    @property
    def entropy(self) -> Tensor:
        """log B(a) + (phi - K) psi(phi) - sum of (a_k - 1) psi(a_k)."""
        (a,) = wide(self.shapes)
        phi = a.sum(-1)
        log_norm = torch.lgamma(a).sum(-1) - torch.lgamma(phi)
        spread = (phi - a.shape[-1]) * torch.digamma(phi) - ((a - 1) * torch.digamma(a)).sum(-1)
        return (log_norm + spread).to(self.log_mean)

    @property
    def marginal(self) -> BetaDistribution:
        """Part k alone is beta with mean mu_k and the same precision."""
        size = self.log_mean.shape[-1]
        itself = torch.eye(size, dtype=torch.bool, device=self.log_mean.device)
        others = self.log_mean.unsqueeze(-2).expand(*self.log_mean.shape, size)
        rest = torch.logsumexp(others.masked_fill(itself, -math.inf), -1)
        return BetaDistribution(self.log_mean - rest, self.dispersion.unsqueeze(-1))

    def log_prob(self, y: Tensor) -> Tensor:
        """Log density at y in the simplex, arranged so that a large phi cancels.

        With G(a) = log Gamma(a) - a log a + a it is G(phi) - sum G(a_k) - phi KL(mu, y) -
        sum log y_k, where KL adds up terms that are all positive. Parts <= 0 have density 0.
        """
        inside = (y > 0).all(-1)
        y = torch.where(inside.unsqueeze(-1), y, 1.0 / y.shape[-1])
        log_y, log_phi = y.log(), -self.dispersion.log()
        log_a = self.log_mean + log_phi.unsqueeze(-1)
        phi, a = log_phi.exp(), log_a.exp()
        norm = _rest(phi, log_phi) - _rest(a, log_a).sum(-1)
        divergence = (phi.unsqueeze(-1) * _gap(self.log_mean, log_y, y)).sum(-1)
        return torch.where(inside, norm - divergence - log_y.sum(-1), -math.inf)

    def sample(
        self, shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """Independent compositions, ``(*shape, ..., K)``: shares of gamma numbers.

        By logarithms, as a small shape would underflow: that of a + 1 times U^(1/a).
        """
        with torch.no_grad():
            a = self.shapes.expand(*shape, *self.log_mean.shape).contiguous()
            draw = torch._standard_gamma(a + 1, generator=generator).log()
            u = torch.rand(a.shape, generator=generator, dtype=a.dtype, device=a.device)
            tiny = torch.finfo(a.dtype).tiny
            log_draw = draw + torch.log1p(-u) / a.clamp(min=tiny)
            return torch.softmax(log_draw, -1).clamp(min=tiny)


def _rest(a: Tensor, log_a: Tensor) -> Tensor:
    """log Gamma(a) - a log a + a: of the size of log a, where log Gamma is huge."""
    small = a < 8
    near = torch.where(small, a, 1.0)
    # Gamma(a) = Gamma(a + 1) / a: the logarithm of a tiny a is known, a itself has underflowed
    direct = torch.lgamma(1 + near) - log_a - near * log_a + near
    far = HALF_LOG_2PI - 0.5 * log_a + stirling(torch.where(small, 8.0, a))
    return torch.where(small, direct, far)


def _gap(log_mean: Tensor, log_y: Tensor, y: Tensor) -> Tensor:
    """mu (d + e^-d - 1) with d = log(mu / y): their sum is KL(mu, y), as both add up to 1."""
    d = log_mean - log_y
    mean = log_mean.exp()
    close = d.abs() < 1
    near = torch.where(close, d, 0.0)
    return torch.where(close, mean * (near + torch.expm1(-near)), mean * d + (y - mean))
