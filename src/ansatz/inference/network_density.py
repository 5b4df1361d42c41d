"""The posterior density of the weights of a network, with the gradient of an MLP written out.

Legend: C chains, N rows, D coordinates, H units of a layer, P raw numbers of a row.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from ansatz.data import Batch
from ansatz.inference.glm.coordinates import Coordinate, PriorDensity, Range
from ansatz.inference.glm.row_score import row_score
from ansatz.inference.priors import Prior
from ansatz.inference.weight_prior import OTHERS, WeightPrior
from ansatz.likelihoods.dispersion import PositiveHead
from ansatz.networks import MLP
from ansatz.training import Supervised
from ansatz.training.fast.numpy_mlp import derivative_of

Array = NDArray[np.float64]


class NetworkDensity:
    r"""The log posterior density of whitened weights, of the scales of their prior, and of sigma.

    .. math:: \log p = \sum_i w_i \log p(y_i \mid x_i, \theta) - \tfrac12 |z|^2 - \tfrac12 |u|^2
        + \log p(r), \qquad \theta = m + \mathrm{sd}(u)\, z

    The coordinates are z of all weights, u of the layers and columns
    (:class:`~ansatz.inference.weight_prior.WeightPrior`) and the likelihood's numbers r. Weights
    and scales are nearly independent before the data.

    Args:
        network: in float64.
        objective: in float64.
        prior: of the weights.
        rows: all training rows.
    """

    def __init__(
        self, network: nn.Module, objective: Supervised, prior: WeightPrior, rows: Batch
    ) -> None:
        self.network, self.objective, self.prior, self.rows = network, objective, prior, rows
        self.shapes = [tuple(p.shape) for p in network.parameters()]
        self.sizes = [p.numel() for p in network.parameters()]
        self.weights = sum(self.sizes)
        self.layers, self.columns = prior.layers.numel(), prior.columns.numel()
        self.scales = self.weights + self.layers + self.columns
        own = list(objective.named_parameters())
        self.size = self.scales + sum(p.numel() for _, p in own)
        self._of_likelihood = PriorDensity(self._coordinates())
        self._base = np.array(prior.base)
        self._add: Callable[[Array, Array, Array], None] = self._by_autograd
        if isinstance(network, MLP) and network.is_plain and len(rows.inputs) == 1:
            rule, shift = derivative_of(network.activation), objective.shift
            if rule is not None and (shift is None or shift.ndim == 1):
                self._rule = rule
                self._x = rows.inputs[0].double().numpy()
                self._score = row_score(objective.likelihood, network.outputs, rows.target)
                self._weight = rows.weight.double().numpy()
                self._add = self._written_out
        self._joint = _Joint(network, objective)
        self._names = [name for name, _ in self._joint.named_parameters()]

    def _coordinates(self) -> list[Coordinate]:
        """The likelihood's numbers, each with its prior."""
        found = []
        for part in self.objective.modules():
            for name, own in part.named_parameters(recurse=False):
                if isinstance(part, PositiveHead) and name == "constant":
                    unit, floor = float(part.unit.mean()), float(part.floor.mean())
                    law = self.prior.sigma or Prior("exponential", (1 / unit,))
                    each = Coordinate(name, law, 1.0, Range("softplus", unit, floor))
                else:
                    each = Coordinate(name, Prior("normal", (0.0, OTHERS)))
                found += [each] * own.numel()
        return found

    def __call__(self, position: Tensor) -> tuple[Tensor, Tensor]:
        at = position.numpy()
        with np.errstate(all="ignore"):
            value, gradient = np.zeros(len(at)), np.zeros_like(at)
            value[:], gradient[:, self.scales :] = self._of_likelihood(at[:, self.scales :])
            whitened = at[:, : self.scales]
            value -= 0.5 * (whitened * whitened).sum(1)
            gradient[:, : self.scales] -= whitened
            self._add(at, value, gradient)
        lost = ~np.isfinite(value) | ~np.isfinite(gradient).all(1)
        value[lost], gradient[lost] = -np.inf, 0
        return torch.from_numpy(value), torch.from_numpy(gradient)

    def sds(self, at: Array) -> list[Array]:
        """The standard deviations of each tensor of weights, ``(C, ...)``, broadcasting."""
        prior, found = self.prior, []
        layers = at[:, self.weights : self.weights + self.layers]
        columns = at[:, self.weights + self.layers : self.scales]
        for k, shape in enumerate(self.shapes):
            sd = np.full(len(at), self._base[k])
            if not prior.is_fixed:
                sd = sd * np.exp(prior.center + prior.width * layers[:, prior.layer_of[k]])
            sd = sd.reshape(-1, *(1,) * len(shape))
            if k == prior.first:
                factors = np.ones((len(at), prior.inputs_of_first))
                factors[:, : self.columns] = np.exp(prior.column_width * columns)
                sd = sd * factors[:, None]
            found.append(sd)
        return found

    def vectors(self, at: Array) -> Tensor:
        """The weights and the likelihood's numbers of each draw, ``(S, W + R)``."""
        found = [part.reshape(len(at), -1) for part in self._theta(at)]
        return torch.from_numpy(np.concatenate([*found, at[:, self.scales :]], axis=1))

    def prior_scales(self, at: Array) -> list[float]:
        """The posterior medians of the scales of the layers."""
        layers = at[:, self.weights : self.weights + self.layers]
        medians = np.median(np.exp(self.prior.center + self.prior.width * layers), axis=0)
        return [float(each) for each in medians]

    def _spread(self, at: Array, slopes: list[Array], gradient: Array) -> None:
        """Adds slopes by the weights to those by z and u."""
        prior, place = self.prior, 0
        for k, (slope, sd) in enumerate(zip(slopes, self.sds(at), strict=True)):
            part = slice(place, place + self.sizes[k])
            place += self.sizes[k]
            by_z = slope * sd
            gradient[:, part] += by_z.reshape(len(at), -1)
            if prior.is_fixed:
                continue
            by_log = by_z * at[:, part].reshape(by_z.shape)
            total = by_log.reshape(len(at), -1).sum(1)
            gradient[:, self.weights + prior.layer_of[k]] += prior.width * total
            if k == prior.first and self.columns:
                by_column = by_log.sum(1)[:, : self.columns]
                first = self.weights + self.layers
                gradient[:, first : self.scales] += prior.column_width * by_column

    def _written_out(self, at: Array, value: Array, gradient: Array) -> None:
        thetas = self._theta(at)
        chains, rows = len(at), len(self._x)
        inside, outside, kept = [np.broadcast_to(self._x, (chains, *self._x.shape))], [], []
        for weight, bias in zip(thetas[:-2:2], thetas[1:-2:2], strict=True):
            z = inside[-1] @ weight.transpose(0, 2, 1)  # (C, N, H)
            z += bias[:, None]
            a, s = np.empty_like(z), np.empty_like(z)
            self._rule.forward(z, a, s)
            inside.append(a)
            outside.append(z)
            kept.append(s)
        output = inside[-1] @ thetas[-2].transpose(0, 2, 1) + thetas[-1][:, None]
        raw, scale = self._attach(output)
        constants = np.broadcast_to(
            at[:, None, self.scales :], (chains, rows, self.size - self.scales)
        )
        terms, slope = self._score(np.concatenate([raw, constants], 2))
        value -= terms @ self._weight
        slope = -slope * self._weight[:, None]
        outputs = raw.shape[2]
        gradient[:, self.scales :] += slope[:, :, outputs:].sum(1)
        d = slope[:, :, :outputs] * scale
        slopes: list[Array] = []
        for layer in range(len(outside), -1, -1):
            slopes = [d.transpose(0, 2, 1) @ inside[layer], d.sum(1), *slopes]
            if layer:
                d = d @ thetas[2 * layer]
                self._rule.backward(d, outside[layer - 1], inside[layer], kept[layer - 1])
        self._spread(at, slopes, gradient)

    def _theta(self, at: Array) -> list[Array]:
        parts = np.split(at[:, : self.weights], np.cumsum(self.sizes)[:-1], axis=1)
        triples = zip(parts, self.shapes, self.sds(at), self.prior.means, strict=True)
        return [mean + sd * z.reshape(-1, *shape) for z, shape, sd, mean in triples]

    def _attach(self, output: Array) -> tuple[Array, Any]:
        """``objective.attach`` for all chains: raw numbers, and their slope by the output."""
        shift, scale, offset = self.objective.shift, self.objective.scale, self.rows.offset
        slope: Any = 1.0
        if shift is not None and scale is not None:
            slope = scale.double().numpy()
            output = shift.double().numpy() + slope * output
        if offset is not None:
            output = output.copy()
            output[..., 0] += offset.double().numpy().reshape(-1)
        return output, slope

    def _by_autograd(self, at: Array, value: Array, gradient: Array) -> None:
        """Any other network: chain by chain."""
        slopes: list[list[Array]] = []
        for k, vector in enumerate(self.vectors(at)):
            leaf = vector.requires_grad_()
            parts = leaf.split([*self.sizes, *(p.numel() for p in self.objective.parameters())])
            own = zip(self._names, parts, self._joint.parameters(), strict=True)
            weights = {name: part.view_as(like) for name, part, like in own}
            with torch.enable_grad():
                total, _ = functional_call(self._joint, weights, (self.rows,))
                (slope,) = torch.autograd.grad(-total, leaf)
            value[k] -= float(total.detach())
            gradient[k, self.scales :] += slope[self.weights :].numpy()
            cut = np.split(slope[: self.weights].numpy(), np.cumsum(self.sizes)[:-1])
            pairs = zip(cut, self.shapes, strict=True)
            slopes.append([part.reshape(shape) for part, shape in pairs])
        joined = [np.stack(each) for each in zip(*slopes, strict=True)]
        self._spread(at, joined, gradient)


class _Joint(nn.Module):
    """A network and its objective as one module, which ``functional_call`` needs."""

    def __init__(self, network: nn.Module, objective: Supervised) -> None:
        super().__init__()
        self.network, self.objective = network, objective

    def forward(self, batch: Batch) -> Any:
        return self.objective(self.network, batch)
