"""The gradients of a convolution are cross-correlations."""

from collections.abc import Callable
from itertools import product

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.layers import convolve, cross_correlate


def measure(generator: torch.Generator, *, size: int = 6, kernel: int = 3) -> Finding:
    """Both gradients of <Δ, X * W>, by formula and by differences."""

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    X, W = normal(size, size), normal(kernel, kernel)
    delta = normal(size + kernel - 1, size + kernel - 1)
    in_x = differences(lambda Z: float((delta * convolve(Z, W)).sum()), X)
    in_w = differences(lambda Z: float((delta * convolve(X, Z)).sum()), W)
    in_b = float((delta * (convolve(X, W) + 1)).sum() - (delta * convolve(X, W)).sum())
    # The function is linear: a difference with step 1 has no error but rounding.
    rounding = 64 * 2.0**-52 * float(delta.abs().sum() * X.abs().max() * W.abs().sum())
    because = "rounding of the two sums in a difference; a linear function has no other error"
    checks = [
        Check(
            "largest error of the gradient in X, Δ ⋆ W",
            float((cross_correlate(delta, W) - in_x).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "Δ * W, kernel flipped",
                measured=float((convolve(delta, W, "valid") - in_x).abs().max()),
                erratum="E41",
            ),
        ),
        Check(
            "largest error of the gradient in W, Δ ⋆ X",
            float((cross_correlate(delta, X) - in_w).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "Δ * X, input flipped",
                measured=float((convolve(delta, X, "valid") - in_w).abs().max()),
                erratum="E41",
            ),
        ),
        Check(
            "largest error of the gradient in the bias of all outputs, ΣΔ",
            abs(float(delta.sum()) - in_b),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "Δ at the middle alone",
                measured=abs(float(delta[size // 2, size // 2]) - in_b),
                erratum="E64",
            ),
        ),
    ]
    return Finding(checks)


def differences(function: Callable[[Tensor], float], at: Tensor) -> Tensor:
    """The gradient of a linear function, entry by entry."""
    found = torch.empty_like(at)
    for place in product(*map(range, at.shape)):
        moved = at.clone()
        moved[place] += 1
        found[place] = function(moved) - function(at)
    return found


claim = Claim(
    id="convolution-backprop",
    title="Gradients of a convolution are cross-correlations",
    statement=(
        "Where the forward pass is a true convolution Y = X * W, the gradient in X is the "
        "cross-correlation of Δ with W, and in W that of Δ with X. A common slip writes "
        "convolutions for both, which flips them."
    ),
    formula=(
        r"\frac{\partial \ell}{\partial X} = \Delta \star W, \qquad "
        r"\frac{\partial \ell}{\partial W} = \Delta \star X, \qquad Y = X * W,\; "
        r"\Delta = \frac{\partial \ell}{\partial Y}"
    ),
    sources=("E41", "E64", "M190"),
    measure=measure,
    reference="Goodfellow, Bengio and Courville (2016), Deep Learning, section 9.5.",
    full={"size": 16, "kernel": 5},
    errata=(
        Erratum("E41", "Δ * W, Δ * X", "Δ ⋆ W, Δ ⋆ X"),
        Erratum("E64", "the proof of the gradients is left out", "Δ ⋆ W, Δ ⋆ X, ΣΔ"),
    ),
)
