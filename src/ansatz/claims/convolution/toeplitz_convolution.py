"""A convolution is a product with a band matrix."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.layers import toeplitz_matrix


def measure(generator: torch.Generator, *, inputs: int = 8, taps: int = 3) -> Finding:
    """The full and the valid band matrix beside NumPy's convolutions."""
    x = torch.randn(inputs, generator=generator, dtype=torch.float64).numpy()
    kernel = torch.randn(taps, generator=generator, dtype=torch.float64)
    w = kernel.numpy()
    full = toeplitz_matrix(kernel, inputs).numpy()
    valid = toeplitz_matrix(kernel, inputs, "valid").numpy()
    flipped = toeplitz_matrix(kernel, inputs, correlate=True).numpy()
    rounding = 2 * taps * 2.0**-52 * float(np.abs(x).max() * np.abs(w).sum())
    checks = [
        Check(
            "largest difference of the full matrix times x from the convolution",
            float(np.abs(full @ x - np.convolve(x, w)).max()),
            0.0,
            rounding,
            "rounding of a sum of k products",
            wrong=Wrong(
                "the kernel not flipped",
                measured=float(np.abs(flipped @ x - np.convolve(x, w)).max()),
            ),
        ),
        Check(
            "largest difference of its middle rows from the valid convolution",
            float(np.abs(valid @ x - np.convolve(x, w, "valid")).max()),
            0.0,
            rounding,
            "rounding of a sum of k products",
        ),
        Check(
            "rows of the full matrix, from the k-th to the n-th, that the valid one lacks",
            int((full[taps - 1 : inputs] != valid).any(1).sum()),
            0,
            0,
            "the same numbers",
            wrong=Wrong("its first rows", measured=int((full[: len(valid)] != valid).any(1).sum())),
        ),
        Check(
            "rows of the full matrix, n + k - 1",
            len(full),
            inputs + taps - 1,
            0,
            "whole numbers",
            wrong=Wrong("of the valid one, n - k + 1", measured=len(valid)),
        ),
        Check(
            "different numbers in it, besides 0",
            len(np.unique(full[full != 0])),
            taps,
            0,
            "whole numbers: one kernel, shared",
            wrong=Wrong("a dense layer", predicted=full.size),
        ),
    ]
    return Finding(checks)


claim = Claim(
    id="toeplitz-convolution",
    title="A convolution is a product with a band matrix",
    statement=(
        "A convolution is linear, with a matrix whose diagonals are constant: n + k - 1 rows in "
        "the full form, and the n - k + 1 middle rows in the valid form. The matrix holds k "
        "different numbers."
    ),
    formula=(
        r"f * w = T_w f, \qquad (T_w)_{ij} = w_{i - j}, \quad "
        r"T_w \in \mathbb{R}^{(n+k-1) \times n}"
    ),
    sources=("M177",),
    measure=measure,
    reference="Goodfellow, Bengio and Courville (2016), Deep Learning, section 9.1.",
    full={"inputs": 100, "taps": 9},
)
