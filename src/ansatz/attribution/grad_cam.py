"""Grad-CAM: the maps of a layer, weighted by the gradient of an output."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from ansatz.attribution.layer import LayerCall, captured, find_layer, last_maps
from ansatz.attribution.target import Target, check_examples, score
from ansatz.layers.mode import evaluation_mode

_INTERPOLATION = {1: "linear", 2: "bilinear", 3: "trilinear"}


def grad_cam(
    network: nn.Module,
    x: Tensor,
    target: Target = None,
    *,
    layer: str | nn.Module | None = None,
    upsample: bool = True,
) -> Tensor:
    r"""Computes the Grad-CAM map of a layer, enlarged to the size of the input.

    .. math:: \alpha_k = \frac{1}{Z} \sum_{i} \frac{\partial s}{\partial A^k_i}, \qquad
        L_i = \max\Big(0, \sum_k \alpha_k A^k_i\Big)

    with the maps :math:`A^k` of ``layer``, each of :math:`Z` pixels :math:`i`. With one linear
    layer after a mean over all pixels it is the class activation map, rectified and divided by Z.

    Args:
        network: a module; it is in evaluation mode meanwhile.
        x: examples.
        target: see :func:`ansatz.attribution.score`; None: the largest output of each example.
        layer: by name, or the module itself, at its last call; None: the last maps of the last
            convolution, see :func:`ansatz.attribution.last_maps`.
        upsample: interpolate to the size of x; else the size of the layer's maps is kept.

    Shapes:
        - x: ``(B, C, *size)`` with one, two or three spatial axes.
        - returns: ``(B, *size)``, or ``(B, *size of the maps)``; zero or more.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from ansatz.attribution import grad_cam
        >>> head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
        >>> network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), *head)
        >>> grad_cam(network, torch.randn(2, 1, 8, 8), target=0).shape
        torch.Size([2, 8, 8])

    References:
        Selvaraju et al. (2017), Grad-CAM, eqs. 1 and 2. https://arxiv.org/abs/1610.02391
        Zhou et al. (2016), Learning deep features for discriminative localization, eq. 2.
    """
    check_examples("grad_cam", x, 3)
    chosen = last_maps(network, x) if layer is None else LayerCall(layer, -1)
    named = find_layer(network, chosen.layer)
    with evaluation_mode(network), torch.inference_mode(False), torch.enable_grad():
        # The gradient at an inner layer needs one at its input, also where weights are frozen.
        given = x.detach().clone().requires_grad_()
        with captured(named) as found:
            scores = score(network(given), target)
        maps = _maps(found, x, chosen.time)
        (gradient,) = torch.autograd.grad(
            scores.sum(), maps, allow_unused=True, materialize_grads=True
        )
    axes = tuple(range(2, maps.ndim))
    alpha = gradient.mean(axes, keepdim=True)  # eq. 1
    heat = (alpha * maps.detach()).sum(1, keepdim=True).relu()  # eq. 2
    if upsample and heat.shape[2:] != x.shape[2:]:
        mode = _INTERPOLATION[len(axes)]
        heat = functional.interpolate(heat, x.shape[2:], mode=mode, align_corners=False)
    return heat.squeeze(1)


def _maps(found: list[Tensor], x: Tensor, time: int) -> Tensor:
    if not found:
        raise ValueError("the layer that was named is not called when the network runs.")
    maps = found[time]
    if maps.ndim != x.ndim:
        raise ValueError(
            f"grad_cam needs a layer with maps of {x.ndim - 2} spatial axes, and the one that was "
            f"named gives {tuple(maps.shape)}. Choose an earlier one."
        )
    return maps
