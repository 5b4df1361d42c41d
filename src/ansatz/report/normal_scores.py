"""Estimates location and scale of normal scores, which may be known as intervals only."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special, stats

from ansatz.report.effect import EffectSize, cluster_sums
from ansatz.report.transform import EXACT, Transform

Numbers = NDArray[np.float64]


class NormalScores(NamedTuple):
    """Location and scale of the normal scores of outcomes: 0 and 1 if calibrated."""

    location: EffectSize  # their mean; positive where outcomes are above the forecasts
    scale: EffectSize  # their standard deviation; above 1 where the forecasts are too narrow
    p_value: float  # of the Wald test that they are 0 and 1


def normal_scores(
    found: Transform, *, weight: ArrayLike | None = None, group: ArrayLike | None = None
) -> NormalScores:
    r"""Estimates location and scale of :math:`z = \Phi^{-1}(F(y))` by maximum likelihood.

    Outcomes of a continuous distribution give z itself, and the estimates are mean and standard
    deviation. For counts and censored outcomes z lies in an interval and enters with its normal
    probability: nothing is randomised. Standard errors are robust (sandwich), clustered by group.

    Args:
        found: the transforms.
        weight: ``(N,)`` frequency weights.
        group: ``(N,)``, rows that may depend on each other.

    Example:
        >>> import torch
        >>> from ansatz.diagnostics import normal_scores, transform
        >>> from ansatz.likelihoods import NormalDistribution
        >>> narrow = NormalDistribution(torch.zeros(99), torch.full((99,), 0.5))
        >>> outcomes = torch.linspace(-2, 2, 99)
        >>> round(normal_scores(transform(narrow, outcomes)).scale.value, 2)  # 1 if calibrated
        2.33

    References:
        Berkowitz (2001), Testing density forecasts, with applications to risk management.
    """
    low, high = found.scores()
    w = np.ones(len(low)) if weight is None else np.asarray(weight, dtype=np.float64)
    point = (found.upper - found.lower < EXACT) | (high - low < 1e-6)
    open_low = ~point & (found.lower <= 0)
    open_high = ~point & (found.above_upper <= 0)
    low, high = np.where(open_low, -np.inf, low), np.where(open_high, np.inf, high)
    theta = _maximise(low, high, point, w)
    scores = _scores(theta, low, high, point)  # (N, 2)
    bread = _information(theta, low, high, point, w)
    try:
        inverse = np.linalg.inv(bread)
    except np.linalg.LinAlgError:
        inverse = np.full((2, 2), np.nan)
    if group is None:
        meat = (w[:, None] * scores).T @ scores
    else:
        sums = cluster_sums(w[:, None] * scores, group)
        meat = sums.T @ sums
    covariance = inverse @ meat @ inverse
    return _summary(theta, covariance)


def _summary(theta: Numbers, covariance: Numbers) -> NormalScores:
    # Identical scores have no estimable error.
    errors = np.sqrt(np.clip(np.nan_to_num(np.diag(covariance)), 0, None))
    wald = float(theta @ np.linalg.pinv(covariance) @ theta) if np.isfinite(covariance).all() else 0
    left, right = theta - 1.96 * errors, theta + 1.96 * errors
    pvalues = [
        float(2 * stats.norm.sf(abs(theta[k]) / errors[k])) if errors[k] > 0 else 1.0
        for k in (0, 1)
    ]
    mean, sd = theta[0], math.exp(theta[1])
    low, high = (math.exp(min(max(end, -50.0), 50.0)) for end in (left[1], right[1]))
    first = (float(mean), float(left[0]), float(right[0]))
    return NormalScores(
        EffectSize("location of normal scores", *first, 0.0, pvalues[0]),
        EffectSize("scale of normal scores", sd, low, high, 1.0, pvalues[1]),
        float(stats.chi2.sf(wald, 2)),
    )


def _maximise(low: Numbers, high: Numbers, point: NDArray[np.bool_], w: Numbers) -> Numbers:
    middle = np.where(point, low, np.clip((np.clip(low, -8, 8) + np.clip(high, -8, 8)) / 2, -8, 8))
    mean = np.average(middle, weights=w)
    sd = math.sqrt(max(float(np.average((middle - mean) ** 2, weights=w)), 1e-12))
    start = np.array([mean, math.log(sd)])
    if point.all():
        return start
    total = w.sum()

    def objective(theta: Numbers) -> tuple[float, Numbers]:
        value = -(w * _log_likelihood(theta, low, high, point)).sum() / total
        slope = -(w[:, None] * _scores(theta, low, high, point)).sum(0) / total
        return float(value), slope

    begin = np.array([np.clip(mean, -1, 1), 0.0])
    bounds = [(-8.0, 8.0), (-4.0, 4.0)]
    solved = optimize.minimize(objective, begin, jac=True, method="L-BFGS-B", bounds=bounds)
    return np.asarray(solved.x)


def _standard(theta: Numbers, low: Numbers, high: Numbers) -> tuple[Numbers, Numbers, float]:
    sd = math.exp(theta[1])
    return (low - theta[0]) / sd, (high - theta[0]) / sd, sd


def _log_mass(a: Numbers, b: Numbers) -> Numbers:
    """log(Phi(b) - Phi(a)), from the side on which both are small."""
    flip = a > 0
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    upper, lower = special.log_ndtr(b), special.log_ndtr(a)
    with np.errstate(divide="ignore"):
        mass: NDArray[np.float64] = upper + np.log1p(-np.exp(np.minimum(lower - upper, 0.0)))
    return mass


def _log_likelihood(
    theta: Numbers, low: Numbers, high: Numbers, point: NDArray[np.bool_]
) -> Numbers:
    a, b, sd = _standard(theta, low, high)
    exact = -0.5 * np.where(point, a, 0.0) ** 2 - math.log(sd)
    mass = _log_mass(np.where(point, -1.0, a), np.where(point, 1.0, b))
    return np.where(point, exact, np.maximum(mass, -700.0))


def _scores(theta: Numbers, low: Numbers, high: Numbers, point: NDArray[np.bool_]) -> Numbers:
    """Derivatives of each row's log-likelihood by location and log scale, ``(N, 2)``."""
    a, b, sd = _standard(theta, low, high)
    z = np.where(point, a, 0.0)
    inside_a, inside_b = np.where(point, -1.0, a), np.where(point, 1.0, b)
    log_mass = np.maximum(_log_mass(inside_a, inside_b), -700.0)
    at_a, at_b = (np.exp(_log_density(end) - log_mass) for end in (inside_a, inside_b))
    finite_a, finite_b = (np.where(np.isfinite(end), end, 0.0) for end in (inside_a, inside_b))
    by_location = np.where(point, z, at_a - at_b) / sd
    by_scale = np.where(point, z * z - 1, finite_a * at_a - finite_b * at_b)
    return np.stack([by_location, by_scale], 1)


def _log_density(z: Numbers) -> Numbers:
    return -0.5 * z * z - 0.5 * math.log(2 * math.pi)


def _information(
    theta: Numbers, low: Numbers, high: Numbers, point: NDArray[np.bool_], w: Numbers
) -> Numbers:
    """Minus the second derivatives of the log-likelihood, by central differences."""
    step, columns = 1e-4, []
    for k in (0, 1):
        move = np.zeros(2)
        move[k] = step
        ahead, behind = (
            (w[:, None] * _scores(theta + sign * move, low, high, point)).sum(0) for sign in (1, -1)
        )
        columns.append(-(ahead - behind) / (2 * step))
    return np.stack(columns, 1)


def p_text(p: float | None) -> str:
    """Formats a p-value."""
    if p is None or p != p:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def effect_row(effect: EffectSize, prefix: str = "") -> list[str]:
    """Formats an effect: name, estimate, interval, value if calibrated, p-value."""
    digits = 3 if max(abs(effect.low), abs(effect.high), abs(effect.value)) < 0.2 else 2
    if effect.value != effect.value:
        return [f"{prefix}{effect.name}", "–", "–", f"{effect.neutral:g}", "–"]
    value, low, high = (
        f"{end:.{digits}f}".replace("-", "−") for end in (effect.value, effect.low, effect.high)
    )
    return [
        f"{prefix}{effect.name}",
        value,
        f"{low} to {high}" if effect.low == effect.low else "–",
        f"{effect.neutral:g}",
        p_text(effect.p_value),
    ]


def describe_scores(scores: NormalScores, name: str = "") -> str:
    """Writes what location and scale of the normal scores mean, in one sentence.

    Effects below a tenth count as small whatever their p-value: with many rows every model is
    rejected.
    """
    found = []
    scale, location = scores.scale, scores.location
    if scale.excludes_neutral and abs(scale.value - 1) >= 0.1:
        small = scale.value > 1
        size, ends = scale.value, sorted((scale.low, scale.high))
        if not small:
            size, ends = 1 / size, sorted((1 / scale.high, 1 / scale.low))
        found.append(
            f"standard deviation is too {'small' if small else 'large'} by a factor of {size:.2f} "
            f"({ends[0]:.2f} to {ends[1]:.2f})"
        )
    if location.excludes_neutral and abs(location.value) >= 0.1:
        side = "low" if location.value > 0 else "high"
        ends = sorted((abs(location.low), abs(location.high)))
        found.append(
            f"location is too {side} by {abs(location.value):.2f} ({ends[0]:.2f} to "
            f"{ends[1]:.2f}) predicted standard deviations"
        )
    subject = f"{name}: the" if name else "The"
    if found:
        return f"{subject} predicted " + "; the ".join(found) + "."
    notable = scale.excludes_neutral or location.excludes_neutral
    words = "are nearly calibrated" if notable else "are calibrated"
    at = f"{location.value:.2f}".replace("-", "−")
    return (
        f"{subject} predicted location and scale {words}: the normal scores have location {at} and "
        f"scale {scale.value:.2f} (0 and 1 if calibrated)."
    )
