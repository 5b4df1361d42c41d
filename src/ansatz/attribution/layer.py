"""Layers by name, what they give, and their feature maps."""

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from ansatz.layers.mode import evaluation_mode


def find_layer(network: nn.Module, layer: str | nn.Module) -> nn.Module:
    """Finds a layer of a network by name.

    Args:
        network: a module.
        layer: its name, as ``network.named_modules()`` spells it, or the module itself.

    Example:
        >>> from torch import nn
        >>> from ansatz.attribution import find_layer
        >>> find_layer(nn.Sequential(nn.Linear(2, 3), nn.ReLU()), "1")
        ReLU()
    """
    modules = dict(network.named_modules())
    if isinstance(layer, nn.Module):
        if not any(layer is module for module in modules.values()):
            raise ValueError(
                f"{type(layer).__name__} is not a layer of the network that was given."
            )
        return layer
    if layer not in modules:
        known = [name for name in modules if name]
        near = difflib.get_close_matches(layer, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        some = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
        raise ValueError(f"the network has no layer {layer!r}.{hint} Its layers: {some}.")
    return modules[layer]


def convolutions(network: nn.Module) -> dict[str, nn.Module]:
    """Lists the convolutions of a network by name, in the order in which it holds them.

    Example:
        >>> from torch import nn
        >>> from ansatz.attribution import convolutions
        >>> list(convolutions(nn.Sequential(nn.Conv1d(1, 2, 3), nn.ReLU(), nn.Conv1d(2, 2, 3))))
        ['0', '2']
    """
    return {name: module for name, module in network.named_modules() if _is_convolution(module)}


class LayerCall(NamedTuple):
    """One of the times that a layer is called while a network runs."""

    layer: str | nn.Module
    time: int  # counted from 0: a layer may be called more than once


def last_maps(network: nn.Module, x: Tensor) -> LayerCall:
    """Finds the layer with the last feature maps: those of the last convolution, activated.

    It is found by running one example: among the layers that are called after the last convolution
    (torch's, or a layer of another class whose weight has more than two axes) those count that keep
    the pixels of its maps (a normalisation, an activation, the end of a block that joins its
    branches), and the last of them is taken. Where a pool comes before the activation, it is the
    activated maps after it. Maps of a single pixel are passed over, and of a network for
    segmentation those with as many channels as its output, which are its output. Without a
    convolution it is the last layer that gives maps. What is not a layer is not seen: where
    ``forward`` calls an activation as a function, the maps before it are taken.

    Returns:
        The layer's name, and which of its calls it is.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from ansatz.attribution import last_maps
        >>> network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        >>> last_maps(network, torch.zeros(1, 1, 8, 8)).layer
        '1'
    """
    calls, answer = _calls(network, x[:1])
    dense = answer.ndim == x.ndim
    maps = [
        (call, module, y)
        for call, module, y in calls
        if y.ndim == x.ndim and y[0, 0].numel() > 1
        and not (dense and y.shape[1] == answer.shape[1])
    ]  # fmt: skip
    if not maps:
        raise ValueError(
            f"no layer of {type(network).__name__} gives maps (B, C, *size) before its output."
        )
    placed = [i for i, (_, module, _) in enumerate(maps) if _has_kernels(module)]
    last = placed[-1] if placed else len(maps) - 1
    first, size = last, maps[last][2].shape[2:]
    while last + 1 < len(maps) and maps[last + 1][2].shape[2:] == size:
        last += 1
    active = [i for i, (_, module, _) in enumerate(maps) if i >= first and _is_activation(module)]
    return maps[active[0] if active and active[0] > last else last][0]


def _calls(
    network: nn.Module, x: Tensor
) -> tuple[list[tuple[LayerCall, nn.Module, Tensor]], Tensor]:
    """Every call of a layer that gives a tensor, in order, and the network's own answer."""
    found: list[tuple[LayerCall, nn.Module, Tensor]] = []
    times: dict[str, int] = {}

    def note(name: str, module: nn.Module, output: Any) -> None:
        time = times[name] = times.get(name, -1) + 1
        if isinstance(output, Tensor):
            found.append((LayerCall(name, time), module, output))

    hooks = [
        module.register_forward_hook(lambda m, _, y, name=name: note(name, m, y))
        for name, module in network.named_modules()
        if name
    ]
    try:
        with evaluation_mode(network), torch.no_grad():
            output = network(x)
    finally:
        for hook in hooks:
            hook.remove()
    return found, output[0] if isinstance(output, tuple) else output


@contextmanager
def captured(layer: nn.Module) -> Iterator[list[Tensor]]:
    """Records what a layer gives, safe from changes in place by later layers."""
    found: list[Tensor] = []

    def keep(_: nn.Module, __: Any, output: Any) -> Any:
        if not isinstance(output, Tensor):
            found.append(output[0])
            return None
        found.append(output)
        return output.clone()

    hook = layer.register_forward_hook(keep)
    try:
        yield found
    finally:
        hook.remove()


def _is_convolution(module: nn.Module) -> bool:
    return isinstance(module, _ConvNd)


def _has_kernels(module: nn.Module) -> bool:
    """Torch's convolutions, and layers of other classes that give maps with such a weight."""
    if type(module).__module__.startswith(f"{nn.__name__}."):
        return _is_convolution(module)  # a normalisation of whole maps has a weight for each pixel
    weight = getattr(module, "weight", None)
    return isinstance(weight, Tensor) and weight.ndim > 2


def _is_activation(module: nn.Module) -> bool:
    return type(module).__module__ == nn.ReLU.__module__


def feature_maps(network: nn.Module, x: Tensor, layer: str | nn.Module | None = None) -> Tensor:
    """Computes the feature maps of a layer for some examples.

    Args:
        network: a module; it is in evaluation mode meanwhile.
        x: examples.
        layer: by name, or the module itself; None: the first convolution.

    Shapes:
        - x: ``(B, C, *size)``.
        - returns: what the layer gives, ``(B, maps, *size)`` for a convolution.

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
    """Gives the weights of a convolution as small pictures.

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
