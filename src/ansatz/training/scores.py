"""The derivative of the training loss in raw, written out for the laws that people fit most.

On a small network autograd's fixed cost for the few operations of a likelihood is several times
that of the whole network. These run in NumPy, whose cost per call on short arrays is the lowest.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.special import gammaln
from torch import Tensor

from ansatz.likelihoods.bernoulli import Bernoulli
from ansatz.likelihoods.categorical import Categorical
from ansatz.likelihoods.censored import Censored
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.likelihoods.log_link import LIMIT
from ansatz.likelihoods.mse import MSE
from ansatz.likelihoods.normal import Normal
from ansatz.likelihoods.poisson import Poisson
from ansatz.training.censored_scores import censored_score

Array = np.ndarray[Any, Any]
Score = Callable[[Array, Array], tuple[Array, Array]]


def closed_form(likelihood: Likelihood) -> Score | None:
    """(raw, y) -> (training loss per outcome, its derivative in raw); None if not written out.

    Equal to autograd through ``likelihood.training_loss``, which its test checks law by law. A law
    with one learned parameter gives one more column, the derivative in that parameter.

    Example:
        >>> import numpy as np
        >>> from ansatz.likelihoods import Poisson
        >>> from ansatz.training.scores import closed_form
        >>> loss, gradient = closed_form(Poisson())(np.zeros((1, 1)), np.array([3.0]))
        >>> float(gradient[0, 0])  # rate - y
        -2.0
    """
    make = _CLOSED.get(type(likelihood))  # not a subclass, which may change the loss
    if make is None:
        return None
    learned = [p for p in likelihood.parameters() if p.requires_grad]
    spread = getattr(getattr(likelihood, "law", likelihood), "spread", None)
    constant = getattr(spread, "constant", None)
    if len(learned) > (constant is not None) or (learned and learned[0] is not constant):
        return None  # other learned shapes need a gradient of their own
    return make(likelihood)


def _normal(law: Normal) -> Score:
    head, beta = law.spread, law.beta
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
    """The normal law whose spread is one learned number, ``()``, ``(K,)`` or one per row.

    Args:
        head: has ``unit``, ``floor`` and ``constant``, read at every call.

    Example:
        >>> import numpy as np
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.training.scores import normal_constant_score
        >>> score = normal_constant_score(Normal(dispersion="constant").spread)
        >>> score(np.zeros((3, 1)), np.zeros(3))[1].shape
        (3, 2)
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


def _mse(law: MSE) -> Score:
    def score(raw: Array, y: Array) -> tuple[Array, Array]:
        unit = _like(raw, law.unit.value)
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


def _categorical(law: Categorical) -> Score | None:
    if law.reference:
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
