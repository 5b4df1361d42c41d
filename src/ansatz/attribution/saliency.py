"""Saliency: the gradient of an output in the input, plain and smoothed."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ansatz.attribution.target import Target, check_examples, input_gradient, resolved
from ansatz.layers.mode import evaluation_mode


def saliency(network: Callable[..., Any], x: Tensor, target: Target = None) -> Tensor:
    r"""Computes the gradient of an output with respect to the input.

    .. math:: \frac{\partial s(x)}{\partial x}

    with :math:`s` chosen by ``target``. It is local: where the output is saturated it vanishes,
    however much the output depends on the pixel.

    Args:
        network: any callable on ``x``; a module is in evaluation mode meanwhile.
        x: examples.
        target: see :func:`ansatz.attribution.score`; None: the largest output of each example.

    Shapes:
        - x: ``(B, C, *size)``, or anything with a batch axis.
        - returns: the shape of x.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from ansatz.attribution import saliency
        >>> network = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
        >>> found = saliency(network, torch.randn(2, 1, 4, 4), target=1)
        >>> torch.equal(found[0].flatten(), network[1].weight[1])
        True

    References:
        Simonyan et al. (2014), Deep inside convolutional networks, section 3.
        https://arxiv.org/abs/1312.6034
    """
    check_examples("saliency", x)
    with evaluation_mode(network):
        return input_gradient(network, x, target)


def smooth_grad(
    network: Callable[..., Any],
    x: Tensor,
    target: Target = None,
    *,
    noise: float = 0.15,
    samples: int = 32,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""Averages the gradient over noisy copies of the input.

    .. math:: \frac{1}{S} \sum_{i=1}^S \frac{\partial s}{\partial x}(x + \sigma r \epsilon_i),
        \qquad \epsilon_i \sim N(0, I)

    with :math:`\sigma` = ``noise``, :math:`S` = ``samples`` and :math:`r` the range of an example.
    It estimates the gradient of the score smoothed by a Gaussian, which fluctuates less.

    Args:
        network: any callable on ``x``; a module is in evaluation mode meanwhile.
        x: examples.
        target: see :func:`ansatz.attribution.score`; None: the output that is largest at x.
        noise: standard deviation, as a share of the range of each example.
        samples: noisy copies.
        generator: of random numbers.

    Shapes:
        - x: ``(B, C, *size)``, or anything with a batch axis.
        - returns: the shape of x.

    Example:
        >>> import torch
        >>> from ansatz.attribution import smooth_grad
        >>> smooth_grad(lambda x: 3 * x, torch.tensor([[1.0]]), 0)
        tensor([[3.]])

    References:
        Smilkov et al. (2017), SmoothGrad: removing noise by adding noise.
        https://arxiv.org/abs/1706.03825
    """
    check_examples("smooth_grad", x)
    if samples < 1 or not noise >= 0:
        raise ValueError(
            f"smooth_grad needs samples >= 1 and noise >= 0, got {samples} and {noise}."
        )
    flat = x.flatten(1)
    scale = noise * (flat.amax(1) - flat.amin(1)).reshape(-1, *(1,) * (x.ndim - 1))
    device = generator.device if generator is not None else x.device
    total = torch.zeros_like(x)
    with evaluation_mode(network):
        with torch.no_grad():
            at = resolved(network(x), target)
        for _ in range(samples):
            epsilon = torch.randn(x.shape, generator=generator, dtype=x.dtype, device=device)
            total += input_gradient(network, x + scale * epsilon.to(x.device), at)
    return total / samples
