"""The Dirichlet distribution: compositions, parts of a whole."""

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from ansatz.errors import DataError
from ansatz.likelihoods.beta import BetaDistribution
from ansatz.likelihoods.dispersion import Dispersion, PositiveHead
from ansatz.likelihoods.distribution import VectorDistribution
from ansatz.likelihoods.likelihood import (
    Likelihood,
    require_same_shape,
    unit_and_floor,
    weighted_mean,
    weighted_sd,
)
from ansatz.likelihoods.special.gamma import HALF_LOG_2PI, digamma_gap, stirling
from ansatz.likelihoods.special.logarithms import soft_clamp
from ansatz.likelihoods.special.roots import find_root
from ansatz.likelihoods.special.tensors import wide
from ansatz.likelihoods.support import refuse_where
from ansatz.spec import TargetSpec


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
        rest = (phi - a.shape[-1]) * torch.digamma(phi) - ((a - 1) * torch.digamma(a)).sum(-1)
        return (log_norm + rest).to(self.log_mean)

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

    def rsample(
        self, shape: tuple[int, ...] = (), generator: torch.Generator | None = None
    ) -> Tensor:
        """The draws of ``sample``, differentiable as gamma numbers are in their shapes."""
        return self._draw((*shape, *self.batch_shape), generator)

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        """Independent compositions, ``(*shape, ..., K)``: shares of gamma numbers.

        By logarithms, as a small shape would underflow: that of a + 1 times U^(1/a).
        """
        a = self.shapes.expand(*size, self.log_mean.shape[-1]).contiguous()
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


class Dirichlet(Likelihood):
    r"""Compositions: K positive parts that add up to 1.

    .. math:: p(y) = \Gamma(\phi) \prod_k \frac{y_k^{\mu_k\phi - 1}}{\Gamma(\mu_k\phi)}

    with the means :math:`\mu` = softmax of K logits (soft-clamped at +-50) and the dispersion
    :math:`1/\phi` = unit * softplus of the last raw number + floor: a small dispersion is a sharp
    distribution, the variance of part k being :math:`\mu_k(1-\mu_k)/(1+\phi)`. K = 2 is the beta
    distribution. The unit is the maximum-likelihood :math:`1/\phi` of the constant model; the floor
    is the dispersion at which the sd of some part falls to the normal distribution's floor, at most
    half the unit.

    A constant added to all K logits changes nothing; a linear model needs coefficients that are
    identified: with ``reference=True`` raw holds K - 1 logits, the log ratios of the means of parts
    1..K-1 to that of part 0, whose logit is 0.

    Args:
        dispersion: 1/phi ``"predicted"`` from x, ``"constant"``, or known (0.1 means phi = 10).
        reference: the first part's logit is 0 and not part of raw.
        normalize: divide each composition by its sum, which must be within 2 % of 1: for parts
            that were rounded. Otherwise sums must be 1 within 1e-6.

    Shapes:
        - raw: ``(..., K + 1)``; one less with a reference, one less unless the dispersion is
          predicted.
        - y: ``(..., K)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Dirichlet
        >>> y = torch.tensor([[0.2, 0.3, 0.5]])
        >>> Dirichlet(dispersion=1 / 3).loss(torch.zeros(1, 3), y)  # uniform: -log 2
        tensor([-0.6931])

    References:
        Maier (2014), DirichletReg: Dirichlet regression for compositional data in R.
        https://doi.org/10.57938/ad3142d3-2fcd-4c37-aec6-8e0bd7d077e1
    """

    name = "dirichlet"
    link_name = "logit"
    event_ndim = 1

    def __init__(
        self,
        *,
        dispersion: Dispersion = "predicted",
        reference: bool = False,
        normalize: bool = False,
    ) -> None:
        super().__init__()
        self.dispersion = PositiveHead(dispersion)
        self.reference, self.normalize = reference, normalize

    def outputs(self, target: TargetSpec) -> int:
        """K logits, one less with a reference, and the dispersion if predicted."""
        if len(target.event) != 1 or target.event[0] < 2:
            raise ValueError(
                f"{self.name} needs compositions of K >= 2 parts, TargetSpec(event=(K,)), "
                f"got {target}."
            )
        return target.event[0] - int(self.reference) + self.dispersion.outputs

    def check(self, y: Tensor) -> None:
        """Positive parts that add up to 1."""
        _require_parts(self.name, y)
        refuse_where(
            ~(y.isfinite() & (y > 0)),
            y,
            "Parts of a composition must be > 0",
            "A zero that is a part too small to be seen can be replaced by, say, half the smallest "
            "part that can; parts that are absent need another likelihood.",
        )
        total = y.sum(-1)
        slack = 0.02 if self.normalize else max(1e-6, 4 * torch.finfo(y.dtype).eps * y.shape[-1])
        bad = (total - 1).abs() > slack
        if bool(bad.any()):
            row = int(bad.reshape(-1).nonzero()[0])
            sums, more = total.reshape(-1), int(bad.sum()) - 1
            advice = (
                "Divide each row by its sum if the parts are a whole."
                if self.normalize
                else "Divide percentages by 100; for parts that were rounded normalize=True (--set "
                "normalize=true) divides by sums within 2 % of 1."
            )
            raise DataError(
                f"Compositions must add up to 1, got a sum of {sums[row].item():.6g} at y[{row}]"
                f"{f' (and {more} more)' if more else ''}. {advice}"
            )

    def _whole(self, y: Tensor) -> Tensor:
        return y / y.sum(-1, keepdim=True) if self.normalize else y

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Unit and floor of the dispersion."""
        _, floor = unit_and_floor(y, weight)  # of y as it was rounded
        y = self._whole(y)
        mean = weighted_mean(y, weight)
        least = (floor**2 / (mean * (1 - mean))).max()
        _, unit = fit_dirichlet(y, weight)
        unit = torch.where(unit > 0, unit, torch.maximum(2 * least, torch.full_like(unit, 1e-6)))
        self.dispersion.observe(unit, torch.minimum(least, unit / 2))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The maximum-likelihood means and dispersion; the scale is the sd of y in logits."""
        y = self._whole(y)
        logits, dispersion = fit_dirichlet(y, weight)
        if self.dispersion.kind == "known":
            logits = fit_dirichlet_mean(y, weight, self.dispersion.known)
        mean, sd = weighted_mean(y, weight), weighted_sd(y, weight)
        scale = torch.where(sd > 0, (sd / (mean * (1 - mean))).clamp(max=1), 1.0)
        if self.reference:
            logits, scale = (logits - logits[:1])[1:], scale[1:]
        r = self.dispersion.start(dispersion)
        if not self.dispersion.outputs:
            return logits, scale
        return torch.cat([logits, r.reshape(1)]), torch.cat([scale, torch.ones_like(scale[:1])])

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The negative log-likelihood."""
        distribution = self.distribution(raw)
        require_same_shape(self.name, raw, y, event=tuple(distribution.event_shape))
        return -distribution.log_prob(self._whole(y))

    def given(self, raw: Tensor, y: Tensor) -> tuple[DirichletDistribution, Tensor]:
        """The distribution of each composition, and the composition, normalized where asked for."""
        return self.distribution(raw), self._whole(y)

    def distribution(self, raw: Tensor) -> DirichletDistribution:
        """Dirichlet with means softmax(logits)."""
        logits = soft_clamp(raw[..., : raw.shape[-1] - self.dispersion.outputs])
        logits = pad(logits, (1, 0)) if self.reference else logits
        return DirichletDistribution(logits, self.dispersion(raw))


def _require_parts(name: str, y: Tensor) -> None:
    if y.ndim < 2 or y.shape[-1] < 2:
        raise ValueError(
            f"{name} needs compositions, y of shape (B, K) with K >= 2, got {tuple(y.shape)}."
        )


def fit_dirichlet(y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    r"""Fits the logits of the means and 1/phi of the constant model; 1/phi is 0 for equal rows.

    .. math:: \psi(\phi) - \psi(a_k) = -\overline{\log y_k}, \qquad \phi = \sum_k a_k

    The log-likelihood is concave in a, and its Hessian a diagonal plus a constant, so that Newton's
    step costs no matrix (Minka). It starts from the moments.

    References:
        Minka (2000), Estimating a Dirichlet distribution, section 1.
        https://tminka.github.io/papers/dirichlet/
    """
    dtype, y, weight = y.dtype, y.double(), weight.double()
    log_y = weighted_mean(y.log(), weight)
    mean, variance = weighted_mean(y, weight), weighted_sd(y, weight) ** 2
    if float(variance.sum()) < 1e-20:
        logits = mean.log()
        return (logits - logits.mean()).to(dtype), torch.zeros((), dtype=dtype, device=y.device)
    a = mean * ((mean * (1 - mean)).sum() / variance.sum() - 1).clamp(min=1e-3)
    for _ in range(200):
        phi = a.sum()
        gradient = digamma_gap(a, phi - a) + log_y
        each, both = torch.special.polygamma(1, a), torch.special.polygamma(1, phi)
        share = both * (gradient / each).sum() / (1 - (both / each).sum())
        step = (gradient + share) / each / a
        a = a * step.clamp(-1.5, 3).exp()  # in logarithms, which keeps the shapes positive
        if float(step.abs().max()) < 1e-13:
            break
    logits = a.log()
    return (logits - logits.mean()).to(dtype), (1 / a.sum()).to(dtype)


def fit_dirichlet_mean(y: Tensor, weight: Tensor, dispersion: Tensor) -> Tensor:
    r"""Fits the logits of the means of the constant model with a known 1/phi.

    .. math:: \psi(a_k) = \overline{\log y_k} + \lambda, \qquad \sum_k a_k = \phi

    solved for :math:`\lambda`, between the values that give every a_k at most or at least phi / K.

    References:
        Minka (2000), Estimating a Dirichlet distribution, section 4.
    """
    dtype, y, weight = y.dtype, y.double(), weight.double()
    log_y, phi = weighted_mean(y.log(), weight), 1 / dispersion.double()
    even = torch.digamma(phi / len(log_y)) - log_y

    def excess(shift: Tensor) -> tuple[Tensor, Tensor]:
        a = _inverse_digamma(log_y + shift.unsqueeze(-1))
        slope = (1 / torch.special.polygamma(1, a)).sum(-1)
        return a.sum(-1).log() - phi.log(), slope / a.sum(-1)

    low, high = even.min().reshape(1), even.max().reshape(1)
    shift = find_root(excess, low, high, (low + high) / 2, tolerance=1e-14)
    logits = _inverse_digamma(log_y + shift).log()
    return (logits - logits.mean()).to(dtype)


def _inverse_digamma(value: Tensor) -> Tensor:
    """The a > 0 with psi(a) = value: Minka's start and Newton's method in log a."""
    a = torch.where(value >= -2.22, value.exp() + 0.5, -1 / (value - torch.digamma(torch.ones(()))))
    for _ in range(8):
        step = (torch.digamma(a) - value) / (a * torch.special.polygamma(1, a))
        a = a * (-step).clamp(-2, 2).exp()
    return a
