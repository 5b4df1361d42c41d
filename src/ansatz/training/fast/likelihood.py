"""The loss at the network's output and its derivative there, by closed forms in NumPy.

On a small network autograd's fixed cost for the few operations of a likelihood is several times
that of the whole network. NumPy's cost per call on short arrays is the lowest.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from scipy.special import gammaln
from torch import Tensor

from ansatz.data.batch import Batch
from ansatz.likelihoods.bernoulli import Bernoulli
from ansatz.likelihoods.categorical import Categorical
from ansatz.likelihoods.censored import Censored
from ansatz.likelihoods.likelihood import Likelihood, require_same_shape
from ansatz.likelihoods.normal import Normal
from ansatz.likelihoods.point_loss import MSE
from ansatz.likelihoods.poisson import Poisson
from ansatz.likelihoods.special.logarithms import LIMIT
from ansatz.training.fast.censored import censored_score
from ansatz.training.fast.numpy_mlp import Array, Score
from ansatz.training.objectives import Supervised


class OutputGradient:
    r"""The mean training loss of a batch and its derivative in the network's output.

    .. math::
        L = \frac{\sum_i w_i \ell(r_i, y_i)}{\sum_i w_i}, \quad
        r = \text{shift} + \text{scale}\, o + \text{offset}, \quad
        \frac{\partial L}{\partial o_i} = \frac{w_i}{\sum_j w_j}\, \text{scale}\, \ell'(r_i, y_i)

    :math:`\ell'` is the closed form where :func:`closed_form` has one, else autograd from the
    training loss to raw and to the likelihood's own parameters, and no further.

    Shapes:
        - output, returned gradient: ``(B, P)``, or ``(B, K * P)`` for K targets.
    """

    def __init__(self, objective: Supervised) -> None:
        self.objective, self.likelihood = objective, objective.likelihood
        self.own = [p for p in self.likelihood.parameters() if p.requires_grad]
        self._score = closed_form(self.likelihood)
        self._event_ndim = self.likelihood.event_ndim
        self._buffers = objective._buffers  # a tenth of the cost of Module.__getattr__
        self._arrays: dict[str, tuple[Tensor | None, Array | None]] = {}

    def __call__(
        self, output: Array, batch: Batch, own_gradients: Sequence[Tensor] = ()
    ) -> tuple[float, float, Array]:
        """Loss, total weight and gradient; the likelihood's own go into ``own_gradients``."""
        if not self.likelihood.additive:
            return self._joint(output, batch, own_gradients)
        if self._score is None:
            terms, gradient = self._autograd(output, batch, own_gradients)
        else:
            raw, y = self._attach(output, batch.offset), batch.target.numpy()
            event = y.shape[y.ndim - self._event_ndim :] if self._event_ndim else ()
            if raw.shape[:-1] + event != y.shape:
                name, made = self.likelihood.name, torch.from_numpy(raw)
                require_same_shape(name, made, batch.target, event=event)
            terms, gradient = self._score(raw, y)
        share, count = _share(batch, terms)
        loss = float(share.dot(terms)) if terms.ndim == 1 else float((share * terms).sum())
        if self._score is not None:
            gradient *= share[..., None]
        if not math.isfinite(loss):
            # where, not multiplication: an unobserved outcome may be nan, and nan * 0 is nan.
            loss = float(np.where(share > 0, terms * share, 0).sum())
            gradient = np.where(share[..., None] > 0, gradient, 0)
        if self._score is not None and self.own:
            gradient, own = gradient[..., :-1], gradient[..., -1]
            (slot,) = own_gradients
            slot.copy_(torch.from_numpy(np.asarray(own.sum(tuple(range(own.ndim - slot.ndim))))))
        scale = self._array("scale")
        if scale is not None:
            gradient *= scale
        if gradient.dtype != output.dtype:  # outcomes or shifts in float64
            gradient = gradient.astype(output.dtype)
        return loss, count, gradient if gradient.ndim == 2 else gradient.reshape(output.shape)

    def _array(self, name: str) -> Array | None:
        """A buffer of the objective as an array, made anew only when the buffer is another one."""
        buffer = self._buffers[name]
        known, array = self._arrays.get(name, (None, None))
        if buffer is not known:
            array = None if buffer is None else buffer.numpy()
            self._arrays[name] = buffer, array
        return array

    def _attach(self, output: Array, offset: Tensor | None) -> Array:
        """``objective.attach``, on arrays."""
        raw, shift, scale = output, self._array("shift"), self._array("scale")
        if shift is not None and scale is not None:
            if shift.ndim == 2:
                raw = raw.reshape(-1, *shift.shape)  # (B, K, P)
            raw = raw * scale
            raw += shift
        if offset is not None:
            raw, extra = raw.copy(), offset.numpy()
            raw[..., 0] += extra.reshape(extra.shape + (1,) * (raw.ndim - 1 - extra.ndim))
        return raw

    def _joint(
        self, output: Array, batch: Batch, own_gradients: Sequence[Tensor]
    ) -> tuple[float, float, Array]:
        """The same for a likelihood that couples the rows of a batch."""
        count = float(batch.weight.sum())
        outcome = torch.from_numpy(output).requires_grad_()
        with torch.enable_grad():
            raw = self.objective.attach(outcome, batch.offset)
            loss = self.likelihood.joint_loss(raw, batch.target, batch.weight).sum() / count
        gradient, *own = torch.autograd.grad(
            loss, [outcome, *self.own], allow_unused=True, materialize_grads=True
        )
        for slot, value in zip(own_gradients, own, strict=True):
            slot.copy_(value)
        return float(loss.detach()), count, gradient.numpy()

    def _autograd(
        self, output: Array, batch: Batch, own_gradients: Sequence[Tensor]
    ) -> tuple[Array, Array]:
        """Loss per outcome, and its derivative already times each outcome's share."""
        with torch.no_grad():
            raw = self.objective.attach(torch.from_numpy(output), batch.offset)
        raw = raw.detach().requires_grad_()
        with torch.enable_grad():
            terms = self.likelihood.training_loss(raw, batch.target)
        share, _ = _share(batch, terms.detach().numpy())
        gradient, *own = torch.autograd.grad(
            terms,
            [raw, *self.own],
            torch.from_numpy(share),
            allow_unused=True,
            materialize_grads=True,
        )
        for slot, value in zip(own_gradients, own, strict=True):
            slot.copy_(value)
        return terms.detach().numpy(), gradient.numpy()


def _share(batch: Batch, terms: Array) -> tuple[Array, float]:
    """Each outcome's part of the total weight, and that total."""
    weight = batch.weight.numpy()
    if weight.ndim != terms.ndim:
        weight = np.broadcast_to(
            weight.reshape(weight.shape + (1,) * (terms.ndim - 1)), terms.shape
        )
    count = float(np.add.reduce(weight, None))
    share = weight / (count or 1.0)
    return share if share.dtype == terms.dtype else share.astype(terms.dtype), count


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
    head = getattr(getattr(likelihood, "likelihood", likelihood), "dispersion", None)
    constant = getattr(head, "constant", None)
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
    """The normal distribution with one learned standard deviation: ``()``, ``(K,)`` or per row."""

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
