"""The derivative of the training loss in raw, written out for the likelihoods that people fit most.

On a small network autograd's fixed cost for the few operations of a likelihood is several times
that of the whole network. These run in NumPy, whose cost per call on short arrays is the lowest.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import gammaln
from torch import Tensor

from ansatz.likelihoods.bernoulli import Bernoulli
from ansatz.likelihoods.categorical import Categorical
from ansatz.likelihoods.censored import Censored
from ansatz.likelihoods.exponential import Exponential
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.likelihoods.log_link import LIMIT
from ansatz.likelihoods.mse import MSE
from ansatz.likelihoods.normal import Normal
from ansatz.likelihoods.poisson import Poisson
from ansatz.likelihoods.weibull import Weibull

Array = np.ndarray[Any, Any]
Score = Callable[[Array, Array], tuple[Array, Array]]
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
    sigma, bend = (np.ones(()), None) if head is None else _spread(head, raw)
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


def _spread(head: Any, raw: Array) -> tuple[Array, Array | None]:
    """sigma, and its derivative in what is learned of it."""
    if head.kind == "known":
        return head.known.double().numpy(), None
    unit, floor = head.unit.double().numpy(), head.floor.double().numpy()
    r = raw[..., 1] if head.kind == "predicted" else head.constant.detach().double().numpy()
    tail = np.exp(-np.abs(r))
    sigma = unit * (np.maximum(r, 0) + np.log1p(tail)) + floor
    return sigma, unit * np.where(r >= 0, 1, tail) / (1 + tail)


def closed_form(likelihood: Likelihood) -> Score | None:
    """(raw, y) -> (training loss per outcome, its derivative in raw); None if not written out.

    Equal to autograd through ``likelihood.training_loss``, which its test checks likelihood by
    likelihood. A likelihood with one learned parameter gives one more column, the derivative in
    that parameter.
    """
    make = _CLOSED.get(type(likelihood))  # not a subclass, which may change the loss
    if make is None:
        return None
    learned = [p for p in likelihood.parameters() if p.requires_grad]
    spread = getattr(getattr(likelihood, "likelihood", likelihood), "dispersion", None)
    constant = getattr(spread, "constant", None)
    if len(learned) > (constant is not None) or (learned and learned[0] is not constant):
        return None  # other learned shapes need a gradient of their own
    return make(likelihood)


def _normal(likelihood: Normal) -> Score:
    head, beta = likelihood.dispersion, likelihood.beta
    if head.kind == "known":
        return _normal_known(head)
    if head.kind == "constant":
        return normal_constant_score(head)

    def score(raw: Array, y: Array) -> tuple[Array, Array]:
        mean, r = raw[..., 0], raw[..., 1]
        unit, floor = _like(raw, head.unit), _like(raw, head.floor)
        tail = np.exp(-np.abs(r))
        sd = unit * (np.maximum(r, 0) + np.log1p(tail)) + floor
        precision = 1 / sd
        z = (y - mean) * precision
        excess = 1 - z * z
        terms = np.log(sd) - 0.5 * excess + (0.5 * _LOG_2_PI + 0.5)
        gradient = np.empty_like(raw)
        np.multiply(z, -precision, out=gradient[..., 0])
        slope = np.where(r >= 0, 1, tail) / (1 + tail)  # the sigmoid, without overflow
        np.multiply(slope * unit * precision, excess, out=gradient[..., 1])
        if beta:
            factor = (sd / unit) ** (2 * beta) if beta != 0.5 else sd / unit
            terms *= factor
            gradient *= factor[..., None]
        return terms, gradient

    return score


def _normal_known(head: Any) -> Score:
    def score(raw: Array, y: Array) -> tuple[Array, Array]:
        sd = _like(raw, head.known)
        z = (raw[..., 0] - y) / sd
        return 0.5 * z * z + (np.log(sd) + 0.5 * _LOG_2_PI), (z / sd)[..., None]

    return score


def normal_constant_score(head: Any) -> Score:
    """The normal distribution whose spread is one learned number, ``()``, ``(K,)`` or one per row.

    Args:
        head: has ``unit``, ``floor`` and ``constant``, read at every call.
    """

    def score(raw: Array, y: Array) -> tuple[Array, Array]:
        unit, floor, r = (_like(raw, t.detach()) for t in (head.unit, head.floor, head.constant))
        tail = np.exp(-np.abs(r))
        sd = unit * (np.maximum(r, 0) + np.log1p(tail)) + floor  # () or (K,)
        z = (y - raw[..., 0]) / sd
        excess = 1 - z * z
        gradient = np.empty((*y.shape, 2), raw.dtype)
        np.divide(-z, sd, out=gradient[..., 0])
        slope = np.where(r >= 0, 1, tail) / (1 + tail)
        np.multiply(slope * unit / sd, excess, out=gradient[..., 1])
        return (np.log(sd) + (0.5 * _LOG_2_PI + 0.5)) - 0.5 * excess, gradient

    return score


def _mse(likelihood: MSE) -> Score:
    def score(raw: Array, y: Array) -> tuple[Array, Array]:
        unit = _like(raw, likelihood.unit.value)
        z = (raw[..., 0] - y) / unit
        return z * z, (z * (2 / unit))[..., None]

    return score


def _bernoulli(_: Bernoulli) -> Score:
    def score(raw: Array, y: Array) -> tuple[Array, Array]:
        eta = raw[..., 0]
        tail = np.exp(-np.abs(eta))
        terms = np.maximum(eta, 0) - eta * y + np.log1p(tail)
        return terms, (np.where(eta >= 0, 1, tail) / (1 + tail) - y)[..., None]

    return score


def _categorical(likelihood: Categorical) -> Score | None:
    if likelihood.reference:
        return None

    starts = np.empty(0, np.intp)  # of each row, kept from batch to batch

    def score(raw: Array, y: Array) -> tuple[Array, Array]:
        # torch's softmax: a reduction along short rows is slow in NumPy.
        log_p = torch.log_softmax(torch.from_numpy(raw), -1).numpy()
        gradient = np.exp(log_p)
        if len(starts) != y.size:
            starts.resize(y.size, refcheck=False)
            starts[:] = np.arange(y.size) * raw.shape[-1]
        hit = starts + y.ravel()  # where y is, in the flat array
        terms = -log_p.take(hit).reshape(y.shape)
        gradient.ravel()[hit] -= 1  # softmax minus the indicator of y
        return terms, gradient

    return score


def _poisson(_: Poisson) -> Score:
    def score(raw: Array, y: Array) -> tuple[Array, Array]:
        beyond = np.maximum(raw[..., 0] - LIMIT, 0)  # the soft cap of the log link
        eta = np.minimum(raw[..., 0], LIMIT) + np.log1p(beyond)
        rate = np.exp(eta)
        return rate - y * eta + gammaln(y + 1), ((rate - y) / (1 + beyond))[..., None]

    return score


def _like(raw: Array, value: Tensor) -> Array:
    # A 0-d float64 array would promote float32 arrays.
    array = value.numpy()
    return array if array.dtype == raw.dtype else array.astype(raw.dtype)


_LOG_2_PI = 1.8378770664093453
_CLOSED: dict[type, Callable[[Any], Score | None]] = {
    Bernoulli: _bernoulli,
    Categorical: _categorical,
    Censored: censored_score,
    MSE: _mse,
    Normal: _normal,
    Poisson: _poisson,
}
