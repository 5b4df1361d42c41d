"""Capacity of hypothesis classes: growth functions, VC dimension, linear separability."""

import itertools
import math
from collections.abc import Sequence
from math import comb

from ansatz.errors import UsageError


def half_space_growth(n: int, dimension: int) -> int:
    r"""Counts the labellings of n points of :math:`R^d` in general position by half-spaces.

    .. math:: F(n) = 2 \sum_{k=0}^{d} \binom{n-1}{k}

    It is :math:`2^n` up to n = d + 1, which is therefore the VC dimension, and grows like
    :math:`n^d` after that. Points in general position are the worst case.

    Args:
        n: number of points, at least 1.
        dimension: :math:`d`, at least 0; the half-spaces need not contain the origin.

    Example:
        >>> from ansatz.theory import half_space_growth
        >>> [half_space_growth(n, 2) for n in (3, 4, 5)]  # of 8, 16 and 32
        [8, 14, 22]

    References:
        Cover (1965), Geometrical and statistical properties of systems of linear inequalities,
        eq. 6, with d + 1 in place of its d for the intercept.
    """
    _require_counts(n=n, dimension=dimension)
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}.")
    return 2 * sum(comb(n - 1, k) for k in range(dimension + 1))


def sauer_bound(n: int, vc_dimension: int) -> int:
    r"""Bounds the number of labellings of n points by a class of a given VC dimension.

    .. math:: F(n) \le \sum_{k=0}^{v} \binom{n}{k} \le \Big(\frac{e n}{v}\Big)^v \quad (n \ge v)

    Either all :math:`2^n` or polynomially many: nothing in between. Intervals on a line (v = 2)
    attain it.

    Args:
        n: number of points.
        vc_dimension: :math:`v`.

    Example:
        >>> from ansatz.theory import sauer_bound
        >>> [sauer_bound(n, 3) for n in (3, 4, 10)]
        [8, 15, 176]

    References:
        Sauer (1972), On the density of families of sets; Shelah (1972).
    """
    _require_counts(n=n, vc_dimension=vc_dimension)
    return sum(comb(n, k) for k in range(vc_dimension + 1))


def _require_counts(**counts: int) -> None:
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(f"{name} must be a whole number >= 0, got {value!r}.")


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
    r"""Computes the gap that no function of a class exceeds, but for a given probability.

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


def pseudo_dimension_rate(layers: int, parameters: int) -> float:
    r"""Computes the order of the VC and pseudo-dimension of piecewise linear networks.

    .. math:: L N \log N

    Linear in depth for a given number of parameters: one weight can be read many times. A rate has
    no constant; :func:`relu_vc_bound` is a bound with all of them.

    Args:
        layers: :math:`L`, affine maps.
        parameters: :math:`N`.

    Example:
        >>> from ansatz.theory import pseudo_dimension_rate
        >>> round(pseudo_dimension_rate(3, 1000))
        20723

    References:
        Bartlett, Harvey, Liaw & Mehrabian (2019), Nearly-tight VC-dimension and pseudodimension
        bounds for piecewise linear neural networks. https://arxiv.org/abs/1703.02930
    """
    if layers < 1 or parameters < 1:
        raise UsageError(f"layers and parameters must be >= 1, got {layers} and {parameters}.")
    return layers * parameters * math.log(parameters)


def log2_relu_growth(n: int, units: Sequence[int], parameters: Sequence[int]) -> float:
    r"""Bounds the number of labellings of n points by the sign of a rectified network, in bits.

    .. math:: F(n) \le \prod_{i=1}^{L} 2 \Big( \frac{2 e\, n\, k_i\, i}{W_i} \Big)^{W_i}

    Layer by layer: where the units before are linear in their inputs, the :math:`n k_i`
    pre-activations of layer i are polynomials of degree at most i in the :math:`W_i` parameters up
    to there, which bounds the number of their signs.

    Args:
        n: number of points.
        units: :math:`k_i`, units of each layer, the output included (1).
        parameters: :math:`W_i`, parameters of the layers up to i: never decreasing.

    Example:
        >>> from ansatz.theory import log2_relu_growth
        >>> round(log2_relu_growth(100, [4, 1], [8, 13]), 1)
        149.7

    References:
        Bartlett et al. (2019), thm. 7 with one break point and degree 1.
    """
    if len(units) != len(parameters) or not units:
        raise UsageError(
            f"units and parameters name the same layers, got {len(units)} and {len(parameters)}."
        )
    total = 0.0
    for i, (k, W) in enumerate(zip(units, parameters, strict=True), 1):
        # With fewer polynomials than parameters every pattern may occur: no more than 2^(nk).
        signs = 1 + W * math.log2(2 * math.e * n * k * i / W) if n * k >= W else float("inf")
        total += min(float(n * k), signs)
    return total


def relu_vc_bound(widths: Sequence[int]) -> int:
    r"""Bounds the VC dimension of fully connected rectified networks, constants included.

    .. math:: v \le \max \{ n : 2^n \le F(n) \}

    with the bound of :func:`log2_relu_growth` for F.

    Args:
        widths: inputs, hidden units of each layer, and the output: ``(2, 16, 16, 1)``.

    Example:
        >>> from ansatz.theory import relu_vc_bound
        >>> relu_vc_bound((2, 16, 16, 1))
        7344
    """
    if len(widths) < 2 or min(widths) < 1 or widths[-1] != 1:
        raise UsageError(f"widths are inputs, hidden units and one output, got {tuple(widths)}.")
    sizes = [(d + 1) * k for d, k in itertools.pairwise(widths)]
    parameters = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    low, high = 1, 2
    while log2_relu_growth(high, widths[1:], parameters) >= high:
        low, high = high, 2 * high
    while high - low > 1:  # 2^n has outgrown F once and for all
        middle = (low + high) // 2
        if log2_relu_growth(middle, widths[1:], parameters) >= middle:
            low = middle
        else:
            high = middle
    return low
