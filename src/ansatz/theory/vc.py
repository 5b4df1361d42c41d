"""The inequality of Vapnik and Chervonenkis: all errors of a class are close to their means."""

import math


def vc_bound(n: int, gap: float, growth: float) -> float:
    r"""Bounds the chance that any function of a class has a training error far from its true one.

    .. math:: P\Big( \sup_{f} |\ell(f) - \hat\ell(f)| > \epsilon \Big)
        \le 8 F(n)\, e^{-n \epsilon^2 / 32}

    It holds for every distribution of the data. Without the growth function F(n) it would be the
    inequality for one function that was chosen before the data were seen.

    Args:
        n: rows of the training data.
        gap: :math:`\epsilon > 0`.
        growth: :math:`F(n)`, from :func:`half_space_growth` or :func:`sauer_bound`.

    Returns:
        The bound, at most 1.

    Example:
        >>> from ansatz.theory import half_space_growth, vc_bound
        >>> round(vc_bound(20_000, 0.2, half_space_growth(20_000, 2)), 3)
        0.044

    References:
        Devroye, Gyorfi & Lugosi (1996), A probabilistic theory of pattern recognition, thm. 12.5.
    """
    if not gap > 0:
        raise ValueError(f"gap must be positive, got {gap}.")
    return math.exp(min(0.0, math.log(8) + _log_growth(n, growth) - n * gap**2 / 32))


def vc_gap(n: int, level: float, growth: float) -> float:
    r"""The gap that no function of a class exceeds, except with a given probability.

    .. math:: \epsilon = \sqrt{\frac{32}{n} \log \frac{8 F(n)}{\delta}}

    :func:`vc_bound` solved for :math:`\epsilon`.

    Args:
        n: rows of the training data.
        level: :math:`\delta` in (0, 1), the probability of failure.
        growth: :math:`F(n)`.

    Example:
        >>> from ansatz.theory import half_space_growth, vc_gap
        >>> round(vc_gap(20_000, 0.05, half_space_growth(20_000, 2)), 2)
        0.2
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level}.")
    return math.sqrt(32 / n * (math.log(8) + _log_growth(n, growth) - math.log(level)))


def _log_growth(n: int, growth: float) -> float:
    """The logarithm, also of a whole number that no float can hold."""
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}.")
    if not growth >= 1:
        raise ValueError(f"growth must be at least 1, got {growth}.")
    return math.log(growth)
