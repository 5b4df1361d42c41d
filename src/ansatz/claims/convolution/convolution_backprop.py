"""The gradients of a convolution are cross-correlations."""

from collections.abc import Callable

import numpy as np
import torch
from scipy.signal import convolve2d, correlate2d

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong


def measure(generator: torch.Generator, *, size: int = 6, kernel: int = 3) -> Finding:
    """Both gradients of <Δ, X * W>, by formula and by differences."""

    def normal(*shape: int) -> np.ndarray:
        found: np.ndarray = torch.randn(*shape, generator=generator, dtype=torch.float64).numpy()
        return found

    X, W = normal(size, size), normal(kernel, kernel)
    delta = normal(size + kernel - 1, size + kernel - 1)
    in_x = differences(lambda Z: float((delta * convolve2d(Z, W)).sum()), X)
    in_w = differences(lambda Z: float((delta * convolve2d(X, Z)).sum()), W)
    # The function is linear: a difference with step 1 has no error but rounding.
    rounding = 64 * 2.0**-52 * float(np.abs(delta).sum() * np.abs(X).max() * np.abs(W).sum())
    because = "rounding of the two sums in a difference; a linear function has no other error"
    checks = [
        Check(
            "largest error of the gradient in X, Δ ⋆ W",
            float(np.abs(correlate2d(delta, W, "valid") - in_x).max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "Δ * W, kernel flipped",
                measured=float(np.abs(convolve2d(delta, W, "valid") - in_x).max()),
                erratum="E41",
            ),
        ),
        Check(
            "largest error of the gradient in W, Δ ⋆ X",
            float(np.abs(correlate2d(delta, X, "valid") - in_w).max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "Δ * X, input flipped",
                measured=float(np.abs(convolve2d(delta, X, "valid") - in_w).max()),
                erratum="E41",
            ),
        ),
    ]
    return Finding(checks)


def differences(function: Callable[[np.ndarray], float], at: np.ndarray) -> np.ndarray:
    """The gradient of a linear function, entry by entry."""
    found = np.empty_like(at)
    for place in np.ndindex(at.shape):
        moved = at.copy()
        moved[place] += 1
        found[place] = function(moved) - function(at)
    return found


claim = Claim(
    id="convolution-backprop",
    title="Gradients of a convolution are cross-correlations",
    statement=(
        "Where the forward pass is a true convolution Y = X * W, the gradient in X is the "
        "cross-correlation of Δ with W, and in W that of Δ with X; document D writes convolutions "
        "for both, which flips them."
    ),
    formula=(
        r"\frac{\partial \ell}{\partial X} = \Delta \star W, \qquad "
        r"\frac{\partial \ell}{\partial W} = \Delta \star X, \qquad Y = X * W,\; "
        r"\Delta = \frac{\partial \ell}{\partial Y}"
    ),
    sources=("E41", "M190"),
    measure=measure,
    reference="Goodfellow et al. (2016), Deep Learning, section 9.5.",
    full={"size": 16, "kernel": 5},
    errata=(Erratum("E41", "D", "Δ * W, Δ * X", "Δ ⋆ W, Δ ⋆ X"),),
)
