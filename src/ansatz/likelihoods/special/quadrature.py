"""Gauss rules as tensors, and the mean difference of two counts."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from torch import Tensor


def gauss(rule: Literal["legendre", "laguerre"], count: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes and weights, ``(count,)`` each, in the dtype and on the device of ``like``.

    ``"legendre"`` integrates over [0, 1], ``"laguerre"`` against e^-u over u > 0.
    """
    nodes, weights = _rule(rule, count)
    return torch.as_tensor(nodes).to(like), torch.as_tensor(weights).to(like)


@lru_cache(maxsize=16)
def _rule(rule: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    if rule == "laguerre":
        return np.polynomial.laguerre.laggauss(count)
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2


_STEP = 0.25  # the trapezoidal rule errs by e^(-pi^2 / step) = 1e-17


def count_difference(decay: Callable[[Tensor], Tensor], variance: Tensor) -> Tensor:
    r"""E|Y - Y'| of two independent counts, from their characteristic function.

    With :math:`|\varphi(t)|^2 = e^{-d(u)}`, :math:`u = \sin^2(t/2)`, and
    :math:`|n| = \frac1\pi \int_0^\pi \frac{1 - \cos nt}{1 - \cos t} dt`,

    .. math:: E|Y - Y'| = \frac1\pi \int_0^\infty 1 - e^{-d(1/(1 + w^2))}\, dw

    by the trapezoidal rule in w = sinh(s), the integrand being analytic for \|Im s\| < pi/2; its
    tail is that of e^-s. Good to some twelve digits for variances from 0 to 1e30; differentiable.
    """
    # From w = 1e6 sqrt(4 v) on the integrand is 4 v / w^2 to 12 digits.
    last = torch.asinh(1e6 * (4 * variance.detach()).sqrt().clamp(min=1.0))
    longest = 30.0 if last.is_meta or not last.numel() else float(last.max().clamp(max=200.0))
    total = term = torch.zeros_like(variance)
    for k in range(math.ceil(longest / _STEP) + 1):
        cosh = math.cosh(k * _STEP)
        term = -torch.expm1(-decay(torch.full_like(variance, cosh**-2))) * cosh
        total = total + (term if k else 0.5 * term)
    return _STEP / math.pi * (total + term / math.expm1(_STEP))
