"""Covering numbers of classes of networks."""

import itertools
import math
from collections.abc import Sequence

from ansatz.errors import UsageError

_LN10 = math.log(10)


def log10_covering_shallow(
    inputs: int,
    units: int,
    *,
    radius: float,
    weight_bound: float = 1.0,
    input_bound: float = 1.0,
    lipschitz: float = 1.0,
    discount: bool = True,
) -> float:
    r"""Computes the covering number of networks with one hidden layer, as log10.

    .. math:: N(\epsilon) \le \Big( \frac{16 B^2 (B_x + 1) \sqrt{d_0}\, d_1}{\epsilon} \Big)^{S}
        \frac{\rho^{S_h}}{d_1!}, \qquad S = d_0 d_1 + 2 d_1 + 1, \quad S_h = d_0 d_1 + d_1

    in the supremum norm. Each of the S weights is rounded to a grid; the factorial is the number
    of orders of the hidden units, which all give one function. Beyond :math:`\rho = 4` the
    :math:`d_1 + 1` weights of the output need :math:`\rho / 4` times as many values too.

    Args:
        inputs: :math:`d_0`.
        units: :math:`d_1`.
        radius: :math:`\epsilon` of the balls.
        weight_bound: :math:`B \ge 1`, of every weight and bias.
        input_bound: :math:`B_x`, of the norm of x.
        lipschitz: :math:`\rho`, of the activation.
        discount: False leaves the factorial out.

    Example:
        >>> from ansatz.theory import log10_covering_shallow
        >>> full = log10_covering_shallow(64, 128, radius=0.1, discount=False)
        >>> round(full - log10_covering_shallow(64, 128, radius=0.1), 1)  # log10 of 128!
        215.6

    References:
        Shen (2024), Exploring the complexity of deep neural networks through functional
        equivalence, thm. 3. https://arxiv.org/abs/2305.11417
    """
    _require(radius, weight_bound, input_bound, lipschitz, (inputs, units))
    size = inputs * units + 2 * units + 1
    hidden = inputs * units + units
    levels = 16 * weight_bound**2 * (input_bound + 1) * math.sqrt(inputs) * units / radius
    found = size * math.log10(levels) + hidden * math.log10(lipschitz)
    found += (units + 1) * math.log10(max(lipschitz / 4, 1.0))
    return found - (log10_equivalent_weights((units,)) if discount else 0.0)


def log10_covering_deep(
    widths: Sequence[int],
    *,
    radius: float,
    weight_bound: float = 1.0,
    input_bound: float = 1.0,
    lipschitz: float = 1.0,
    discount: bool = True,
) -> float:
    r"""Computes the covering number of networks with L hidden layers, as log10.

    .. math:: N(\epsilon) \le \Big( \frac{4 (L+1) (B_x + 1) (2B)^{L+2} \rho^L \prod_{j=0}^{L} d_j}
        {\epsilon} \Big)^{S} \frac{1}{d_1! \cdots d_L!}

    Why: a change of every weight by at most :math:`\delta` changes the output by at most
    :math:`\delta (L+1) (B_x+1) (2B\rho)^L \prod_j d_j` for :math:`B, \rho \ge 1` and an activation
    that is 0 at 0, since :math:`|h_\ell| + 1 \le 2 B \rho d_{\ell-1} (|h_{\ell-1}| + 1)`; so a grid
    with this number of values per weight is a cover, with room to spare. The factor
    :math:`\rho^{S_h}` behind the power, as for one hidden layer, is too small for more of them.

    Args:
        widths: :math:`d_0, \dots, d_L`: inputs and hidden units; the one output is not named.
        radius: :math:`\epsilon` of the balls.
        weight_bound: :math:`B \ge 1`, of every weight and bias.
        input_bound: :math:`B_x`, of every coordinate of x.
        lipschitz: :math:`\rho`, of the activation; below 1 it counts as 1.
        discount: False leaves the factorials out.

    Example:
        >>> from ansatz.theory import log10_covering_deep
        >>> round(log10_covering_deep((2, 16, 16), radius=0.1))
        2094

    References:
        Shen (2024), thm. 4. https://arxiv.org/abs/2305.11417
    """
    _require(radius, weight_bound, input_bound, lipschitz, widths)
    if len(widths) < 2:
        raise UsageError(f"widths are inputs and hidden units, got {tuple(widths)}.")
    depth = len(widths) - 1
    hidden = sum((d + 1) * k for d, k in itertools.pairwise(widths))
    size = hidden + widths[-1] + 1
    levels = math.log10(4 * (depth + 1) * (input_bound + 1) / radius)
    levels += (depth + 2) * math.log10(2 * weight_bound) + sum(math.log10(d) for d in widths)
    levels += depth * math.log10(max(lipschitz, 1.0))
    return size * levels - (log10_equivalent_weights(widths[1:]) if discount else 0.0)


def log10_equivalent_weights(units: Sequence[int]) -> float:
    r"""Counts the weight vectors with the function of a generic one, as log10.

    .. math:: \log_{10} (d_1! \, d_2! \cdots d_L!)

    The units of a layer may be put in any order if the weights behind them follow.

    Args:
        units: hidden units of each layer.

    Example:
        >>> from ansatz.theory import log10_equivalent_weights
        >>> round(log10_equivalent_weights([128]), 1)
        215.6
    """
    return sum(math.lgamma(d + 1) for d in units) / _LN10


def _require(
    radius: float, weight: float, inputs: float, lipschitz: float, widths: Sequence[int]
) -> None:
    if min(widths) < 1:
        raise UsageError(f"widths must be at least 1, got {tuple(widths)}.")
    if not (radius > 0 and weight >= 1 and inputs >= 0 and lipschitz > 0):
        raise UsageError(
            "a covering number needs radius > 0, weight_bound >= 1, input_bound >= 0 and "
            f"lipschitz > 0, got {radius}, {weight}, {inputs} and {lipschitz}."
        )
