"""What a layer sees: its maps of an example, and the filters that make them."""

import torch
from torch import Tensor, nn

from ansatz.attribution.layer import captured, convolutions, find_layer
from ansatz.layers.mode import evaluation_mode


def feature_maps(network: nn.Module, x: Tensor, layer: str | nn.Module | None = None) -> Tensor:
    """What a layer gives for some examples.

    Args:
        network: a module; it is in evaluation mode meanwhile.
        x: examples.
        layer: by name, or the module itself; None: the first convolution.

    Shapes:
        - x: ``(B, C, *size)``.
        - returns: what the layer gives, ``(B, maps, *cells)`` for a convolution.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from ansatz.attribution import feature_maps
        >>> network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(inplace=True), nn.Flatten())
        >>> feature_maps(network, torch.randn(2, 1, 8, 8), "0").shape
        torch.Size([2, 4, 6, 6])

    References:
        Zeiler and Fergus (2014), Visualizing and understanding convolutional networks.
        https://arxiv.org/abs/1311.2901
    """
    named = find_layer(network, _first(network) if layer is None else layer)
    with evaluation_mode(network), torch.no_grad(), captured(named) as found:
        network(x)
    if not found:
        raise ValueError("the layer that was named is not called when the network runs.")
    return found[-1].detach()


def filters(network: nn.Module, layer: str | nn.Module | None = None) -> Tensor:
    """The weights of a convolution, as small pictures.

    Args:
        network: a module.
        layer: by name, or the module itself; None: the first convolution.

    Shapes:
        - returns: ``(filters, channels, *kernel)``, a copy. Of a transposed convolution the first
          axis is its input's, as torch keeps it.

    Example:
        >>> from torch import nn
        >>> from ansatz.attribution import filters
        >>> filters(nn.Sequential(nn.Conv2d(3, 8, 5), nn.ReLU())).shape
        torch.Size([8, 3, 5, 5])

    References:
        Krizhevsky et al. (2012), ImageNet classification with deep convolutional networks, fig. 3.
    """
    named = find_layer(network, _first(network) if layer is None else layer)
    weight = getattr(named, "weight", None)
    if not isinstance(weight, Tensor) or weight.ndim < 3:
        raise ValueError(
            f"filters needs a convolution, got {type(named).__name__}: its weights have no kernel."
        )
    return weight.detach().clone()


def _first(network: nn.Module) -> str:
    found = next(iter(convolutions(network)), None)
    if found is None:
        raise ValueError(f"{type(network).__name__} has no convolution: name a layer.")
    return found
