"""The convolution of two sequences: it commutes, and flipping one gives the correlation."""

import numpy as np
import torch
from scipy.signal import convolve, correlate

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong


def measure(generator: torch.Generator, *, first: int = 9, second: int = 4) -> Finding:
    """The sum written out beside scipy's."""
    f = torch.randn(first, generator=generator, dtype=torch.float64).numpy()
    g = torch.randn(second, generator=generator, dtype=torch.float64).numpy()
    theirs = convolve(f, g)
    ours, swapped = written_out(f, g), written_out(g, f)
    printed = np.array([
        sum(at(f, i) * at(g, i - a) for a in range(first)) for i in range(first + second - 1)
    ])  # fmt: skip
    size = float(np.abs(f).max() * np.abs(g).sum())
    rounding = 2 * (first + second) * 2.0**-52 * size
    because = "rounding of a sum of that many products"
    checks = [
        Check(
            "largest difference of Σ f(a) g(i-a) from scipy's",
            float(np.abs(ours - theirs).max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "Σ f(i) g(i-a)", measured=float(np.abs(printed - theirs).max()), erratum="E43"
            ),
        ),
        Check(
            "largest difference of f * g and g * f",
            float(np.abs(ours - swapped).max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "cross-correlations commute",
                measured=float(np.abs(correlate(f, g) - correlate(g, f)).max()),
            ),
        ),
        Check(
            "largest difference of the correlation h ⋆ f and f * h flipped",
            float(np.abs(correlate(f, g) - written_out(f, g[::-1])).max()),
            0.0,
            rounding,
            because,
            wrong=Wrong("without the flip", measured=float(np.abs(correlate(f, g) - ours).max())),
        ),
    ]
    return Finding(checks)


def at(f: np.ndarray, i: int) -> float:
    """0 outside."""
    return float(f[i]) if 0 <= i < len(f) else 0.0


def written_out(f: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Σ_a f(a) g(i - a) for each i where it is not empty."""
    length = len(f) + len(g) - 1
    return np.array([sum(at(f, a) * at(g, i - a) for a in range(length)) for i in range(length)])


claim = Claim(
    id="discrete-convolution",
    title="The convolution of two sequences",
    statement=(
        "(f * g)(i) is the sum over a of f(a) g(i-a); it commutes, and the cross-correlation is "
        "the convolution with the flipped kernel. Document C prints f(i) in place of f(a), which "
        "only scales f."
    ),
    formula=r"(f * g)(i) = \sum_a f(a)\, g(i - a) = (g * f)(i), \qquad h \star f = \bar h * f",
    sources=("E43", "M180", "M184"),
    measure=measure,
    reference="Oppenheim and Schafer (2010), Discrete-Time Signal Processing, section 2.3.",
    full={"first": 100, "second": 30},
    errata=(Erratum("E43", "C", "Σ f(i) g(i-a)", "Σ f(a) g(i-a)"),),
)
