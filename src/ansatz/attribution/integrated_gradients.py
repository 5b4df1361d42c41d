"""Integrated gradients: a difference of outputs shared out among the pixels of the input."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ansatz.attribution.target import (
    Target,
    beside,
    check_examples,
    input_gradient,
    repeated,
    resolved,
)
from ansatz.layers.mode import evaluation_mode


def integrated_gradients(
    network: Callable[..., Any],
    x: Tensor,
    target: Target = None,
    *,
    baseline: Tensor | float = 0.0,
    steps: int = 64,
    rule: Literal["gauss", "midpoint"] = "gauss",
    batch_size: int = 256,
) -> Tensor:
    r"""Averages the gradient from a baseline to the input, times their difference.

    .. math:: a_i = (x_i - x'_i) \int_0^1
        \frac{\partial s}{\partial x_i} \big( x' + t (x - x') \big)\, dt,
        \qquad \sum_i a_i = s(x) - s(x')

    with :math:`x'` = ``baseline`` and the integral by a rule of ``steps`` points. That the
    attributions add up to the difference of the scores is the axiom of completeness: how far they
    fail it says whether there are steps enough. Gauss' rule is exact where the score is a
    polynomial along the way, of degree up to twice the number of steps; with rectified units both
    rules have kinks to cross.

    Args:
        network: any callable on ``x``; a module is in evaluation mode meanwhile.
        x: examples.
        target: see :func:`ansatz.attribution.score`; None: the output that is largest at x.
        baseline: where nothing is shown: a number, or a tensor that broadcasts to x. It matters:
            pixels that equal it get nothing.
        steps: points of the rule.
        rule: ``"gauss"`` (Legendre) or ``"midpoint"``.
        batch_size: points per call of the network.

    Shapes:
        - x: ``(B, C, *size)``, or anything with a batch axis.
        - returns: the shape of x.

    Example:
        >>> import torch
        >>> from ansatz.attribution import integrated_gradients
        >>> x = torch.tensor([[1.0, 2.0, -1.0]])
        >>> integrated_gradients(lambda x: (x**2).sum(1), x).round(decimals=4)
        tensor([[1., 4., 1.]])

    References:
        Sundararajan, Taly and Yan (2017), Axiomatic attribution for deep networks, eq. 1 and
        proposition 1. https://arxiv.org/abs/1703.01365
    """
    check_examples("integrated_gradients", x)
    if steps < 1 or batch_size < 1:
        raise ValueError(
            f"steps and batch_size of integrated_gradients must be 1 or more, got {steps} and "
            f"{batch_size}."
        )
    places, weights = (part.to(x) for part in _rule(rule, steps))
    start = beside("baseline of integrated_gradients", baseline, x)
    way = x - start
    mean = torch.zeros_like(x)
    with evaluation_mode(network):
        with torch.no_grad():
            at = resolved(network(x), target)
        # Points of one example beside each other, as many as a batch holds.
        together = max(batch_size // len(x), 1)
        for t, w in zip(places.split(together), weights.split(together), strict=True):
            along = t.reshape(1, -1, *(1,) * (x.ndim - 1))  # (1, T, 1, ...)
            points = start.unsqueeze(1) + along * way.unsqueeze(1)  # (B, T, ...)
            gradient = input_gradient(network, points.flatten(0, 1), repeated(at, len(t)))
            mean += torch.einsum("t,bt...->b...", w, gradient.unflatten(0, (len(x), len(t))))
    return way * mean


def _rule(rule: str, steps: int) -> tuple[Tensor, Tensor]:
    """Places in (0, 1) and weights that sum to one."""
    if rule == "gauss":
        places, weights = np.polynomial.legendre.leggauss(steps)
        return torch.from_numpy((places + 1) / 2), torch.from_numpy(weights / 2)
    if rule == "midpoint":
        middles = (torch.arange(steps, dtype=torch.float64) + 0.5) / steps
        return middles, torch.full((steps,), 1 / steps, dtype=torch.float64)
    raise ValueError(f"rule of integrated_gradients must be gauss or midpoint, got {rule!r}.")
