"""Layers by name, and the one whose maps stand last before an answer."""

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from ansatz.attribution.evaluation import evaluated


def find_layer(network: nn.Module, layer: str | nn.Module) -> nn.Module:
    """A layer of a network.

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
    """The convolutions of a network by name, in the order in which it holds them.

    Example:
        >>> from torch import nn
        >>> from ansatz.attribution import convolutions
        >>> list(convolutions(nn.Sequential(nn.Conv1d(1, 2, 3), nn.ReLU(), nn.Conv1d(2, 2, 3))))
        ['0', '2']
    """
    return {name: module for name, module in network.named_modules() if _is_convolution(module)}


def last_maps(network: nn.Module, x: Tensor) -> str:
    """The layer with the last feature maps: those of the last convolution, activated.

    It is found by running one example: among the layers that are called after the last convolution
    those count that keep the shape of its maps (a normalisation, an activation, the end of a
    residual block), and the last of them is taken. A convolution that gives the network's own
    output, as in a network for segmentation, is passed over.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from ansatz.attribution import last_maps
        >>> network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        >>> last_maps(network, torch.zeros(1, 1, 8, 8))
        '1'
    """
    calls: list[tuple[str, nn.Module, Any]] = []
    hooks = [
        module.register_forward_hook(lambda m, _, y, name=name: calls.append((name, m, y)))
        for name, module in network.named_modules()
        if name
    ]
    try:
        with evaluated(network), torch.no_grad():
            output = network(x[:1])
    finally:
        for hook in hooks:
            hook.remove()
    answer = output[0] if isinstance(output, tuple) else output
    inner = [call for call in calls if call[2] is not answer and isinstance(call[2], Tensor)]
    placed = [i for i, (_, module, _) in enumerate(inner) if _is_convolution(module)]
    if not placed:
        raise ValueError(
            f"{type(network).__name__} has no convolution before its output: name a layer with "
            "maps (B, C, *size)."
        )
    last = placed[-1]
    shape = inner[last][2].shape
    while last + 1 < len(inner) and inner[last + 1][2].shape == shape:
        last += 1
    return inner[last][0]


@contextmanager
def captured(layer: nn.Module) -> Iterator[list[Tensor]]:
    """What a layer gives while the context lasts, kept from changes in place by those after it.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from ansatz.attribution.layer import captured
        >>> layer = nn.ReLU()
        >>> with captured(layer) as found:
        ...     _ = layer(torch.tensor([-1.0, 2.0]))
        >>> found
        [tensor([0., 2.])]
    """
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
