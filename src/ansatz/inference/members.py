"""Several networks of one shape as one: parameters with a leading axis."""

import copy
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from ansatz.data import Batch
from ansatz.likelihoods import Likelihood, Normal
from ansatz.networks import MLP
from ansatz.training import Supervised
from ansatz.training.fast.likelihood import closed_form, normal_constant_score
from ansatz.training.fast.numpy_mlp import Array, Score


class Members(nn.Module):
    """S plain multilayer perceptrons side by side, all products of a layer in one call.

    Attributes:
        weights: ``(S, out, in)`` for each layer, the output layer's last.
        biases: ``(S, out)`` for each layer.

    Shapes:
        - x: ``(B, D)`` for all members, or ``(S, B, D)``, rows of its own for each.
        - returns: ``(S, B, P)``.
    """

    def __init__(self, networks: Sequence[MLP]) -> None:
        super().__init__()
        layers = [_linears(network) for network in networks]
        self.activation = networks[0].activation
        self.weights = nn.ParameterList(
            torch.stack([layer.weight.detach() for layer in same])
            for same in zip(*layers, strict=True)
        )
        self.biases = nn.ParameterList(
            torch.stack([layer.bias.detach() for layer in same])
            for same in zip(*layers, strict=True)
        )

    def __len__(self) -> int:
        return len(self.biases[0])

    def forward(self, x: Tensor) -> Tensor:
        h = x.expand(len(self), *x.shape) if x.ndim == 2 else x
        last = len(self.weights) - 1
        for place, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            h = torch.baddbmm(bias.unsqueeze(1), h, weight.transpose(1, 2))
            if place < last:
                h = self.activation(h)
        return h

    def select(self, chosen: Tensor) -> "Members":
        """The members with these numbers, as copies."""
        some = copy.copy(self)
        some._modules = dict(self._modules)
        some.weights = nn.ParameterList(weight.detach()[chosen] for weight in self.weights)
        some.biases = nn.ParameterList(bias.detach()[chosen] for bias in self.biases)
        return some

    def member(self, number: int, like: MLP) -> MLP:
        """Member ``number`` as a network by itself, a copy of ``like`` with its weights."""
        network = copy.deepcopy(like)
        with torch.no_grad():
            for linear, weight, bias in zip(
                _linears(network), self.weights, self.biases, strict=True
            ):
                linear.weight.copy_(weight[number])
                linear.bias.copy_(bias[number])
        return network


def _linears(network: MLP) -> list[nn.Linear]:
    return [*network.hidden, network.output]


class MemberObjective(nn.Module):
    r"""The mean losses of S members, and their derivatives in the members' outputs.

    .. math:: L_s = \frac{\sum_i w_{si} \ell(r_{si}, y_{si})}{\sum_i w_{si}}

    Shapes that a likelihood learns (a constant dispersion, thresholds) are each member's own.

    Shapes:
        - output: ``(S, B, P)``, or ``(S, B, K * P)`` for K targets.
    """

    def __init__(self, objective: Supervised, members: int) -> None:
        super().__init__()
        self.common, self.members = objective, members
        likelihood = objective.likelihood
        learned = [(name, p) for name, p in likelihood.named_parameters() if p.requires_grad]
        self._names = [name for name, _ in learned]
        self.own = nn.ParameterList(
            p.detach().expand(members, *p.shape).clone() for _, p in learned
        )
        for _, parameter in learned:  # the members' own move, this one does not
            parameter.requires_grad_(False)
        self._call = _Call(likelihood)
        self._score = self._closed_form(likelihood)

    def _closed_form(self, likelihood: Likelihood) -> Score | None:
        if not len(self.own):
            return closed_form(likelihood)
        if (
            type(likelihood) is Normal
            and self._names == ["dispersion.constant"]
            and self.own[0].ndim == 1
        ):
            self._head = SimpleNamespace(
                unit=likelihood.dispersion.unit, floor=likelihood.dispersion.floor
            )
            return normal_constant_score(self._head)
        return None

    def select(self, chosen: Tensor) -> "MemberObjective":
        """The losses of the members with these numbers; what they have learned is copied."""
        some = copy.copy(self)
        some._modules = dict(self._modules)
        some.members = len(chosen)
        some.own = nn.ParameterList(p.detach()[chosen] for p in self.own)
        return some

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood that all members share."""
        return self.common.likelihood

    def gradient(
        self, output: Tensor, batch: Batch, own_gradients: list[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Losses ``(S,)`` and the derivative of their sum in the output."""
        if not self.likelihood.additive:
            return self._joint(output, batch, own_gradients)
        if self._score is not None:
            return self._closed(output, batch, own_gradients)
        share = batch.weight / batch.weight.sum(1, keepdim=True).clamp(min=1e-30)
        raw = self._attach(output.detach(), batch).requires_grad_()
        own = [self._by_row(p.detach(), batch).requires_grad_() for p in self.own]
        with torch.enable_grad():
            terms = self._terms("training_loss", raw, batch, own)
        weights = _shares(share, terms)
        gradient, *rest = torch.autograd.grad(
            terms, [raw, *own], weights, allow_unused=True, materialize_grads=True
        )
        for slot, value in zip(own_gradients, rest, strict=True):
            slot.copy_(value.reshape(self.members, -1, *slot.shape[1:]).sum(1))
        losses = (terms.detach() * weights).reshape(self.members, -1).sum(1)
        return losses, self._detach(gradient, output)

    def losses(self, output: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """The plain losses of the members, sums and weights ``(S,)`` each; no gradient."""
        if not self.likelihood.additive:
            totals = [
                likelihood.joint_loss(raw, y, weight).sum()
                for likelihood, raw, y, weight in self._member_rows(output, batch)
            ]
            return torch.stack(totals), batch.weight.sum(1)
        own = [self._by_row(p.detach(), batch) for p in self.own]
        terms = self._terms("loss", self._attach(output, batch), batch, own)
        weight = _expand(batch.weight.reshape(-1), terms)
        product = torch.where(weight > 0, terms * weight, 0)
        shape = (self.members, -1)
        return product.reshape(shape).sum(1), weight.reshape(shape).sum(1)

    def of_member(self, number: int) -> dict[str, Tensor]:
        """The learned shapes of one member, by their names in the likelihood."""
        values = (p.detach()[number].clone() for p in self.own)
        return dict(zip(self._names, values, strict=True))

    # The rows of all members, one after another.

    def _attach(self, output: Tensor, batch: Batch) -> Tensor:
        offset = None if batch.offset is None else batch.offset.reshape(-1)
        return self.common.attach(output.reshape(-1, output.shape[-1]), offset)

    def _detach(self, gradient: Tensor, output: Tensor) -> Tensor:
        """Converts the derivative in raw to that in the output."""
        if self.common.scale is not None:
            gradient = gradient * self.common.scale
        return gradient.reshape(output.shape).to(output.dtype)

    def _by_row(self, own: Tensor, batch: Batch) -> Tensor:
        return own.repeat_interleave(batch.weight.shape[1], 0)

    def _terms(self, kind: str, raw: Tensor, batch: Batch, own: list[Tensor]) -> Tensor:
        target = batch.target.flatten(0, 1)
        if not own:
            terms: Tensor = getattr(self.likelihood, kind)(raw, target)
            return terms
        named = {f"likelihood.{name}": value for name, value in zip(self._names, own, strict=True)}
        called: Tensor = functional_call(self._call, named, (kind, raw, target))
        return called

    def _closed(
        self, output: Tensor, batch: Batch, own_gradients: list[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """On arrays: for some hundred rows torch's cost per call would be most of the cost."""
        assert self._score is not None
        if len(self.own):
            self._head.constant = self._by_row(self.own[0].detach(), batch)
        raw, y = self._raw_array(output.numpy(), batch), batch.target.numpy()
        with np.errstate(all="ignore"):  # what is not finite is found by the step
            terms, gradient = self._score(raw, y.reshape(-1, *y.shape[2:]))
        weight = batch.weight.numpy()
        share = weight / weight.sum(1, keepdims=True)
        if terms.ndim == 1:
            losses = (terms.reshape(share.shape) * share).sum(1)
            gradient *= share.reshape(-1, 1)
        else:  # the mean over several targets
            part = share.reshape(-1, *(1,) * (terms.ndim - 1)) * (len(terms) / terms.size)
            losses = (terms * part).reshape(self.members, -1).sum(1)
            gradient *= part[..., None]
        if len(self.own):
            slot = gradient[..., -1].reshape(self.members, -1).sum(1)
            own_gradients[0].copy_(torch.from_numpy(slot))
            gradient = gradient[..., :-1]
        scale = self.common.scale
        if scale is not None:
            gradient = gradient * scale.numpy()
        gradient = gradient.astype(raw.dtype, copy=False).reshape(output.shape)
        return torch.from_numpy(losses), torch.from_numpy(gradient)

    def _raw_array(self, output: Array, batch: Batch) -> Array:
        """``Supervised.attach``, on arrays."""
        shift, scale = self.common.shift, self.common.scale
        raw = output.reshape(-1, output.shape[-1])
        if shift is not None and scale is not None:
            raw = raw.reshape(-1, *shift.shape) * scale.numpy().astype(raw.dtype, copy=False)
            raw += shift.numpy().astype(raw.dtype, copy=False)
        if batch.offset is not None:
            raw, extra = raw.copy(), batch.offset.numpy().reshape(-1)
            raw[..., 0] += extra.reshape(-1, *(1,) * (raw.ndim - 2))
        return raw

    def _joint(
        self, output: Tensor, batch: Batch, own_gradients: list[Tensor]
    ) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            leaf = output.detach().clone().requires_grad_()
            losses = torch.stack(
                [
                    likelihood.joint_loss(raw, y, weight).sum() / weight.sum()
                    for likelihood, raw, y, weight in self._member_rows(leaf, batch)
                ]
            )
            (gradient,) = torch.autograd.grad(losses.sum(), leaf)
        return losses.detach(), gradient

    def _member_rows(self, output: Tensor, batch: Batch) -> list[tuple[Any, ...]]:
        """Likelihood, raw, outcomes and weights of each member, without rows of weight 0."""
        found = []
        for member in range(self.members):
            seen = batch.weight[member] > 0
            offset = None if batch.offset is None else batch.offset[member][seen]
            raw = self.common.attach(output[member][seen], offset)
            rows = (batch.target[member][seen], batch.weight[member][seen])
            found.append((self.likelihood, raw, *rows))
        return found


class _Call(nn.Module):
    """A likelihood's losses as a forward, which ``functional_call`` needs."""

    def __init__(self, likelihood: Likelihood) -> None:
        super().__init__()
        self.likelihood = likelihood

    def forward(self, kind: str, raw: Tensor, y: Tensor) -> Tensor:
        terms: Tensor = getattr(self.likelihood, kind)(raw, y)
        return terms


def _shares(share: Tensor, terms: Tensor) -> Tensor:
    """Each outcome's part of its member's mean loss."""
    return _expand(share.reshape(-1), terms) / (terms.numel() / share.numel())


def _expand(weight: Tensor, terms: Tensor) -> Tensor:
    return weight.reshape(weight.shape + (1,) * (terms.ndim - 1)).expand_as(terms).to(terms.dtype)
