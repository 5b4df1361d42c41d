"""Bounds on the error of a random predictor by its distance from a prior."""

import math

import torch
from scipy.optimize import brentq
from torch import Tensor


def pac_bayes_gap(kl: float, n: int, level: float) -> float:
    r"""Bounds how far the mean true error of a posterior may exceed its training error.

    .. math:: E_q \ell - E_q \hat\ell \le
        \sqrt{\frac{1}{2n} \Big( KL(q \| p) + \log \frac{2 \sqrt n}{\epsilon} \Big)}

    for all posteriors q at once, with probability at least :math:`1 - \epsilon` over the data; the
    prior p must not have seen them, and losses are in [0, 1]. Mind both: some texts print
    "probability at least :math:`\epsilon`", and 2/n for 1/(2n), which doubles it.

    Args:
        kl: :math:`KL(q \| p) \ge 0` in nats, from :func:`gaussian_kl` for Gaussians.
        n: rows of the training data.
        level: :math:`\epsilon` in (0, 1), the probability of failure.

    Example:
        >>> from ansatz.theory import pac_bayes_gap
        >>> round(pac_bayes_gap(5.0, 1000, 0.05), 3)
        0.078

    References:
        Maurer (2004), A note on the PAC Bayesian theorem, thm. 5, with Pinsker's inequality.
        https://arxiv.org/abs/cs/0411099
    """
    return math.sqrt(_budget(kl, n, level) / 2)


def pac_bayes_risk(risk: float, kl: float, n: int, level: float) -> float:
    r"""Computes the largest mean true error that agrees with a posterior's training error.

    .. math:: \sup \Big\{ r : \mathrm{kl}(\hat r \| r) \le \frac1n
        \Big( KL(q \| p) + \log \frac{2 \sqrt n}{\epsilon} \Big) \Big\}, \quad
        \mathrm{kl}(\hat r \| r) = \hat r \log\frac{\hat r}{r} + (1-\hat r) \log\frac{1-\hat r}{1-r}

    Never worse than ``risk + pac_bayes_gap(...)``, and much better for small errors.

    Args:
        risk: :math:`\hat r = E_q \hat\ell` in [0, 1].
        kl: :math:`KL(q \| p)`.
        n: rows of the training data.
        level: :math:`\epsilon`.

    Example:
        >>> from ansatz.theory import pac_bayes_risk
        >>> [round(pac_bayes_risk(r, 5.0, 1000, 0.05), 3) for r in (0.0, 0.5)]
        [0.012, 0.577]

    References:
        Langford (2005), Tutorial on practical prediction theory for classification, cor. 3.1.
    """
    if not 0 <= risk <= 1:
        raise ValueError(f"risk must be in [0, 1], got {risk}.")
    budget = _budget(kl, n, level)
    if risk == 1:
        return 1.0
    if risk == 0:
        return -math.expm1(-budget)
    # At 1 the divergence is infinite, and beyond the Pinsker gap it exceeds the budget.
    high = min(risk + math.sqrt(budget / 2), 1 - 1e-16)
    if _binary_kl(risk, high) <= budget:
        return high
    return float(brentq(lambda r: _binary_kl(risk, r) - budget, risk, high, xtol=1e-14))


def gaussian_kl(mean: Tensor, sd: Tensor, prior_mean: Tensor, prior_sd: Tensor) -> Tensor:
    r"""Computes the KL divergence of two Gaussians with independent coordinates.

    .. math:: KL\big(N(m, s^2) \| N(m_0, s_0^2)\big) = \sum_i
        \log\frac{s_{0i}}{s_i} + \frac{s_i^2 + (m_i - m_{0i})^2}{2 s_{0i}^2} - \frac12

    The price of a posterior in :func:`pac_bayes_gap`: differentiable, so that training error plus
    bound can be minimised.

    Args:
        mean: :math:`m`.
        sd: :math:`s > 0`.
        prior_mean: :math:`m_0`.
        prior_sd: :math:`s_0 > 0`.

    Shapes:
        - all: shapes that broadcast; returns a scalar, the sum over all coordinates.

    Example:
        >>> import torch
        >>> from ansatz.theory import gaussian_kl
        >>> gaussian_kl(torch.ones(3), torch.ones(3), torch.tensor(0.0), torch.tensor(1.0)).item()
        1.5
    """
    if bool((sd <= 0).any()) or bool((prior_sd <= 0).any()):
        raise ValueError("standard deviations must be positive.")
    ratio = sd / prior_sd
    shift = (mean - prior_mean) / prior_sd
    return torch.sum((ratio.square() + shift.square() - 1) / 2 - ratio.log())


def _budget(kl: float, n: int, level: float) -> float:
    if not kl >= 0:
        raise ValueError(f"kl must be >= 0, got {kl}.")
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}.")
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level}.")
    return (kl + math.log(2 * math.sqrt(n) / level)) / n


def _binary_kl(p: float, r: float) -> float:
    return p * math.log(p / r) + (1 - p) * (math.log1p(-p) - math.log1p(-r))
