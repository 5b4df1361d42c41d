"""From the network's output to the loss and back: where the likelihood meets back-propagation."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ansatz.data.batch import Batch
from ansatz.likelihoods.likelihood import require_same_shape
from ansatz.training.backpropagation import Array
from ansatz.training.objectives import Supervised
from ansatz.training.scores import closed_form


class OutputGradient:
    r"""The mean training loss of a batch and its derivative in the network's output.

    .. math::
        L = \frac{\sum_i w_i \ell(r_i, y_i)}{\sum_i w_i}, \quad
        r = \text{shift} + \text{scale}\, o + \text{offset}, \quad
        \frac{\partial L}{\partial o_i} = \frac{w_i}{\sum_j w_j}\, \text{scale}\, \ell'(r_i, y_i)

    :math:`\ell'` is the closed form where :mod:`ansatz.training.scores` has one, else autograd from
    the training loss to raw and to the likelihood's own parameters, and no further.

    Args:
        objective: holds the likelihood, shift and scale.

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
