"""The derivatives of censored Weibull and exponential times, written out in NumPy."""

from typing import Any, NamedTuple

import numpy as np

from ansatz.likelihoods.censored import Censored
from ansatz.likelihoods.exponential import Exponential
from ansatz.likelihoods.special.logarithms import LIMIT
from ansatz.likelihoods.weibull import Weibull
from ansatz.training.fast.numpy_mlp import Array, Score

FAR = 60.0  # the log of a cumulative hazard from which on its exponential is a tangent


def censored_score(likelihood: Censored) -> Score | None:
    r"""The loss of each row and its derivative in raw, for Weibull and exponential times.

    With :math:`w(t) = (\log t - \eta) / \sigma` and the cumulative hazard :math:`H(t) = e^{w(t)}`,
    b the later of lower end and entry, and e the entry, the loss is

    .. math:: -H(e) + \begin{cases} H(y) - w(y) + \log\sigma + \log y & \text{observed at y} \\
              H(b) - \log(1 - e^{-(H(u) - H(b))}) & \text{known to lie in (b, u]} \end{cases}

    whose last logarithm is 0 for an open interval. The exponential distribution has :math:`\sigma =
    1`. In double precision throughout; a learned constant :math:`\sigma` gets a column of its own.
    """
    if type(likelihood.likelihood) is Exponential:
        return lambda raw, y: _score(raw, y, None)
    if type(likelihood.likelihood) is Weibull:
        head = likelihood.likelihood.dispersion
        return lambda raw, y: _score(raw, y, head)
    return None


def _score(raw: Array, y: Array, head: Any) -> tuple[Array, Array]:
    dtype, raw = raw.dtype, raw.astype(np.float64, copy=False)
    lower, upper, entry = np.moveaxis(y.astype(np.float64, copy=False), -1, 0)
    eta, slope = _soft_clamp(raw[..., 0])
    sigma, bend = (np.ones(()), None) if head is None else _scale_of(head, raw)
    exact = lower == upper
    begin = _hazard(np.where(exact, lower, np.maximum(lower, entry)), eta, sigma)
    terms, pull = begin.value.copy(), begin.slope.copy()  # pull: the derivative in w(begin)
    stretch = np.zeros_like(terms)  # sum of derivative * w over the other times
    push = np.zeros_like(terms)  # sum of the derivatives in the w of other times
    if head is None:
        terms += exact * eta
        pull_eta = exact * 1.0
    else:
        log_y = np.log(np.where(exact & (lower > 0), lower, 1.0))
        terms += np.where(exact, np.log(sigma) + log_y - begin.w, 0.0)
        pull -= np.where(exact, 1 / begin.bend, 0.0)
        pull_eta = 0.0
    between = ~exact & np.isfinite(upper)
    if between.any():
        end = _hazard(upper, eta, sigma)
        added, at_end, at_begin = _between(begin, end)
        terms += np.where(between, added, 0.0)
        pull += np.where(between, at_begin, 0.0)
        at_end = np.where(between, at_end, 0.0)
        push, stretch = push + at_end, stretch + at_end * end.raw
    late = entry > 0
    if late.any():
        before = _hazard(entry, eta, sigma)
        terms -= np.where(late, before.value, 0.0)
        taken = np.where(late, before.slope, 0.0)
        push, stretch = push - taken, stretch - taken * before.raw
    gradient = np.empty((*terms.shape, 1 if head is None or bend is None else 2), dtype)
    gradient[..., 0] = slope * (pull_eta - (pull + push) / sigma)
    if bend is not None:
        gradient[..., 1] = bend * (exact - pull * begin.raw - stretch) / sigma
    return terms.astype(dtype, copy=False), gradient


class _Hazard(NamedTuple):
    """H at a time, its derivative in the plain w, the plain and the bent w, and how much it bends.

    All is 0 at times up to 0, before which nothing happens.
    """

    value: Array
    slope: Array
    raw: Array
    w: Array
    bend: Array
    positive: Array


def _hazard(time: Array, eta: Array, sigma: Array) -> _Hazard:
    positive = (time > 0) & (time < np.inf)
    raw = (np.log(np.where(positive, time, 1.0)) - eta) / sigma
    beyond = np.maximum(raw - FAR, 0)
    w, bend = np.minimum(raw, FAR) + np.log1p(beyond), 1 + beyond
    value = np.where(positive, np.exp(w), 0.0)
    return _Hazard(value, value / bend, raw, w, bend, positive)


def _between(begin: _Hazard, end: _Hazard) -> tuple[Array, Array, Array]:
    """-log(1 - e^-D) with D = H(end) - H(begin), and its derivatives in w(end) and w(begin).

    D may underflow: its logarithm and the ratios H / D come from the difference of the w.
    """
    gap = np.where(begin.positive, begin.w - end.w, -np.inf)
    open_part = np.maximum(-np.expm1(gap), 1e-300)  # D / H(end)
    D = end.value * open_part
    log_D = end.w + np.log(open_part)
    small = D < 1e-9
    safe = np.where(small, 1.0, D)
    value = -np.where(small, log_D, np.log(-np.expm1(-safe)))
    damped = np.where(small, 1.0, safe / np.expm1(np.minimum(safe, 700.0)))  # D / (e^D - 1)
    ratio = damped / open_part
    return value, -ratio / end.bend, np.where(begin.positive, ratio * np.exp(gap), 0.0) / begin.bend


def _soft_clamp(x: Array) -> tuple[Array, Array]:
    """The log link's soft clamp on both sides, and its derivative."""
    beyond = np.maximum(np.abs(x) - LIMIT, 0)
    return np.sign(x) * (np.minimum(np.abs(x), LIMIT) + np.log1p(beyond)), 1 / (1 + beyond)


def _scale_of(head: Any, raw: Array) -> tuple[Array, Array | None]:
    """sigma, and its derivative in what is learned of it."""
    if head.kind == "known":
        return head.known.double().numpy(), None
    unit, floor = head.unit.double().numpy(), head.floor.double().numpy()
    r = raw[..., 1] if head.kind == "predicted" else head.constant.detach().double().numpy()
    tail = np.exp(-np.abs(r))
    sigma = unit * (np.maximum(r, 0) + np.log1p(tail)) + floor
    return sigma, unit * np.where(r >= 0, 1, tail) / (1 + tail)
