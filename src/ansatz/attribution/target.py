"""The number of a network's output that is attributed, and its gradient in the input."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

Target = int | Tensor | Sequence[int] | np.ndarray | Callable[[Tensor], Tensor] | None


def score(output: Any, target: Target = None) -> Tensor:
    r"""The number of each example that is explained, :math:`s_b`.

    .. math:: s_b = \sum_{\text{pixels}} y_{b, k_b}

    with :math:`k_b` = ``target``, and the sum over the pixels of dense outputs.

    Args:
        output: :math:`y` of a network; of several heads the first.
        target: an output for all examples; one for each, ``(B,)`` whole numbers; a function from
            :math:`y` to ``(B,)``; or None, the largest output of each example. Where a method asks
            the network about many versions of each example (integrated gradients, occlusion), a
            function is given their outputs, ``(B * versions, ...)``, those of one example together.

    Shapes:
        - output: ``(B,)``, ``(B, P)`` or ``(B, P, *size)``.
        - returns: ``(B,)``.

    Example:
        >>> import torch
        >>> from ansatz.attribution import score
        >>> score(torch.tensor([[1.0, 3.0], [5.0, 2.0]])), score(torch.tensor([[1.0, 3.0]]), 0)
        (tensor([3., 5.]), tensor([1.]))
    """
    y = output[0] if isinstance(output, tuple) else output
    if callable(target):
        found = target(y)
        if not isinstance(found, Tensor) or found.shape != y.shape[:1]:
            raise ValueError(
                f"target must give a number for each of {len(y)} examples, got "
                f"{tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__}."
            )
        return found
    totals = _totals(y)  # (B, P)
    if target is None:
        return totals.amax(1)
    count = totals.shape[1]
    index = torch.as_tensor(target, device=y.device).long()
    if index.ndim > 1 or (index.ndim == 1 and len(index) != len(y)):
        raise ValueError(f"target needs one output for each of {len(y)} examples, got {target}.")
    if int(index.min()) < -count or int(index.max()) >= count:
        raise ValueError(f"target must be an output from 0 to {count - 1}, got {target}.")
    return totals.gather(1, (index % count).expand(len(y)).unsqueeze(1)).squeeze(1)


def resolved(output: Any, target: Target) -> Target:
    """``target`` for the same examples elsewhere, a list or an array as a tensor.

    None becomes the outputs that are largest here.
    """
    if callable(target) or isinstance(target, int):
        return target
    y = output[0] if isinstance(output, tuple) else output
    return _totals(y).argmax(1) if target is None else torch.as_tensor(target, device=y.device)


def repeated(target: Target, times: int) -> Target:
    """``target`` of some examples, each repeated a number of times."""
    if isinstance(target, Tensor) and target.ndim == 1:
        return target.repeat_interleave(times)
    return target


def _totals(y: Tensor) -> Tensor:
    """Sums over the pixels of each output, ``(B, P)``."""
    if y.ndim == 1:
        return y.unsqueeze(1)
    return y.flatten(2).sum(2) if y.ndim > 2 else y


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
    """Refuses what is not a batch of examples in floating point."""
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
