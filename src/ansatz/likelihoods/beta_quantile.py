"""Quantiles of the beta law."""

import torch
from scipy import special
from torch import Tensor

from ansatz.likelihoods.beta_weight import log_beta_weight
from ansatz.likelihoods.elementwise import elementwise, wide
from ansatz.likelihoods.incomplete_beta import log_betainc
from ansatz.likelihoods.positive_quantile import positive_quantile


def beta_quantile(a: Tensor, b: Tensor, q: Tensor) -> Tensor:
    """The x with I_x(a, b) = q, from the smaller tail; no gradient.

    SciPy's; in the far tail, where that has few digits or none, by Newton's method in log x.

    Shapes:
        - a, b, q: the same; computed in double precision, returned in that of q.

    Example:
        >>> import torch
        >>> a, b = torch.tensor([2.0]).double(), torch.tensor([1.0]).double()  # the cdf is x^2
        >>> beta_quantile(a, b, torch.tensor([0.25]).double())
        tensor([0.5000], dtype=torch.float64)
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
