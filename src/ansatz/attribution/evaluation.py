"""Gradients of scores with respect to examples, and which examples will do."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ansatz.attribution.target import Target, score


def input_gradient(network: Callable[..., Any], x: Tensor, target: Target) -> Tensor:
    r"""The gradient of each example's score with respect to the example itself.

    .. math:: \partial s_b / \partial x_b

    The examples must not see each other, as in evaluation mode they do not: then the gradient of
    the sum of scores holds each one's own.

    Shapes:
        - x: ``(B, ...)``, and so the result.
    """
    with torch.inference_mode(False), torch.enable_grad():
        given = x.detach().clone().requires_grad_()
        total = score(network(given), target).sum()
        if not total.requires_grad:
            return torch.zeros_like(x)  # the output does not depend on x
        (found,) = torch.autograd.grad(total, given, allow_unused=True, materialize_grads=True)
    return found.detach()


def check_examples(name: str, x: Tensor, least: int = 2) -> None:
    """Refuses what is no batch of examples in floating point."""
    if not x.is_floating_point():
        raise ValueError(f"{name} needs x in floating point, got {x.dtype}: use x.float().")
    if x.ndim < least or len(x) == 0:
        axes = "(B, C, *size)" if least > 2 else "(B, ...)"
        raise ValueError(f"{name} needs a batch of examples {axes}, got {tuple(x.shape)}.")


def beside(name: str, value: Tensor | float, x: Tensor) -> Tensor:
    """A number, or a tensor that broadcasts, as one of the shape of the examples."""
    given = torch.as_tensor(value, dtype=x.dtype, device=x.device)
    try:
        return given.expand_as(x)
    except RuntimeError:
        raise ValueError(
            f"{name} must be a number or broadcast to x of shape {tuple(x.shape)}, "
            f"got {tuple(given.shape)}."
        ) from None
