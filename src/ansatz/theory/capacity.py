"""How many points a rectified network can label at will."""

import itertools
import math
from collections.abc import Sequence

from ansatz.errors import UsageError


def pseudo_dimension_rate(layers: int, parameters: int) -> float:
    r"""The order of the VC and pseudo-dimension of networks with piecewise linear activations.

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
    to there, and so many signs at most can they have.

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
    r"""A bound on the VC dimension of fully connected rectified networks, constants included.

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
