"""Independent normal weights, drawn anew for every row."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.functional import softplus

from ansatz.likelihoods.dispersion import softplus_inverse

START = 0.03  # of the standard deviations, in those of the prior
_CONVOLUTIONS: dict[type[nn.Module], Any] = {
    nn.Conv1d: F.conv1d,
    nn.Conv2d: F.conv2d,
    nn.Conv3d: F.conv3d,
}


class MeanField(nn.Module):
    r"""Normal weights with a standard deviation each, around the weights of a network.

    .. math:: W_{jk} \sim N(m_{jk}, \sigma_{jk}^2), \qquad
        (Wx + b)_j \sim
        N\Big(\sum_k m_{jk} x_k + m_j,\; \sum_k \sigma_{jk}^2 x_k^2 + \sigma_j^2\Big)

    Inside :meth:`noise` the maps of the network draw their outputs from the second distribution
    (local reparameterisation): every row has weights of its own, so that the gradient has less
    noise than with one draw for all. Maps are linear layers, convolutions and embeddings; the
    scales and shifts of normalisations stay as they are.

    Args:
        network: whose weights are the means.
        scales: a standard deviation for each tensor of the network, of the prior.
        start: of the standard deviations, relative to ``scales``.

    References:
        Kingma, Salimans and Welling (2015), Variational dropout and the local reparameterization
        trick. https://arxiv.org/abs/1506.02557
    """

    def __init__(self, network: nn.Module, scales: list[Tensor], start: float = START) -> None:
        super().__init__()
        self.network = (network,)  # in a tuple: its weights are not a part of this module
        self.maps = [part for part in network.modules() if _is_map(part)]
        of_maps = {id(p) for part in self.maps for p in part.parameters(recurse=False)}
        parameters = list(network.parameters())
        self.places = [k for k, p in enumerate(parameters) if id(p) in of_maps]
        self.rho = nn.ParameterList(
            nn.Parameter(softplus_inverse(start * scales[k].detach().expand_as(parameters[k])))
            for k in self.places
        )
        self._place_of = {id(parameters[k]): n for n, k in enumerate(self.places)}

    def sds(self) -> list[Tensor]:
        """The standard deviations of the weights of maps."""
        return [softplus(rho) for rho in self.rho]

    def means(self) -> list[Tensor]:
        """The weights of maps."""
        parameters = list(self.network[0].parameters())
        return [parameters[k] for k in self.places]

    def _sd_of(self, parameter: Tensor) -> Tensor:
        return softplus(self.rho[self._place_of[id(parameter)]])

    @contextmanager
    def noise(self, source: torch.Generator | None = None) -> Iterator[None]:
        """Draws weights for every row inside, from the global generator by default."""

        def draw(part: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
            sd = self._deviation(part, inputs[0])
            return output + sd * torch.randn(
                output.shape, generator=source, dtype=output.dtype, device=output.device
            )

        handles = [part.register_forward_hook(draw) for part in self.maps]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _deviation(self, part: nn.Module, x: Tensor) -> Tensor:
        """The standard deviation of the outputs of a map at x."""
        weight: Any = part.weight
        if isinstance(part, nn.Embedding):
            return F.embedding(x, self._sd_of(weight))
        bias = getattr(part, "bias", None)
        squares = self._sd_of(weight).square()
        constant = None if bias is None else self._sd_of(bias).square()
        if isinstance(part, nn.Linear):
            variance = F.linear(x.square(), squares, constant)
        else:
            own: Any = part
            convolve = _CONVOLUTIONS[type(part)]
            variance = convolve(
                x.square(), squares, constant, own.stride, own.padding, own.dilation, own.groups
            )
        return variance.clamp(min=1e-16).sqrt()

    def sample(self, count: int, others: Tensor, source: torch.Generator) -> Tensor:
        """Draws of all weights, ``(S, D)``; ``others`` are the likelihood's numbers, behind."""
        parts, n = [], 0
        sds = self.sds()
        for place, mean in enumerate(self.network[0].parameters()):
            found = mean.detach().reshape(1, -1).expand(count, -1)
            if place in self.places:
                sd = sds[n].detach().reshape(1, -1)
                noise = torch.randn(found.shape, generator=source, dtype=found.dtype)
                found, n = found + sd * noise, n + 1
            parts.append(found)
        return torch.cat([*parts, others.to(parts[0]).expand(count, -1)], 1)


def _is_map(part: nn.Module) -> bool:
    if type(part) in _CONVOLUTIONS:
        return getattr(part, "padding_mode", "zeros") == "zeros"
    return type(part) in (nn.Linear, nn.Embedding)


def kl_of_normals(mean: Tensor, sd: Tensor, center: float | Tensor, width: Tensor) -> Tensor:
    r"""The sum of :math:`KL(N(m, s^2) \| N(m_0, s_0^2))` over all weights of a tensor."""
    width = width.expand_as(mean)
    shift = (mean - center) / width
    return (0.5 * ((sd / width).square() + shift.square() - 1) - (sd / width).log()).sum()


def log_density(value: Tensor, center: float, width: Tensor) -> Tensor:
    """The log density of weights that are not drawn, under the prior."""
    width = width.expand_as(value)
    z = (value - center) / width
    return (-0.5 * z.square() - width.log() - 0.5 * math.log(2 * math.pi)).sum()
