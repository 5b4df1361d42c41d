"""Normal weights of linear maps, drawn anew for every row."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError


class RowNoise(nn.Module):
    r"""Independent normal weights of the linear maps of a network, around those of a prior.

    .. math:: p(w_j) = N(w^0_j, s^2 a_\ell^2), \qquad
        q(w_j) = N\big(w^0_j + s a_\ell \mu_j,\; s^2 a_\ell^2 e^{2 \delta_j}\big)

    with :math:`a_\ell` the root mean square of the weights of layer l. Inside :meth:`noise` each
    row of a batch has weights of its own: the outputs of a linear map are drawn, which is the same
    where a map meets one vector of each row (local reparameterisation). Only such maps are
    random; convolutions, whose weights a row meets many times, stay those of the prior.

    Args:
        network: whose weights are the centre of the prior.
        inputs: of some rows, to find the maps.
        scale: s to begin with.
    """

    def __init__(self, network: nn.Module, inputs: tuple[Tensor, ...], scale: float) -> None:
        super().__init__()
        self.network = (network,)  # in a tuple: its weights are not a part of this module
        self.maps = _maps(network, inputs)
        if not self.maps:
            raise UsageError(
                f"inference pac_bayes draws the weights of linear maps of whole rows, and "
                f"{type(network).__name__} has none. Take --network mlp or lenet5."
            )
        own = [p for part in self.maps for p in part.parameters(recurse=False)]
        self.base = [p.detach().clone() for p in own]
        self.units = [max(float(p.square().mean().sqrt()), 1e-3) for p in self.base]
        self.shift = nn.ParameterList(torch.zeros_like(p) for p in self.base)  # mu
        self.log_ratio = nn.ParameterList(torch.zeros_like(p) for p in self.base)  # delta
        self.log_scale = nn.Parameter(torch.tensor(math.log(scale)))

    def kl(self) -> Tensor:
        """KL(q || p), whatever s."""
        total = self.log_scale.new_zeros((), dtype=torch.float64)
        for shift, log_ratio in zip(self.shift, self.log_ratio, strict=True):
            each = torch.expm1(2 * log_ratio) / 2 - log_ratio + shift.square() / 2
            total = total + each.sum(dtype=torch.float64)
        return total

    def weights(self) -> Iterator[tuple[nn.Module, str, Tensor, Tensor]]:
        """Each map, its parameter's name, the mean and the standard deviation."""
        scale, k = self.log_scale.exp(), 0
        for part in self.maps:
            for name, _ in part.named_parameters(recurse=False):
                width = scale * self.units[k]
                mean = self.base[k] + width * self.shift[k]
                yield part, name, mean, width * self.log_ratio[k].exp()
                k += 1

    @contextmanager
    def noise(self, source: torch.Generator) -> Iterator[None]:
        """Draws weights of every row inside, with gradients in the posterior's parameters."""
        found: dict[int, dict[str, tuple[Tensor, Tensor]]] = {}
        for part, name, mean, sd in self.weights():
            found.setdefault(id(part), {})[name] = (mean, sd)

        def draw(part: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
            (x,), own = inputs, found[id(part)]
            weight, bias = own["weight"], own.get("bias")
            mean = nn.functional.linear(x, weight[0], None if bias is None else bias[0])
            squares = None if bias is None else bias[1].square()
            variance = nn.functional.linear(x.square(), weight[1].square(), squares)
            noise = torch.randn(mean.shape, generator=source, dtype=mean.dtype)
            return mean + variance.clamp(min=1e-16).sqrt() * noise

        handles = [part.register_forward_hook(draw) for part in self.maps]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


def _maps(network: nn.Module, inputs: tuple[Tensor, ...]) -> list[nn.Module]:
    """The linear maps that meet one vector of each row, once."""
    calls: dict[int, list[int]] = {}

    def count(part: nn.Module, given: tuple[Any, ...], output: Tensor) -> None:
        calls.setdefault(id(part), []).append(given[0].ndim)

    parts = [part for part in network.modules() if type(part) is nn.Linear]
    handles = [part.register_forward_hook(count) for part in parts]
    try:
        with torch.no_grad():
            network(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return [part for part in parts if calls.get(id(part)) == [2]]
