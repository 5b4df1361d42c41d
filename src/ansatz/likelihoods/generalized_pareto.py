"""The generalised Pareto likelihood: exceedances over a high threshold."""

import math
from typing import Literal

import numpy as np
import torch
from scipy.optimize import brentq
from torch import Tensor
from torch.nn.functional import softplus

from ansatz.likelihoods.dispersion import PositiveHead
from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import Likelihood, by_target, require_same_shape
from ansatz.likelihoods.special.logarithms import (
    continued,
    log_complement,
    safe_log,
    soft_cap,
    soft_clamp,
)
from ansatz.likelihoods.special.tensors import in_double
from ansatz.spec import TargetSpec

LEAST = -0.5  # of a learned shape: below it maximum likelihood is not regular
_UNIT = -LEAST / math.log(2)  # so that a raw number of 0 is a shape of 0
_EDGE = 1e-6  # the part of the support's length at its end where the loss is a tangent
_FAR = 1e4  # how many of those parts beyond the end the tangent goes on


class GeneralizedParetoDistribution(Distribution):
    """P(Y > y) = (1 + xi y / scale)^(-1 / xi), and e^(-y / scale) for xi = 0.

    Args:
        log_scale: the logarithm of the scale, any shape.
        shape: xi > -1, the same shape: heavy tails of index 1 / xi above 0, exponential at 0, an
            end at -scale / xi below.

    Example:
        >>> import torch
        >>> d = GeneralizedParetoDistribution(torch.zeros(3), torch.tensor([-0.5, 0.0, 1.0]))
        >>> d.cdf(torch.tensor([1.0]))
        tensor([0.7500, 0.6321, 0.5000])
    """

    lower = 0.0

    def __init__(self, log_scale: Tensor, shape: Tensor) -> None:
        self.log_scale, self.shape = torch.broadcast_tensors(log_scale, shape)

    @property
    def mean(self) -> Tensor:
        """scale / (1 - xi), infinite where xi >= 1."""
        rest = 1 - self.shape
        value = self.log_scale.exp() / torch.where(rest > 0, rest, 1.0)
        return torch.where(rest > 0, value, math.inf)

    @property
    def variance(self) -> Tensor:
        """scale^2 / ((1 - xi)^2 (1 - 2 xi)), infinite where xi >= 1/2."""
        rest = 1 - 2 * self.shape
        value = (self.log_scale.exp() / (1 - self.shape)) ** 2 / torch.where(rest > 0, rest, 1.0)
        return torch.where(rest > 0, value, math.inf)

    @property
    def mode(self) -> Tensor:
        """0."""
        return torch.zeros_like(self.log_scale)

    @property
    def entropy(self) -> Tensor:
        """log scale + xi + 1."""
        return self.log_scale + self.shape + 1

    @property
    def end(self) -> Tensor:
        """The end of the support: -scale / xi below xi = 0, infinite above."""
        bounded = self.shape < 0
        value = -self.log_scale.exp() / torch.where(bounded, self.shape, 1.0)
        return torch.where(bounded, value, math.inf)

    def _hazard(self, y: Tensor, *, log: bool = False) -> Tensor:
        """The cumulative hazard log(1 + xi z) / xi of z = y / scale > 0, or its logarithm.

        By a series around xi z = 0, so that values and derivatives pass smoothly through xi = 0.
        Beyond the end of the support the logarithm goes on along its tangent.
        """
        d = safe_log(y) - self.log_scale
        xi = self.shape
        # Only a xi of 1e-18 or less could have such a z here: its square must not overflow.
        z = soft_cap(d, 40.0).exp()
        near = (xi.abs() * z < 0.01) | (xi == 0)
        ratio = _log1p_over(torch.where(near, xi * z, 0.0))
        value = torch.where(near, z * ratio, _far_hazard(d, torch.where(near, 1.0, xi)))
        if not log:
            return continued(value, y, 0.0, math.inf)
        safe = torch.where(near, 1.0, value)
        return continued(torch.where(near, d + ratio.log(), safe.log()), y, 0.0, 0.0)

    def loss(self, y: Tensor) -> Tensor:
        """Minus the log density, finite beyond the end of the support; see GeneralizedPareto."""
        return self.log_scale + (1 + self.shape) * self._hazard(y)

    def log_prob(self, y: Tensor) -> Tensor:
        """-log scale - (1 + 1/xi) log(1 + xi y / scale); -inf outside the support."""
        return torch.where((y >= 0) & (y <= self.end), -self.loss(y), -math.inf)

    def cdf(self, y: Tensor) -> Tensor:
        """1 - (1 + xi y / scale)^(-1/xi)."""
        return -torch.expm1(-self._hazard(y))

    def log_cdf(self, y: Tensor) -> Tensor:
        """The logarithm of the cdf, exact for the smallest y; twice differentiable."""
        return continued(log_complement(self._hazard(y, log=True)), y, -math.inf, 0.0)

    def log_survival(self, y: Tensor) -> Tensor:
        """-log(1 + xi y / scale) / xi, twice differentiable.

        Beyond the end of the support, where the survival is 0, its logarithm goes on as a finite
        number, so that a censored outcome there still has a gradient.
        """
        return -self._hazard(y)

    def icdf(self, q: Tensor) -> Tensor:
        """scale ((1 - q)^-xi - 1) / xi."""
        hazard = -torch.log1p(-q)
        x = self.shape * hazard
        near = x.abs() < 1e-5
        safe = torch.where(near, 1.0, x)
        ratio = torch.where(near, 1 + x / 2 + x * x / 6, torch.expm1(safe) / safe)
        value = self.log_scale.exp() * hazard * ratio
        return torch.where(q == 1, self.end, value)

    @in_double
    def crps(self, y: Tensor) -> Tensor:
        """|y| - 2 mean (1 - S(y)^(1 - xi)) + scale / (2 - xi); infinite where xi >= 1.

        (Friederichs and Thorarinsdottir 2012.) In double precision, as its terms cancel.
        """
        exists = self.shape < 1
        d = GeneralizedParetoDistribution(self.log_scale, torch.where(exists, self.shape, 0.0))
        # S^(1 - xi) is 0 beyond the end, however the hazard goes on there.
        share = -torch.expm1(-(1 - d.shape) * d._hazard(y))
        score = y.abs() - 2 * d.mean * share + d.log_scale.exp() / (2 - d.shape)
        return torch.where(exists, score, math.inf)

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        like = self.log_scale
        u = torch.rand(size, generator=generator, dtype=like.dtype, device=like.device)
        draw = torch.minimum(self.icdf(u), self.end)
        return draw.clamp(min=torch.finfo(u.dtype).tiny)


def _log1p_over(t: Tensor) -> Tensor:
    """log(1 + t) / t for |t| < 0.01 by its series, whose derivatives do not cancel."""
    series = torch.zeros_like(t)
    for k in range(8, -1, -1):  # 0.01^9 / 10 is below 1e-18
        series = torch.addcmul(t.new_tensor(1 / (k + 1)), t, series, value=-1)
    return series


def _far_hazard(d: Tensor, xi: Tensor) -> Tensor:
    """log(1 + xi e^d) / xi where xi e^d is not small."""
    heavy = xi > 0
    # log(1 + e^u), which is u beyond u = 40
    u = torch.where(heavy, d + xi.abs().log(), 0.0)
    left = torch.where(heavy, 1.0, 1 + xi * soft_cap(torch.where(heavy, 0.0, d), 60.0).exp())
    return torch.where(heavy, softplus(u, threshold=40), _log_beyond(left)) / xi


def _log_beyond(x: Tensor) -> Tensor:
    """log x down to the edge, its tangent there for a while, and a slower descent from there."""
    inside = x > _EDGE
    beyond = (_EDGE - torch.where(inside, _EDGE, x)) / _EDGE
    rest = torch.relu(beyond - _FAR)
    tangent = math.log(_EDGE) - (beyond.clamp(max=_FAR) + torch.log1p(rest))
    return torch.where(inside, torch.where(inside, x, 1.0).log(), tangent)


class GeneralizedPareto(Likelihood):
    r"""Exceedances over a high threshold: their limit distribution (Pickands).

    .. math:: -\log p(y) = \log\sigma + \left(1 + \frac1\xi\right) \log\left(1 + \xi\frac{y}{\sigma}
              \right), \qquad 0 \le y \;(\le -\sigma/\xi \text{ where } \xi < 0)

    with :math:`\log\sigma` = raw[0] (log link), continuous through :math:`\xi = 0`, the exponential
    likelihood. y is the excess itself: subtract the threshold first. A learned shape is
    :math:`\xi = -\tfrac12 + u\,\mathrm{softplus}(r)` with :math:`u = 1/(2 \log 2)`, so that r = 0
    is :math:`\xi = 0`: maximum likelihood is regular above -1/2 only, and has no maximum below -1.
    raw[0] beyond +-50 grows logarithmically.

    Where :math:`\xi < 0` an outcome beyond the end :math:`-\sigma/\xi` has density 0. In the loss
    :math:`\log(1 + \xi y/\sigma)` then goes on along its tangent at 1e-6: some 1e4 nats per 1 % of
    the support beyond its end, and slower from there, finite and pulling the end outwards.
    ``log_prob`` is -inf there.

    ``predict`` gives the mean :math:`\sigma/(1 - \xi)`, which is infinite for
    :math:`\xi \ge 1`; the maximum-likelihood mean is not the mean of the sample.

    Args:
        shape: xi ``"constant"``, ``"predicted"`` from x, or a known number > -1.

    Shapes:
        - raw: ``(..., 1)``, or ``(..., 2)`` with a predicted shape.
        - y: ``(...)``, numbers >= 0.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import GeneralizedPareto
        >>> GeneralizedPareto(shape=1.0).loss(torch.zeros(1, 1), torch.ones(1))  # 2 log 2
        tensor([1.3863])

    References:
        Smith (1985), Maximum likelihood estimation in a class of nonregular cases.
        Coles (2001), An Introduction to Statistical Modeling of Extreme Values, chapter 4.
    """

    name = "generalized_pareto"
    support = "nonnegative"
    link_name = "log"

    def __init__(self, *, shape: Literal["constant", "predicted"] | float = "constant") -> None:
        super().__init__()
        known = isinstance(shape, (int, float)) and not isinstance(shape, bool)
        if not known and shape not in ("constant", "predicted"):
            raise ValueError(
                "shape of GeneralizedPareto must be 'constant', 'predicted' or a number > -1, "
                f"got {shape!r}."
            )
        if known and not -1 < float(shape) < math.inf:
            raise ValueError(f"a known shape of GeneralizedPareto must be > -1, got {shape}.")
        self.least = -1.0 if known else LEAST
        # The head holds xi - least, which is positive.
        self.excess = PositiveHead(float(shape) - self.least if known else shape)
        self._observe(torch.tensor(0.0))

    def _observe(self, like: Tensor) -> None:
        self.excess.observe(torch.full_like(like, _UNIT), torch.zeros_like(like))
        self.excess.start(torch.full_like(like, -LEAST))

    def outputs(self, target: TargetSpec) -> int:
        """2 with a predicted shape, else 1."""
        return 1 + self.excess.outputs

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """One shape per target."""
        self._observe(weight.new_zeros(y.shape[1:]))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The maximum-likelihood log scale and shape; the scale of the first raw number is 1.

        Zeros alone have no finite maximum-likelihood log scale: they start from a scale of 1e-3.
        """
        solved = by_target(self._constant, y, weight)
        eta, xi = (
            torch.tensor(part).to(y).reshape(y.shape[1:]) for part in zip(*solved, strict=True)
        )
        return self.excess.append(eta, torch.ones_like(eta), xi - self.least)

    def _constant(self, y: Tensor, weight: Tensor, target: int) -> tuple[float, float]:
        known = float(self.excess.known) + self.least if self.excess.kind == "known" else None
        if not bool((y > 0).any()):
            return math.log(1e-3), 0.0 if known is None else known
        if known is not None:
            return fit_scale(y, weight, known), known
        return fit_scale_and_shape(y, weight, LEAST + 1e-4 * _UNIT)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The negative log-likelihood; beyond the end of the support a tangent."""
        require_same_shape(self.name, raw, y)
        return self.distribution(raw).loss(y)

    def distribution(self, raw: Tensor) -> GeneralizedParetoDistribution:
        """Generalised Pareto with scale exp(raw[0])."""
        return GeneralizedParetoDistribution(soft_clamp(raw[..., 0]), self.excess(raw) + self.least)


def fit_scale(y: Tensor, weight: Tensor, shape: float) -> float:
    """Fits the log scale for a known shape > -1.

    It solves 1 = (1 + xi) mean(z / (1 + xi z)) with z = y / scale, whose right side falls as the
    scale grows.
    """
    values, share, mean = _numpy(y, weight)

    def score(log_scale: float) -> float:
        z = values * math.exp(-log_scale)
        return 1 - (1 + shape) * float(share @ (z / (1 + shape * z)))

    low = math.log(-shape * values.max()) + 1e-12 if shape < 0 else -1.0
    while score(low) > 0 and low > -700:
        low -= 2.0
    high = max(low, 0.0) + 1.0
    while score(high) < 0 and high < 700:
        high += 2.0
    return math.log(mean) + brentq(score, low, high, xtol=1e-14, rtol=1e-14)


def fit_scale_and_shape(y: Tensor, weight: Tensor, least: float) -> tuple[float, float]:
    r"""Fits log scale and shape over shapes >= ``least``.

    Grimshaw's reduction: with :math:`\theta = \xi/\sigma` the best shape is
    :math:`\xi(\theta) = \overline{\log(1 + \theta y)}`, and what is left is a search over one
    number: a grid finds the best bracket, Brent's method the root of the derivative there, and
    Newton's method in both numbers the last digits. Where the likelihood still rises at ``least``,
    the scale is fitted for that shape.

    References:
        Grimshaw (1993), Computing maximum likelihood estimates for the generalized Pareto
        distribution. https://doi.org/10.2307/1269663
    """
    values, share, mean = _numpy(y, weight)
    every = max(1, len(values) // 20_000)  # a bracket needs no more
    order = np.argsort(values)[::-1]  # the largest stays
    few, few_share = values[order][::every], share[order][::every]
    few_share = few_share / few_share.sum()

    def shape_of(theta: float) -> float:
        return float(share @ np.log1p(theta * values))

    def slope(theta: float) -> float:
        """Of the profile log-likelihood log(theta / xi) - xi - 1."""
        xi = shape_of(theta)
        return 1 / theta - float(share @ (values / (1 + theta * values))) * (1 / xi + 1)

    def profile(theta: float) -> float:
        xi = float(few_share @ np.log1p(theta * few))
        return math.log(theta / xi) - xi if xi > least else -math.inf

    ends = -(1 - np.geomspace(1e-6, 0.98, 24)) / values.max()
    grid = np.concatenate([ends, -np.geomspace(1e-2, 1e-5, 6) / values.max()])
    grid = np.concatenate([grid, np.geomspace(1e-5, 1e6, 60)])
    best = int(np.argmax([profile(theta) for theta in grid]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    if slope(low) > 0 > slope(high):
        theta = brentq(slope, low, high, xtol=1e-13, rtol=1e-12)
        xi = shape_of(theta)
        if xi > least:
            return _polish(values, share, math.log(xi / theta), xi, mean)
    return fit_scale(y, weight, least), least


def _numpy(y: Tensor, weight: Tensor) -> tuple[np.ndarray, np.ndarray, float]:
    """y over its mean, the weights over their sum, and the mean."""
    values, share = y.double().cpu().numpy(), weight.double().cpu().numpy()
    share = share / share.sum()
    mean = float(share @ values)
    return values / mean, share, mean


def _polish(
    z: np.ndarray, share: np.ndarray, eta: float, xi: float, mean: float
) -> tuple[float, float]:
    """A few steps of Newton's method in (log scale, xi) on the loss itself.

    With r = z / (1 + xi z) and h = log(1 + xi z) / xi: loss = eta + (1 + xi) h,
    dh/d eta = -r, dh/d xi = (r - h) / xi.
    """
    for _ in range(4 if abs(xi) > 1e-3 else 0):
        t = z * math.exp(-eta)
        r, h = t / (1 + xi * t), np.log1p(xi * t) / xi
        g = (r - h) / xi
        gradient = np.array([1 - (1 + xi) * (share @ r), share @ (h + (1 + xi) * g)])
        r_eta, r_xi = -t / (1 + xi * t) ** 2, -r * r
        g_xi = (r_xi - g) / xi - (r - h) / xi**2
        hessian = np.array(
            [
                [-(1 + xi) * (share @ r_eta), -(share @ (r + (1 + xi) * r_xi))],
                [-(share @ (r + (1 + xi) * r_xi)), share @ (2 * g + (1 + xi) * g_xi)],
            ]
        )
        if np.linalg.eigvalsh(hessian).min() <= 0:
            break
        step = np.linalg.solve(hessian, gradient)
        if np.abs(step).max() > 0.1:
            break
        eta, xi = eta - step[0], xi - step[1]
    return float(eta) + math.log(mean), float(xi)
