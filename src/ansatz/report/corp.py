"""Computes reliability diagrams and score decompositions by isotonic regression."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]
Score = Literal["brier", "log"]


class Reliability(NamedTuple):
    """Observed event frequencies by forecast probability."""

    forecast: Numbers  # ``(M,)``, distinct forecast probabilities in order
    calibrated: Numbers  # ``(M,)``, conditional event probabilities by isotonic regression
    weight: Numbers  # ``(M,)``, rows at each forecast
    low: Numbers  # ``(M,)``, of the pointwise band of ``calibrated`` for calibrated forecasts
    high: Numbers  # ``(M,)``

    @property
    def outside(self) -> float:
        """The share of rows whose forecasts are outside the band; 10 % if calibrated."""
        out = (self.calibrated < self.low - 1e-12) | (self.calibrated > self.high + 1e-12)
        return float(np.average(out, weights=self.weight))


class Decomposition(NamedTuple):
    r"""A mean score = miscalibration - discrimination + uncertainty, exactly."""

    score: float  # of the forecasts; smaller is better
    miscalibration: float  # what isotonic recalibration would gain
    discrimination: float  # what recalibrated forecasts gain over the constant one
    uncertainty: float  # the score of the constant forecast, the event's frequency


def reliability(
    event: ArrayLike,
    probability: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    resamples: int = 200,
    level: float = 0.9,
    seed: int = 0,
) -> Reliability:
    r"""Computes the CORP reliability diagram: consistent, optimally binned, reproducible, by PAV.

    Isotonic regression of the events on their forecasts chooses the bins. The consistency band
    is that of calibrated forecasts: events are drawn from the forecasts and regressed again.

    Args:
        event: ``(N,)``, 0 or 1.
        probability: ``(N,)`` forecasts of 1.
        weight: ``(N,)`` frequency weights.
        resamples: number of simulations of the band.
        level: of the pointwise band.
        seed: of the resamples.

    Example:
        >>> from ansatz.diagnostics import reliability
        >>> reliability([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9]).calibrated
        array([0. , 0.5, 1. ])

    References:
        Dimitriadis, Gneiting and Jordan (2021), Stable reliability diagrams for probabilistic
        classifiers. https://doi.org/10.1073/pnas.2016191118
    """
    y, p, w = _read(event, probability, weight)
    forecast, place = np.unique(p, return_inverse=True)
    rows: Numbers = np.bincount(place, w, len(forecast)).astype(np.float64)
    line = _isotonic(np.bincount(place, w * y, len(forecast)) / rows, rows)
    generator = np.random.default_rng(seed)
    lines = np.empty((resamples, len(forecast)))
    for k in range(resamples):
        drawn = (generator.random(len(p)) < p).astype(np.float64)
        lines[k] = _isotonic(np.bincount(place, w * drawn, len(forecast)) / rows, rows)
    tail = (1 - level) / 2
    low, high = np.quantile(lines, [tail, 1 - tail], axis=0)
    return Reliability(forecast, line, rows, low, high)


def decompose(
    event: ArrayLike,
    probability: ArrayLike,
    score: Score = "brier",
    *,
    weight: ArrayLike | None = None,
) -> Decomposition:
    r"""Decomposes the mean score of forecasts by isotonic recalibration.

    .. math:: \bar S(p) = \underbrace{\bar S(p) - \bar S(\hat p)}_{\text{miscalibration}} -
              \underbrace{(\bar S(\bar y) - \bar S(\hat p))}_{\text{discrimination}} +
              \underbrace{\bar S(\bar y)}_{\text{uncertainty}}

    with :math:`\hat p` the isotonic regression of events on forecasts. All terms are at least 0,
    for the Brier score :math:`(p - y)^2` and the log score :math:`-\log p(y)` alike.

    Args:
        event: ``(N,)``, 0 or 1.
        probability: ``(N,)`` forecasts of 1.
        score: ``"brier"`` or ``"log"``.
        weight: ``(N,)`` frequency weights.

    Example:
        >>> from ansatz.diagnostics import decompose
        >>> found = decompose([0, 0, 1, 1], [0.2, 0.2, 0.8, 0.8])
        >>> round(found.miscalibration, 2), round(found.discrimination, 2), found.uncertainty
        (0.04, 0.25, 0.25)

    References:
        Dimitriadis, Gneiting and Jordan (2021), eq. 5. https://doi.org/10.1073/pnas.2016191118
    """
    if score not in ("brier", "log"):
        raise ValueError(f"score must be 'brier' or 'log', got {score!r}.")
    y, p, w = _read(event, probability, weight)
    forecast, place = np.unique(p, return_inverse=True)
    rows: Numbers = np.bincount(place, w, len(forecast)).astype(np.float64)
    line = _isotonic(np.bincount(place, w * y, len(forecast)) / rows, rows)[place]
    mean = np.full(len(p), np.average(y, weights=w))
    own, best, base = (float(np.average(_score(q, y, score), weights=w)) for q in (p, line, mean))
    return Decomposition(own, own - best, base - best, base)


def add(parts: list[Decomposition]) -> Decomposition:
    """Sums decompositions, as for the Brier score of K classes."""
    return Decomposition(*(sum(column) for column in zip(*parts, strict=True)))


def _read(
    event: ArrayLike, probability: ArrayLike, weight: ArrayLike | None
) -> tuple[Numbers, Numbers, Numbers]:
    y, p = np.asarray(event, dtype=np.float64), np.asarray(probability, dtype=np.float64)
    if y.shape != p.shape or y.ndim != 1 or not len(y):
        raise ValueError(f"events and forecasts must be (N,), got {y.shape} and {p.shape}.")
    w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    seen = w > 0
    return y[seen], p[seen], w[seen]


def _isotonic(mean: Numbers, weight: Numbers) -> Numbers:
    from sklearn.isotonic import isotonic_regression

    fitted: Numbers = isotonic_regression(mean, sample_weight=weight, y_min=0.0, y_max=1.0)
    return fitted


def _score(p: Numbers, y: Numbers, score: Score) -> Numbers:
    if score == "brier":
        return (p - y) ** 2
    chance = np.where(y > 0, p, 1 - p)
    # A recalibrated 0 or 1 has events of one kind only, whose score is 0.
    return -np.log(np.maximum(chance, 1e-300))
