"""Computes randomised quantile residuals and tests them."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats
from torch import Tensor

from ansatz.likelihoods import Distribution
from ansatz.report.effect import EffectSize, clopper_pearson, monte_carlo_p, ratio
from ansatz.report.transform import EXACT, Transform

Numbers = NDArray[np.float64]
_POINTS = 120


class Envelope(NamedTuple):
    """A band that contains all of n ordered uniform numbers simultaneously."""

    expected: Numbers  # ``(M,)``, the means k / (n + 1) of the order statistics
    low: Numbers  # ``(M,)``
    high: Numbers  # ``(M,)``


@lru_cache(maxsize=32)
def uniform_envelope(count: int, level: float = 0.95, seed: int = 0) -> Envelope:
    r"""Computes the simultaneous envelope of a QQ plot of ``count`` uniform numbers.

    The k-th of n ordered uniform numbers has the distribution Beta(k, n + 1 - k). The envelope
    has the same tail probability at every k, chosen by simulation such that all numbers lie inside
    with probability ``level``: unlike the band of Kolmogorov and Smirnov it is sharp in the tails.
    Of many rows 120 order statistics are used, dense in the tails.

    References:
        Aldor-Noiman et al. (2013), The power to see: a new graphical test of normality.
        https://doi.org/10.1080/00031305.2013.847865
    """
    if count < 1:
        raise ValueError(f"an envelope needs at least one row, got {count}.")
    places = _places(count)
    generator = np.random.default_rng(seed)
    # Spacings of uniform numbers are exponential ones divided by their sum.
    steps = np.diff(np.concatenate([[0], places, [count + 1]]))
    sums = generator.gamma(steps, size=(1000, len(steps))).cumsum(1)
    ordered = sums[:, :-1] / sums[:, -1:]
    below = special.betainc(places, count + 1 - places, ordered)
    worst = np.minimum(below, 1 - below).min(1)
    tail = float(np.quantile(worst, 1 - level))
    low = special.betaincinv(places, count + 1 - places, tail)
    high = special.betaincinv(places, count + 1 - places, 1 - tail)
    return Envelope(places / (count + 1), low, high)


def _places(count: int) -> Numbers:
    if count <= _POINTS:
        return np.arange(1, count + 1, dtype=np.float64)
    tail = np.unique(np.geomspace(1, count / 2, _POINTS // 2).round())
    return np.unique(np.concatenate([tail, count + 1 - tail]))


def holds(ordered: Numbers, band: Envelope) -> bool:
    """Tests whether sorted numbers in [0, 1] stay within the envelope."""
    count = len(ordered)
    places = np.rint(band.expected * (count + 1)).astype(np.intp) - 1
    values = ordered[places]
    return bool(((values >= band.low) & (values <= band.high)).all())


SIMULATIONS = 250  # beyond all of which a row is an outlier, as in DHARMa
_BUDGET = 500_000  # most numbers to simulate


class Residuals(NamedTuple):
    """Quantile residuals, with repeats where they are randomised."""

    uniform: Numbers  # ``(R, N)``, uniform if calibrated
    normal: Numbers  # ``(R, N)``, their normal scores


def quantile_residuals(found: Transform, *, repeats: int = 20, seed: int = 0) -> Residuals:
    r"""Draws a uniform point between F(y-) and F(y) of each row, and its normal score.

    For continuous distributions nothing is random and there is one repeat. For counts and censored
    rows, tests take the median over repeats.

    Args:
        found: the transforms.
        repeats: R.
        seed: of the draws.

    Example:
        >>> import torch
        >>> from ansatz.diagnostics import quantile_residuals, transform
        >>> from ansatz.likelihoods import NormalDistribution
        >>> standard = NormalDistribution(torch.zeros(2), torch.ones(2))
        >>> quantile_residuals(transform(standard, torch.tensor([0.0, 1.0]))).normal.round(3)
        array([[0., 1.]])

    References:
        Dunn and Smyth (1996), Randomized quantile residuals. https://doi.org/10.2307/1390802
    """
    generator = np.random.default_rng(seed)
    if bool((found.upper - found.lower < EXACT).all()):
        repeats = 1
    draws = [found.draw(generator) for _ in range(repeats)]
    return Residuals(np.stack([u for u, _ in draws]), np.stack([z for _, z in draws]))


def uniformity(uniform: Numbers) -> EffectSize:
    r"""Computes the Kolmogorov-Smirnov distance from uniform, :math:`\sup_u |F_n(u) - u|`.

    Its interval is that of Dvoretzky, Kiefer and Wolfowitz with Massart's constant, :math:`\pm
    \sqrt{\log(2 / 0.05) / 2n}`; medians over repeats.
    """
    found = [stats.kstest(row, "uniform") for row in uniform]
    distance = float(np.median([test.statistic for test in found]))
    p = float(np.median([test.pvalue for test in found]))
    reach = float(np.sqrt(np.log(2 / 0.05) / (2 * uniform.shape[1])))
    low, high = max(0.0, distance - reach), min(1.0, distance + reach)
    return EffectSize("distance from uniform (Kolmogorov-Smirnov)", distance, low, high, 0.0, p)


def outliers(uniform: Numbers, simulations: int = SIMULATIONS) -> EffectSize:
    r"""Computes observed / expected rows beyond all of 250 simulations of their distribution.

    A new outcome is below or above S simulations with probability 2 / (S + 1). The exact
    tails replace the simulations. Exact binomial interval and test; medians over repeats.
    """
    tail = 1 / (simulations + 1)
    rows = uniform.shape[1]
    count = int(np.median(((uniform < tail) | (uniform > 1 - tail)).sum(1)))
    share = clopper_pearson(count, rows)
    p = float(stats.binomtest(count, rows, 2 * tail).pvalue)
    value, low, high = (part / (2 * tail) for part in share)
    return EffectSize("outliers, observed / expected", value, low, high, 1.0, p)


def dispersion(
    mean: Tensor,
    variance: Tensor,
    y: Tensor,
    simulated: Tensor | None = None,
    *,
    weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> EffectSize:
    r"""Computes observed over expected variance, :math:`\overline{(y - \mu)^2 / \sigma^2}`.

    Above 1 the outcomes vary more than predicted. The interval is that of a mean over rows
    (clustered by group), the p-value the rank of the ratio among simulated ones.

    Args:
        mean: ``(N,)`` predicted means.
        variance: ``(N,)`` predicted variances.
        y: ``(N,)`` outcomes.
        simulated: ``(S, N)`` draws of the predicted distributions.
        weight: ``(N,)`` frequency weights.
        group: ``(N,)``.

    Example:
        >>> import torch
        >>> from ansatz.diagnostics import dispersion
        >>> mean, variance = torch.zeros(4), torch.ones(4)
        >>> dispersion(mean, variance, torch.tensor([-2.0, -1.0, 1.0, 2.0])).value
        2.5

    References:
        Hartig, DHARMa: residual diagnostics for hierarchical regression models (R package).
    """
    w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    usable = ((variance > 0) & variance.isfinite() & mean.isfinite()).numpy() & (w > 0)
    square = ((y.double() - mean) ** 2 / variance).double().numpy()
    kept = None if group is None else np.asarray(group)[usable]
    name = "dispersion, observed / expected variance"
    if usable.sum() < 2:
        return EffectSize(name, np.nan, np.nan, np.nan, 1.0)
    found = ratio(name, square[usable], np.ones(usable.sum()), weight=w[usable], group=kept)
    if simulated is None:
        return found
    each = ((simulated.double() - mean) ** 2 / variance).double().numpy()[:, usable]
    return found._replace(p_value=monte_carlo_p(each @ w[usable] / w[usable].sum(), found.value))


def zero_inflation(
    zero: ArrayLike,
    probability: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    seed: int = 0,
) -> EffectSize:
    """Computes observed over expected zeros."""
    p = np.asarray(probability, dtype=np.float64)
    seen = np.asarray(zero, dtype=np.float64)
    w = np.ones(len(p)) if weight is None else np.asarray(weight, dtype=np.float64)
    found = ratio("zeros, observed / expected", seen, p, weight=w, group=group)
    generator = np.random.default_rng(seed)
    block = max(1, 2**22 // len(p))
    counts = [
        (generator.random((min(block, 1000 - done), len(p))) < p) @ w
        for done in range(0, 1000, block)
    ]
    return found._replace(p_value=monte_carlo_p(np.concatenate(counts), float(w @ seen)))


def simulate(distribution: Distribution, seed: int = 0) -> Tensor:
    """Draws outcomes of each row's distribution, ``(S, *batch_shape)``; S is 120 to 250.

    Example:
        >>> import torch
        >>> from ansatz.diagnostics import simulate
        >>> from ansatz.likelihoods import PoissonDistribution
        >>> simulate(PoissonDistribution(torch.zeros(8))).shape
        torch.Size([250, 8])
    """
    rows = max(1, distribution.batch_shape.numel())
    count = int(np.clip(_BUDGET // rows, 120, SIMULATIONS))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        return distribution.sample((count,), generator=generator)
