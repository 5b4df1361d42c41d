"""What warm-up learns: the size of a step and the metric, each a function of its state."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class StepSize(NamedTuple):
    """The state of dual averaging, numbers or one for each chain."""

    log_step: Array | float
    log_average: Array | float
    error: Array | float
    count: int  # type: ignore[assignment]  # hides tuple.count, which no state needs
    center: Array | float

    @property
    def current(self) -> Array | float:
        """The step size to use next."""
        return np.exp(self.log_step)

    @property
    def settled(self) -> Array | float:
        """The average over the steps, to sample with after warm-up."""
        return np.exp(self.log_average) if self.count else self.current


def begin_step_size(step_size: Array | float) -> StepSize:
    """Dual averaging that starts at ``step_size`` and is drawn to ten times as much."""
    log_step = np.log(step_size)
    return StepSize(log_step, log_step, 0.0 * log_step, 0, log_step + math.log(10.0))


def update_step_size(state: StepSize, acceptance: Array | float, target: float = 0.8) -> StepSize:
    r"""One step of dual averaging towards an acceptance probability.

    .. math:: \bar h_t = \Big(1 - \frac{1}{t + t_0}\Big) \bar h_{t-1}
        + \frac{\delta - a_t}{t + t_0}, \quad
        \log \epsilon_t = \mu - \frac{\sqrt t}{\gamma} \bar h_t, \quad
        \overline{\log \epsilon}_t = t^{-\kappa} \log \epsilon_t
        + (1 - t^{-\kappa}) \overline{\log \epsilon}_{t-1}

    with :math:`\gamma` = 0.05, :math:`t_0` = 10 and :math:`\kappa` = 0.75.

    References:
        Hoffman and Gelman (2014), The no-U-turn sampler, section 3.2.
    """
    count = state.count + 1
    weight = 1 / (count + 10)
    error = (1 - weight) * state.error + weight * (target - acceptance)
    log_step = state.center - math.sqrt(count) / 0.05 * error
    share = count**-0.75
    return StepSize(
        log_step, share * log_step + (1 - share) * state.log_average, error, count, state.center
    )


class Moments(NamedTuple):
    """The running mean and scatter of positions (Welford)."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which no state needs
    mean: Array  # (D,)
    scatter: Array  # (D,) of the coordinates, or (D, D)


def begin_moments(size: int, dense: bool) -> Moments:
    """No position yet."""
    return Moments(0, np.zeros(size), np.zeros((size, size) if dense else size))


def update_moments(state: Moments, position: Array) -> Moments:
    """The moments with one more position, ``(D,)``."""
    count = state.count + 1
    before = position - state.mean
    mean = state.mean + before / count
    after = position - mean
    dense = state.scatter.ndim == 2
    return Moments(
        count, mean, state.scatter + (np.outer(before, after) if dense else before * after)
    )


def covariance(state: Moments, prior: Array) -> Array:
    r"""The estimated covariance, shrunk towards the metric in use.

    .. math:: \hat\Sigma = \frac{S + k \Sigma_0}{n + k}, \qquad
        k = 5 \text{ (diagonal)}, \; 5 + D \text{ (dense)}

    Args:
        state: of n positions.
        prior: the inverse mass in use, of the same shape.
    """
    weight = 5.0 + (len(prior) if prior.ndim == 2 else 0)
    found: Array = (state.scatter + weight * prior) / (state.count + weight)
    return found


def windows(warmup: int) -> list[int]:
    """The numbers of warm-up draws after which the metric is learned anew.

    As in Stan: the first 75 draws find the typical set, windows of 25, 50, 100, ... draws learn the
    metric, the last one up to 50 draws before the end, which settle the step size. Short warm-ups
    have one window.

    Example:
        >>> from ansatz.inference.samplers.adaptation import windows
        >>> windows(1000)
        [100, 150, 250, 450, 950]
    """
    if warmup < 20:
        return []
    first, size, last = 75, 25, 50
    if warmup < first + size + last:
        first, last = int(0.15 * warmup), int(0.1 * warmup)
        size = warmup - first - last
    ends, end = [], first
    while end + size <= warmup - last:
        end += size
        size *= 2
        if end + size > warmup - last:
            end = warmup - last
        ends.append(end)
    return ends


def first_draw(warmup: int) -> int:
    """The draws before the first window, which the metric does not use."""
    return 75 if warmup >= 150 else int(0.15 * warmup)
