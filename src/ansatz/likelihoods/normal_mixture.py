"""The normal mixture: outcomes with several peaks, or any shape at all."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad, softplus

from ansatz.likelihoods.dispersion import PositiveHead, softplus_inverse
from ansatz.likelihoods.likelihood import Likelihood, expand_weight, unit_and_floor, weighted_sd
from ansatz.likelihoods.normal_mixture_distribution import NormalMixtureDistribution
from ansatz.spec import TargetSpec


class NormalMixture(Likelihood):
    r"""Real outcomes whose density given x may be skewed or have several peaks.

    .. math:: -\log p(y) = -\log \sum_{k=1}^M \pi_k\, N(y; \mu_k, \sigma_k^2)

    by logsumexp, with raw holding, for M components, the :math:`\mu_k` (identity link), then r_k
    with :math:`\sigma_k` = unit * softplus(r_k) + floor, then the log odds of components 2..M
    against the first, whose logit is 0: :math:`\pi` = softmax. The unit is sd(y); the floor is
    max(1e-3 sd(y), resolution of y / sqrt(12)), without which rounded outcomes would reward spikes.

    The constant model is found by EM and Newton's method from means at the quantiles of y (equal
    means are a saddle that no gradient leaves). It is a local maximum: a mixture's likelihood has
    many, and one component is the only case with a single one.

    ``predict`` gives the mean, which may lie where the density is low: ``distribution(raw)`` has
    ``is_multimodal`` and ``mode``.

    Args:
        components: M; with 1 it is the normal distribution.

    Shapes:
        - raw: ``(..., 3 M - 1)``.
        - y: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import NormalMixture
        >>> NormalMixture(components=2).outputs(None)
        5

    References:
        Bishop (1994), Mixture density networks. https://publications.aston.ac.uk/id/eprint/373/
        Dempster, Laird and Rubin (1977), Maximum likelihood from incomplete data via the EM
        algorithm. https://doi.org/10.1111/j.2517-6161.1977.tb01600.x
    """

    name = "normal_mixture"
    support = "real"

    def __init__(self, *, components: int = 3) -> None:
        super().__init__()
        if isinstance(components, bool) or not isinstance(components, int) or components < 1:
            raise ValueError(f"components must be a whole number >= 1, got {components!r}.")
        self.components = components
        self.dispersion = PositiveHead("predicted")

    def outputs(self, target: TargetSpec | None = None) -> int:
        """M means, M standard deviations and M - 1 log odds."""
        return 3 * self.components - 1

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Unit and floor of the standard deviations."""
        self.dispersion.observe(*unit_and_floor(y, weight))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """A local maximum of the constant model's likelihood, from means at the quantiles of y."""
        columns = y.reshape(len(y), -1)
        weights = expand_weight(weight, y).reshape(columns.shape)
        unit, floor = (b.to(y).reshape(-1) for b in (self.dispersion.unit, self.dispersion.floor))
        fits = [
            fit_mixture(column[w > 0], w[w > 0], self.components, u, f)
            for column, w, u, f in zip(columns.T, weights.T, unit, floor, strict=True)
        ]
        fit = MixtureFit(*(torch.stack(t).to(y) for t in zip(*fits, strict=True)))
        odds = (fit.logits - fit.logits[:, :1])[:, 1:]
        shift = torch.cat([fit.means, fit.raw_sds, odds], -1)
        sd = weighted_sd(y, weight).reshape(-1, 1)
        size = torch.where(sd > 0, sd, 1.0).expand_as(fit.means)
        scale = torch.cat([size, torch.ones_like(shift[:, self.components :])], -1)
        shape = (*y.shape[1:], self.outputs())
        return shift.reshape(shape), scale.reshape(shape)

    def distribution(self, raw: Tensor) -> NormalMixtureDistribution:
        """The mixture."""
        means, r, odds = raw.split([self.components, self.components, self.components - 1], -1)
        # Units are one per target: the components go first while the head is applied.
        sds = self.dispersion(r.movedim(-1, 0).unsqueeze(-1)).movedim(0, -1)
        return NormalMixtureDistribution(pad(odds, (1, 0)), means, sds)


_THINNED = 4096  # rows that show where the maximum is
_LEAST = 1e-4  # an sd is at least this part of the unit above the floor


class MixtureFit(NamedTuple):
    """Logits, means and r with sd = unit * softplus(r) + floor, ``(M,)`` each."""

    logits: Tensor
    means: Tensor
    raw_sds: Tensor


def fit_mixture(
    y: Tensor, weight: Tensor, components: int, unit: Tensor, floor: Tensor
) -> MixtureFit:
    """Finds a local maximum of the likelihood of M normal components, in double precision.

    EM from means at the quantiles (k - 1/2) / M of y and equal weights climbs towards a maximum,
    where Newton's method takes over: EM alone converges no faster than the components are distinct.
    An sd that falls to its floor is held there.
    """
    y, weight, unit, floor = (t.detach().double() for t in (y, weight, unit, floor))
    weight = weight / weight.sum()
    centre = weight @ y
    z, least = (y - centre) / unit, floor / unit  # in units of sd(y), so that nothing is ill-scaled
    means = _quantiles(z, weight, components)
    step = 0.01 * (torch.arange(components).to(z) - (components - 1) / 2)
    if components > 1 and float(means.diff().min()) < 1e-3:  # ties would be a saddle
        means = means + step
    sd = torch.full_like(means, 1.0 / components).clamp(min=float(least) + _LEAST)
    theta = torch.cat([means, softplus_inverse(sd - least), torch.zeros_like(means)])
    if bool((z == z[0]).all()):
        r = softplus_inverse(torch.full_like(means, _LEAST))
        theta = torch.cat([step, r, torch.zeros_like(means)])
        return _unpack(theta, centre, unit)
    theta = _climb(theta, z, weight, least)
    return _unpack(theta, centre, unit)


def _unpack(theta: Tensor, centre: Tensor, unit: Tensor) -> MixtureFit:
    means, r, logits = theta.chunk(3)
    return MixtureFit(logits, centre + unit * means, r)


def _quantiles(z: Tensor, weight: Tensor, components: int) -> Tensor:
    """The quantiles of z at the levels (k - 1/2) / components."""
    levels = (torch.arange(components).to(z) + 0.5) / components
    ordered, order = z.sort()
    return ordered[torch.searchsorted(weight[order].cumsum(0), levels).clamp(max=len(z) - 1)]


def _climb(theta: Tensor, z: Tensor, weight: Tensor, least: Tensor) -> Tensor:
    """EM to a neighbourhood, then Newton's method until the gradient is nothing."""
    if len(z) > 2 * _THINNED:  # first on evenly spaced order statistics, then on all rows
        few = _quantiles(z, weight, _THINNED)
        theta = _climb(theta, few, torch.full_like(few, 1 / _THINNED), least)
    else:
        for _ in range(100):
            theta = _em_step(theta, z, weight, least)

    def risk(theta: Tensor) -> Tensor:
        means, r, logits = theta.chunk(3)
        distribution = NormalMixtureDistribution(logits, means, softplus(r) + least)
        return -(weight @ distribution.log_prob(z))

    count = len(theta) // 3
    bottom = torch.full_like(theta, -torch.inf)
    bottom[count : 2 * count] = softplus_inverse(theta.new_tensor(_LEAST))
    value = float(risk(theta))
    for _ in range(100):
        gradient, curvature = _derivatives(risk, theta)
        free = (theta > bottom) | (gradient < 0)
        free[2 * count] = False  # only differences of logits matter
        if float(gradient[free].abs().max()) < 1e-11:
            break
        step = torch.zeros_like(theta)
        step[free] = _newton_step(gradient[free], curvature[free][:, free])
        for _ in range(12):
            fresh = torch.maximum(theta - step, bottom)
            found = float(risk(fresh))
            # The last steps change the risk by less than its rounding.
            if found <= value + 1e-15 * abs(value):
                break
            step = step / 2
        else:
            break
        theta, value = fresh, found
    return theta


def _derivatives(risk: Callable[[Tensor], Tensor], theta: Tensor) -> tuple[Tensor, Tensor]:
    with torch.enable_grad():
        leaf = theta.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(risk(leaf), leaf, create_graph=True)
        rows = [torch.autograd.grad(g, leaf, retain_graph=True)[0] for g in gradient]
    return gradient.detach(), torch.stack(rows)


def _newton_step(gradient: Tensor, hessian: Tensor) -> Tensor:
    """Newton's step with the size of each curvature: it leaves saddles instead of seeking them."""
    curvature, axes = torch.linalg.eigh(hessian)
    curvature = curvature.abs().clamp(min=1e-9)
    step = axes @ ((axes.T @ gradient) / curvature)
    return step / (step.abs().max() / 2).clamp(min=1)


def _em_step(theta: Tensor, z: Tensor, weight: Tensor, least: Tensor) -> Tensor:
    """Which component a row comes from, then each component's own maximum."""
    means, r, logits = theta.chunk(3)
    distribution = NormalMixtureDistribution(logits, means, softplus(r) + least)
    terms = distribution.log_weights + distribution.components.log_prob(z.unsqueeze(-1))  # (N, M)
    share = torch.softmax(terms, -1) * weight.unsqueeze(-1)
    total = share.sum(0).clamp(min=1e-300)
    means = (share * z.unsqueeze(-1)).sum(0) / total
    variance = (share * (z.unsqueeze(-1) - means) ** 2).sum(0) / total
    r = softplus_inverse((variance.sqrt() - least).clamp(min=_LEAST))
    return torch.cat([means, r, total.log()])
