"""Initialising modules by the name of a scheme, from a generator."""

import copy
import itertools
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from ansatz.layers.registry import activations, initializers

Generator = torch.Generator | None


class Start(NamedTuple):
    """How the weights of a layer were drawn; :func:`initialize` leaves it as ``layer.start``."""

    name: str
    gain: float
    bias: float


Module = TypeVar("Module", bound=nn.Module)


def gain(activation: str | nn.Module, **options: Any) -> float:
    r"""Computes the factor on LeCun weights that keeps the mean square through ``activation``.

    .. math:: g = 1 / \sqrt{\mathrm{E}\,\phi(z)^2}, \qquad z \sim N(0, 1)

    For ReLU it is :math:`\sqrt 2` (which makes LeCun's scheme He's) and for SELU 1. By
    Gauss-Hermite quadrature, so any activation has one; torch.nn.init.calculate_gain lists
    rounded values for a few (5/3 for tanh, which is 1.59 here).

    Args:
        activation: a name or a module.
        options: those of the named activation.

    Example:
        >>> from ansatz.layers import gain
        >>> round(gain("relu"), 4), round(gain("selu"), 4)
        (1.4142, 1.0)
    """
    module = (
        activations.create(activation, **options) if isinstance(activation, str) else activation
    )
    nodes, weights = np.polynomial.hermite_e.hermegauss(128)
    z, w = torch.as_tensor(nodes), torch.as_tensor(weights / weights.sum())
    with torch.no_grad():
        power = (w * copy.deepcopy(module).double()(z.unsqueeze(-1)).squeeze(-1) ** 2).sum().item()
    if power == 0:
        raise ValueError("an activation that is zero almost everywhere has no gain.")
    return power**-0.5


def affine(
    in_features: int,
    out_features: int,
    *,
    init: str = "he_normal",
    gain: float = 1.0,
    bias: float | None = 0.0,
    generator: Generator = None,
) -> nn.Linear:
    """Makes a ``torch.nn.Linear`` with weights drawn by name, from ``generator`` alone.

    ``torch.nn.Linear`` draws its weights from torch's global generator; this one leaves that as
    it was, so that building a network does not change what else the user draws.

    Args:
        in_features: :math:`D`.
        out_features: :math:`K`.
        init: the name of an initialisation.
        gain: its factor.
        bias: the value that all biases start at; None for no biases.
        generator: where the weights come from; torch's global one when not given.

    Example:
        >>> import torch
        >>> from ansatz.layers import affine
        >>> affine(3, 2, init="zeros", bias=0.01)(torch.randn(1, 3)).tolist()[0][0]
        0.009999999776482582
    """
    linear = _Blank(in_features, out_features, bias=bias is not None)
    linear.__class__ = nn.Linear  # type: ignore[assignment]  # blank only until it is filled here
    return initialize(linear, init, gain=gain, bias=bias or 0.0, generator=generator)


class _Blank(nn.Linear):
    # torch.nn.utils.skip_init does this too, by way of the meta device, ten times as slowly.
    def reset_parameters(self) -> None:
        """Draws nothing."""


def initialize(
    module: Module,
    name: str,
    *,
    generator: Generator = None,
    bias: float = 0.0,
    gain: float = 1.0,
) -> Module:
    """Draws the weights of every linear and convolution layer in ``module`` again, in place.

    A transposed convolution of stride s is s convolutions side by side, one for each place of an
    output between two inputs. Each is drawn by itself, so that its number of inputs is the one
    that an output really sums.

    Args:
        module: any module; norms and embeddings in it are left as they are.
        name: the initialisation.
        generator: where the weights come from; torch's global one when not given.
        bias: the value of all biases; 0.01 leaves fewer ReLUs dead at the start.
        gain: factor of the weights.

    Returns:
        The module itself.

    Example:
        >>> import torch
        >>> from ansatz.layers import initialize
        >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
        >>> initialize(net, "orthogonal", bias=0.01)[0].bias
        Parameter containing:
        tensor([0.0100, 0.0100], requires_grad=True)
    """
    draw = initializers.get(name)
    for layer in module.modules():
        if not isinstance(layer, (nn.Linear, *_CONVOLUTIONS, *_TRANSPOSED)):
            continue
        if layer.weight.is_meta:  # shapes without memory: nothing to fill
            continue
        with torch.no_grad():
            if parametrize.is_parametrized(layer, "weight"):
                # The weight is computed from others (weight norm): assignment solves for those.
                weight = torch.empty_like(layer.weight)
                for part in _parts(layer, weight):
                    part.copy_(draw(part.contiguous(), generator=generator, gain=gain))
                layer.weight = weight
            else:
                for part in _parts(layer, layer.weight):
                    part.copy_(draw(part.contiguous(), generator=generator, gain=gain))
            if layer.bias is not None:
                nn.init.constant_(layer.bias, bias)
        layer.start = Start(initializers.canonical(name), gain, bias)  # type: ignore[assignment]
    return module


_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


def _parts(layer: nn.Module, weight: Tensor) -> list[Tensor]:
    """Views of the weight as maps (outputs, inputs, *kernel), each of which is drawn by itself."""
    if not isinstance(layer, _TRANSPOSED):
        return [weight]
    maps = [part.transpose(0, 1) for part in weight.chunk(layer.groups)]  # (outputs, inputs, *k)
    starts = itertools.product(
        *(range(min(s, k)) for s, k in zip(layer.stride, weight.shape[2:], strict=True))
    )
    steps: list[Any] = [
        (..., *(slice(a, None, s) for a, s in zip(start, layer.stride, strict=True)))
        for start in starts
    ]
    return [part[step] for part in maps for step in steps]
