"""The beta-binomial distribution of the constant model, by maximum likelihood."""

import torch
from torch import Tensor

from ansatz.likelihoods.digamma import digamma_gap
from ansatz.likelihoods.likelihood import weighted_mean
from ansatz.likelihoods.trials import pooled_probability


def fit_beta_binomial(
    y: Tensor, weight: Tensor, known: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    r"""The maximum-likelihood logit(mu) and 1/phi; 1/phi is 0 where no extra variance shows.

    Newton's method in (logit mu, log phi), the Hessian shifted where it is not negative definite,
    steps of at most 2. At :math:`1/\phi = 0` the slope of the log-likelihood in it is half the mean
    of :math:`k(k-1)/p + (n-k)(n-k-1)/(1-p) - n(n-1)`; where that is not positive, the binomial
    distribution is the best.

    Args:
        y: pairs (successes, trials), ``(B, 2)`` or ``(B, K, 2)``.
        weight: frequency weights, ``(B,)``.
        known: 1/phi, where only the mean is wanted.
    """
    dtype, weight = weight.dtype, weight.double()
    p = pooled_probability(y.double(), weight)
    # where, not multiplication: an unobserved row may hold nan
    observed = (weight > 0).reshape(-1, *(1,) * (y.ndim - 1))
    k, n = torch.where(observed, y.double(), 1.0).unbind(-1)
    rest = n - k
    slope = k * (k - 1) / p + rest * (rest - 1) / (1 - p) - n * (n - 1)
    extra = weighted_mean(slope, weight)
    over = extra > 1e-10 * weighted_mean(n * (n - 1), weight)
    free = over if known is None else torch.zeros_like(over)
    moment = extra / weighted_mean(n * (n - 1), weight).clamp(min=1)  # near 1/phi where small
    dispersion = moment.clamp(1e-6, 1.0) if known is None else known.double().expand_as(p)
    eta, scale = torch.logit(p), -torch.log(torch.where(over, dispersion, 1.0))
    if known is not None:
        scale = -known.double().log().expand_as(p)
    for _ in range(200):
        step = _newton(eta, scale, k, rest, weight, free)
        eta, scale = (eta + step[0]).clamp(-60, 60), (scale + step[1]).clamp(-40, 40)
        if bool((step.abs() < 1e-14 * (1 + eta.abs())).all()):
            break
    if known is None:
        eta = torch.where(over, eta, torch.logit(p))
        return eta.to(dtype), torch.where(over, (-scale).exp(), 0).to(dtype)
    return eta.to(dtype), known.to(dtype).expand_as(eta)


def _newton(
    eta: Tensor, scale: Tensor, k: Tensor, rest: Tensor, weight: Tensor, free: Tensor
) -> Tensor:
    """The step in (eta, scale), ``(2, ...)``; that in scale is 0 where it is not free."""
    mu, nu, phi = torch.sigmoid(eta), torch.sigmoid(-eta), scale.exp()
    a, b, c = (v.expand_as(k) for v in (mu * phi, nu * phi, phi))
    n = k + rest

    def mean(value: Tensor) -> Tensor:
        return weighted_mean(value, weight)

    both = digamma_gap(c, n)
    in_a, in_b = mean(digamma_gap(a, k) - both), mean(digamma_gap(b, rest) - both)
    cross = -mean(_trigamma_gap(c, n))
    in_aa, in_bb = mean(_trigamma_gap(a, k)) + cross, mean(_trigamma_gap(b, rest)) + cross
    # da / deta = mu nu phi = -db / deta; da / dscale = a, db / dscale = b
    t, a, b = mu * nu * phi, mu * phi, nu * phi
    g_eta, g_scale = t * (in_a - in_b), a * in_a + b * in_b
    h_ee = t * t * (in_aa - 2 * cross + in_bb) + t * (nu - mu) * (in_a - in_b)
    h_es = t * (a * in_aa + (b - a) * cross - b * in_bb) + t * (in_a - in_b)
    h_ss = a * a * in_aa + 2 * a * b * cross + b * b * in_bb + g_scale
    h_es, h_ss = torch.where(free, h_es, 0.0), torch.where(free, h_ss, -1.0)
    g_scale = torch.where(free, g_scale, 0.0)
    half, spread = (h_ee + h_ss) / 2, (((h_ee - h_ss) / 2) ** 2 + h_es**2).sqrt()
    largest = half + spread  # eigenvalue; below 0 near a maximum
    size = half.abs() + spread
    shift = torch.where(largest < 0, 0.0, largest + 0.1 * size + 1e-12)
    h_ee, h_ss = h_ee - shift, h_ss - shift
    determinant = h_ee * h_ss - h_es**2
    step = -torch.stack(
        [(h_ss * g_eta - h_es * g_scale), (h_ee * g_scale - h_es * g_eta)]
    ) / torch.where(determinant > 0, determinant, 1e-300)
    return torch.nan_to_num(step).clamp(-2, 2)


def _trigamma_gap(a: Tensor, b: Tensor) -> Tensor:
    """trigamma(a + b) - trigamma(a), by its integral's midpoint where b is small beside a."""
    direct = torch.special.polygamma(1, a + b) - torch.special.polygamma(1, a)
    slight = b * torch.special.polygamma(2, a + b / 2)
    return torch.where(b < 1e-4 * a, slight, direct)
