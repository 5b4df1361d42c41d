"""The beta distribution: proportions strictly between 0 and 1."""

import math

import torch
from scipy import special
from torch import Tensor
from torch.nn.functional import logsigmoid

from ansatz.likelihoods.dispersion import Dispersion, PositiveHead
from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import (
    Dispersed,
    expand_weight,
    unit_and_floor,
    weighted_mean,
    weighted_sd,
)
from ansatz.likelihoods.special.beta import (
    log_beta_peak,
    log_beta_weight,
    log_betainc,
    log_betaincc,
)
from ansatz.likelihoods.special.gamma import digamma_gap
from ansatz.likelihoods.special.logarithms import soft_clamp
from ansatz.likelihoods.special.roots import positive_quantile
from ansatz.likelihoods.special.tensors import elementwise, in_double, wide
from ansatz.likelihoods.support import refuse_outside, refuse_where
from ansatz.likelihoods.transformed import SqueezedDistribution, squeeze


class BetaDistribution(Distribution):
    """Beta with mean mu and precision phi = 1 / dispersion: a = mu phi, b = (1 - mu) phi.

    Args:
        logits: log(mu / (1 - mu)), any shape; the mean's own digits end at 1.
        dispersion: 1 / phi, positive, the same shape; the variance is mu (1 - mu) / (1 + phi).

    Example:
        >>> import torch
        >>> d = BetaDistribution(torch.zeros(1), torch.full((1,), 0.5))  # uniform
        >>> d.cdf(torch.tensor([0.3])), d.variance
        (tensor([0.3000]), tensor([0.0833]))
    """

    lower, upper = 0.0, 1.0

    def __init__(self, logits: Tensor, dispersion: Tensor) -> None:
        self.logits, self.dispersion = torch.broadcast_tensors(logits, dispersion)

    @property
    def shapes(self) -> tuple[Tensor, Tensor]:
        """a = mu phi and b = (1 - mu) phi."""
        return (
            torch.sigmoid(self.logits) / self.dispersion,
            torch.sigmoid(-self.logits) / self.dispersion,
        )

    @property
    def mean(self) -> Tensor:
        """mu."""
        return torch.sigmoid(self.logits)

    @property
    def variance(self) -> Tensor:
        """mu (1 - mu) / (1 + phi)."""
        share = self.dispersion / (1 + self.dispersion)
        return torch.sigmoid(self.logits) * torch.sigmoid(-self.logits) * share

    @property
    def mode(self) -> Tensor:
        """(a - 1) / (a + b - 2), an end where a or b is below 1; the heavier one if both are."""
        a, b = self.shapes
        inner = (a - 1) / torch.where((a > 1) & (b > 1), a + b - 2, 1.0)
        ends = ((a > b).to(a) + (a >= b).to(a)) / 2
        ends = torch.where((a >= 1) & (b < 1), 1.0, torch.where((a < 1) & (b >= 1), 0.0, ends))
        return torch.where((a > 1) & (b > 1), inner, ends)

    @property
    def entropy(self) -> Tensor:
        """log B(a, b) + (a - 1)(psi(a + b) - psi(a)) + (b - 1)(psi(a + b) - psi(b))."""
        distribution = BetaDistribution(*wide(self.logits, self.dispersion))
        a, b = distribution.shapes
        gap_a, gap_b = digamma_gap(a, b), digamma_gap(b, a)  # -E[log Y], -E[log(1 - Y)]
        first = a * (logsigmoid(distribution.logits) + gap_a) + b * (
            logsigmoid(-distribution.logits) + gap_b
        )
        return (first - gap_a - gap_b - log_beta_peak(a, b)).to(self.logits)

    def log_prob(self, y: Tensor) -> Tensor:
        """Log density, arranged so that a large phi cancels; 0 and 1 and beyond have density 0."""
        inside = (y > 0) & (y < 1)
        y = torch.where(inside, y, 0.5)
        log_x, log_y = y.log(), torch.log1p(-y)
        value = log_beta_weight(*self.shapes, log_x, log_y) - log_x - log_y
        return torch.where(inside, value, -math.inf)

    def log_cdf(self, y: Tensor) -> Tensor:
        """log I_y(a, b), differentiable in y, mu and phi."""
        return log_betainc(*self.shapes, y.clamp(0, 1))

    def log_survival(self, y: Tensor) -> Tensor:
        """Log(1 - I_y(a, b))."""
        return log_betaincc(*self.shapes, y.clamp(0, 1))

    def _solve(self, q: Tensor) -> Tensor:
        a, b, q = torch.broadcast_tensors(*self.shapes, q)
        return _inside(beta_quantile(a, b, q), q)

    @in_double
    def crps(self, y: Tensor) -> Tensor:
        r"""The closed form, in double precision as its terms cancel.

        .. math:: (y - \mu)(2 F(y) - 1) + \frac{2}{\phi} \frac{y^a (1 - y)^b}{B(a, b)}
                  - \frac{2}{\phi} \frac{B(2a, 2b)}{B(a, b)^2}
        """
        return self.distance(y) - 0.5 * self.difference

    def distance(self, y: Tensor) -> Tensor:
        """E|Y - y|."""
        inside = (y > 0) & (y < 1)
        safe = torch.where(inside, y, 0.5)
        weight = log_beta_weight(*self.shapes, safe.log(), torch.log1p(-safe)).exp()
        edge = 2 * self.dispersion * torch.where(inside, weight, 0.0)
        return (y - self.mean) * (2 * self.cdf(y) - 1) + edge

    @property
    def difference(self) -> Tensor:
        """E|Y - Y'|, 4 / phi B(2a, 2b) / B(a, b)^2."""
        a, b = self.shapes
        pair = 2 * log_beta_peak(a, b) - log_beta_peak(2 * a, 2 * b)
        return 4 * self.dispersion * pair.exp()

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        """The share of one gamma number in two, from their logarithms."""
        first, second = (_log_gamma_draw(p.expand(size), generator) for p in self.shapes)
        return _strictly_inside(torch.sigmoid(first - second))


def _log_gamma_draw(a: Tensor, generator: torch.Generator | None) -> Tensor:
    """The log of a gamma number of shape a; that of a + 1 times U^(1/a) does not underflow."""
    draw = torch._standard_gamma(a.contiguous() + 1, generator=generator)
    uniform = torch.rand(a.shape, generator=generator, dtype=a.dtype, device=a.device)
    return draw.log() + torch.log1p(-uniform) / a


def _strictly_inside(y: Tensor) -> Tensor:
    kind = torch.finfo(y.dtype)
    return y.clamp(kind.tiny, 1 - kind.eps / 2)


def _inside(y: Tensor, q: Tensor) -> Tensor:
    """Quantiles of levels strictly between 0 and 1 lie strictly inside; others as they are."""
    return torch.where((q > 0) & (q < 1), _strictly_inside(y), y)


class Beta(Dispersed):
    r"""Proportions strictly between 0 and 1: beta regression.

    .. math:: p(y) = \frac{y^{a-1} (1-y)^{b-1}}{B(a, b)}, \qquad a = \mu\phi, \quad b = (1-\mu)\phi

    with :math:`\mathrm{logit}\,\mu` = raw[0] (logit link) and the dispersion :math:`1/\phi` = unit
    * softplus(raw[1]) + floor: a small dispersion is a sharp distribution, with variance
    :math:`\mu(1-\mu)/(1+\phi)`. With constant dispersion the linear model is Ferrari and
    Cribari-Neto's. The unit is the maximum-likelihood :math:`1/\phi` of the constant model; the
    floor is the dispersion at which the sd at the mean of y falls to the normal distribution's
    floor, at most half the unit. raw[0] beyond +-50 grows logarithmically.

    The density at exact 0 and 1 is 0 or infinite, so they are refused; ``squeeze=True`` moves them
    inside by y -> (y (n - 1) + 1/2) / n, n being the (weighted) number of training rows, which is
    kept with the model. Loss and distribution are then those of y itself, Jacobian included.

    Args:
        dispersion: 1/phi ``"predicted"`` from x, ``"constant"`` as in betareg, or known (0.1 means
            phi = 10).
        squeeze: accept exact 0 and 1 and move all outcomes a little inside.

    Shapes:
        - raw: ``(..., 2)``, or ``(..., 1)`` unless the dispersion is predicted.
        - y: ``(...)``, between 0 and 1.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Beta
        >>> Beta(dispersion=0.25).loss(torch.zeros(1, 1), torch.tensor([0.5]))  # -log(6 y (1 - y))
        tensor([-0.4055])

    References:
        Ferrari and Cribari-Neto (2004), Beta regression for modelling rates and proportions.
        https://doi.org/10.1080/0266476042000214501
    """

    name = "beta"
    resized = ("rows",)
    link_name = "logit"
    rows: Tensor

    def __init__(self, *, dispersion: Dispersion = "predicted", squeeze: bool = False) -> None:
        super().__init__(dispersion=dispersion)
        self.squeeze = squeeze
        if squeeze:
            self.register_buffer("rows", torch.tensor(math.inf))  # until observed: not at all

    def check(self, y: Tensor) -> None:
        """Numbers strictly between 0 and 1; with ``squeeze``, 0 and 1 too."""
        outside = ~(y.isfinite() & (y >= 0) & (y <= 1))
        refuse_outside(outside, y, "Beta outcomes must be proportions between 0 and 1")
        if not self.squeeze:
            refuse_where(
                (y == 0) | (y == 1),
                y,
                "Beta outcomes must lie strictly between 0 and 1",
                "Use zero_one_inflated_beta where 0 and 1 are outcomes of their own, binomial for "
                "k successes of n trials, or Beta(squeeze=True) to move them inside.",
            )

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """The n of the squeeze; unit and floor of the dispersion."""
        if self.squeeze:
            # One row alone would be squeezed to 1/2, whatever it is.
            self.rows = expand_weight(weight, y).sum(0).clamp(min=2).detach().clone()
        y = self._in(y)
        self.dispersion.observe(*beta_unit_and_floor(y, weight))

    def _in(self, y: Tensor) -> Tensor:
        return squeeze(y, self.rows.to(y.dtype)) if self.squeeze else y

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The maximum-likelihood mean and dispersion; the scale is the sd of y in logits."""
        return self.dispersion.append(*start_beta(self._in(y), weight, self.dispersion))

    def distribution(self, raw: Tensor) -> BetaDistribution | SqueezedDistribution:
        """Beta with mean sigmoid(raw[0]), of y or of the squeezed y."""
        distribution = BetaDistribution(soft_clamp(raw[..., 0]), self.dispersion(raw))
        return (
            SqueezedDistribution(distribution, self.rows.to(raw.dtype))
            if self.squeeze
            else distribution
        )


def beta_quantile(a: Tensor, b: Tensor, q: Tensor) -> Tensor:
    """The x with I_x(a, b) = q, from the smaller tail; no gradient.

    SciPy's; in the far tail, where that has few digits or none, by Newton's method in log x.
    """
    high = q > 0.5
    value = torch.empty_like(q)
    value[~high] = elementwise(special.betaincinv, a[~high], b[~high], q[~high])
    value[high] = elementwise(special.betainccinv, a[high], b[high], 1 - q[high])
    far = (torch.minimum(q, 1 - q) < 1e-30) | value.isnan()
    far = far & (q > 0) & (q < 1)
    if far.any():
        upper = high[far]
        first, second = torch.where(upper, b[far], a[far]), torch.where(upper, a[far], b[far])
        level = torch.where(upper, 1 - q[far], q[far])
        guess = torch.where(upper, 1 - value[far], value[far])
        x = _small_quantile(*wide(first, second, level, guess)).to(value)
        value = value.masked_scatter(far, torch.where(upper, 1 - x, x))
    return value


def _small_quantile(a: Tensor, b: Tensor, p: Tensor, guess: Tensor) -> Tensor:
    """The x with I_x(a, b) = p by Newton's method in log x."""
    # Without a guess, from I = x^a / (a B(a, b)) near 0.
    log_norm = a.log() + torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)
    start = torch.where(guess > 0, guess.log(), (p.log() + log_norm) / a)
    least = torch.finfo(a.dtype).eps

    def log_density(x: Tensor) -> Tensor:
        x = x.clamp(max=-least)
        log_rest = torch.log(-torch.expm1(x))
        return log_beta_weight(a, b, x, log_rest) - log_rest

    x, _ = positive_quantile(
        lambda x, low: log_betainc(a, b, x.clamp(max=-least).exp()),
        log_density,
        p,
        torch.ones_like(p),
        start.clamp(max=-least),
    )
    return x.exp()


def beta_unit_and_floor(y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The maximum-likelihood 1/phi, and the one at which the sd is the normal's floor."""
    _, floor = unit_and_floor(y, weight)
    mean = weighted_mean(y, weight)
    _, unit = fit_beta(y, weight)
    floor = floor**2 / (mean * (1 - mean))
    unit = torch.where(unit > 0, unit, torch.maximum(2 * floor, torch.full_like(unit, 1e-6)))
    return unit, torch.minimum(floor, unit / 2)


def start_beta(y: Tensor, weight: Tensor, head: PositiveHead) -> tuple[Tensor, Tensor, Tensor]:
    """The maximum-likelihood logit of the mean, the sd of y in logits, and 1/phi."""
    logit, dispersion = fit_beta(y, weight)
    if head.kind == "known":
        logit = fit_beta_mean(y, weight, head.known)
    mean, sd = weighted_mean(y, weight), weighted_sd(y, weight)
    scale = torch.where(sd > 0, (sd / (mean * (1 - mean))).clamp(max=1), 1.0)
    return logit, scale, dispersion


def fit_beta(y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Fits logit(mu) and 1/phi of the constant model; 1/phi is 0 for equal y.

    psi(a + b) - psi(a) = -mean(log y) and psi(a + b) - psi(b) = -mean(log(1 - y)): the
    log-likelihood is concave in (a, b), and Newton's method starts from the moments.
    """
    dtype, y, weight = y.dtype, y.double(), weight.double()
    log_x, log_y = weighted_mean(y.log(), weight), weighted_mean(torch.log1p(-y), weight)
    mean, variance = weighted_mean(y, weight), weighted_sd(y, weight) ** 2
    equal = variance < 1e-20 * (mean * (1 - mean)) ** 2
    phi = mean * (1 - mean) / torch.where(equal, 1.0, variance) - 1
    phi = torch.where(equal, 1.0, phi.clamp(min=1e-3))
    a, b = mean * phi, (1 - mean) * phi
    for _ in range(100):
        first, second = digamma_gap(a, b) + log_x, digamma_gap(b, a) + log_y
        both, one, two = (torch.special.polygamma(1, v) for v in (a + b, a, b))
        # The negative Hessian is diag(one, two) - both; its inverse times the gradient:
        share = both * (first / one + second / two) / (1 - both / one - both / two)
        step_a, step_b = (first + share) / one / a, (second + share) / two / b
        # In logarithms where that keeps the shapes positive; near the end both are the same.
        a, b = a * step_a.clamp(-1.5, 3).exp(), b * step_b.clamp(-1.5, 3).exp()
        if bool(((step_a.abs() < 1e-13) & (step_b.abs() < 1e-13))[~equal].all()):
            break
    logit = torch.where(equal, torch.logit(mean), a.log() - b.log())
    return logit.to(dtype), torch.where(equal, 0, 1 / (a + b)).to(dtype)


def fit_beta_mean(y: Tensor, weight: Tensor, dispersion: Tensor) -> Tensor:
    """Fits logit(mu) of the constant model with a known 1/phi.

    psi(mu phi) - psi((1 - mu) phi) = mean(logit(y)), which rises with mu: Newton's method in a
    bracket.
    """
    target = weighted_mean(torch.logit(y.double()), weight.double())
    phi = 1 / dispersion.double()
    eta, low, high = target.clamp(-40, 40), target * 0 - 60.0, target * 0 + 60.0
    for _ in range(100):
        a, b = phi * torch.sigmoid(eta), phi * torch.sigmoid(-eta)
        gap = torch.digamma(a) - torch.digamma(b) - target
        slope = (
            a
            * torch.sigmoid(-eta)
            * (torch.special.polygamma(1, a) + torch.special.polygamma(1, b))
        )
        low, high = torch.where(gap < 0, eta, low), torch.where(gap < 0, high, eta)
        new = eta - gap / slope
        new = torch.where((new >= low) & (new <= high), new, (low + high) / 2)
        done = bool(((new - eta).abs() <= 1e-15 * (1 + eta.abs())).all())
        eta = new
        if done:
            break
    return eta.to(y.dtype)
