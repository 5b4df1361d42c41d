"""The logarithm of the normal cdf, with derivatives that hold in the farthest tail."""

import math

import torch
from torch import Tensor

_FAR = 20.0  # standard deviations, from where nine terms of the series are exact to rounding


def log_ndtr(z: Tensor) -> Tensor:
    r"""log Phi(z), differentiable any number of times at every z.

    .. math:: \log \Phi(-u) = -\frac{u^2}{2} - \log u - \frac12 \log 2\pi
              + \log\left(1 - \frac{1}{u^2} + \frac{1 \cdot 3}{u^4} - \dots\right)

    for u > 20. There torch's own has a gradient exp(-z^2/2 - log Phi(z)) in which the digits
    cancel: at z = -1000 it is wrong by some percent in float32, and in double precision at -1e8 by
    a factor of two, where the true one is -z.

    References:
        Abramowitz and Stegun (1964), Handbook of Mathematical Functions, 26.2.12.
    """
    far = z < -_FAR
    if _none(far):
        return torch.special.log_ndtr(z)
    near = torch.special.log_ndtr(torch.where(far, 0.0, z))
    u = torch.where(far, -z, _FAR)
    inverse = 1 / u**2
    series = torch.zeros_like(u)
    for k in range(9, 0, -1):  # -1/u^2 (1 - 3/u^2 (1 - 5/u^2 (...)))
        series = -(2 * k - 1) * inverse * (1 + series)
    tail = -0.5 * u**2 - u.log() - 0.5 * math.log(2 * math.pi) + torch.log1p(series)
    return torch.where(far, tail, near)


def _none(rows: Tensor) -> bool:
    try:
        return not bool(rows.any())
    except RuntimeError:  # inside vmap, and on the meta device
        return False
