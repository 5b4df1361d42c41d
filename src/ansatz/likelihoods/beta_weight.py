"""The beta density's large terms, cancelled before rounding."""

import torch
from torch import Tensor

from ansatz.likelihoods.stirling import HALF_LOG_2PI, stirling


def log_beta_weight(a: Tensor, b: Tensor, log_x: Tensor, log_y: Tensor) -> Tensor:
    r"""log(x^a y^b / B(a, b)) for x + y = 1: the beta density in logit(x).

    .. math:: -a \log\frac{a}{n x} - b \log\frac{b}{n y} + \log\frac{B_0}{B(a, b)}, \qquad n = a + b

    The first two are a :func:`relative_entropy`, the last is :func:`log_beta_peak`. At a = b = 1e8
    the plain terms are 1e8 each. Twice differentiable in everything.

    Args:
        a: the first shape.
        b: the second shape.
        log_x: log x, any number <= 0.
        log_y: log(1 - x), which log_x alone may have lost.
    """
    return log_beta_peak(a, b) - relative_entropy(a, b, log_x, log_y)


def relative_entropy(a: Tensor, b: Tensor, log_x: Tensor, log_y: Tensor) -> Tensor:
    r"""a log(a / (n x)) + b log(b / (n y)) with n = a + b: n times that of (a/n, b/n) to (x, y).

    At least 0, and half the deviance of a successes and b failures; a, b > 0. Computed from the gap
    n (x - a/n) where that is small.
    """
    # (x - mean) n; e^log is not x to the last digit, but both terms below see the same gap.
    gap = log_x.exp() * b - log_y.exp() * a
    log_n = torch.log(a + b)
    return -_excess(a, gap, log_x, log_n) - _excess(b, -gap, log_y, log_n)


def log_beta_peak(a: Tensor, b: Tensor) -> Tensor:
    r"""log(p^a q^b / B(a, b)) at the mean p = a / (a + b), q = 1 - p, by Stirling's formula.

    .. math:: \tfrac12 \log\frac{ab}{2\pi(a+b)} - S(a) - S(b) + S(a + b)
    """
    n = a + b
    roots = 0.5 * (a.log() + torch.log(b / n)) - HALF_LOG_2PI
    return roots - stirling(a) - stirling(b) + stirling(n)


def _excess(a: Tensor, gap: Tensor, log_x: Tensor, log_n: Tensor) -> Tensor:
    """a log(x n / a) - gap, which is a (log(1 + m) - m) with m = gap / a."""
    near = gap.abs() < 0.5 * a
    m = torch.where(near, gap, 0.0) / torch.where(near, a, 1.0)
    # where inside, too: the slope of an unused gap / a would overflow for small a
    return torch.where(near, a * (torch.log1p(m) - m), a * (log_x + log_n - a.log()) - gap)
