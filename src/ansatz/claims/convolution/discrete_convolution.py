"""The convolution of two sequences: it commutes, and flipping one gives the correlation."""

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.layers import convolve, cross_correlate


def measure(generator: torch.Generator, *, first: int = 9, second: int = 4) -> Finding:
    """The library's functions beside the sum written out."""
    f = torch.randn(first, generator=generator, dtype=torch.float64)
    g = torch.randn(second, generator=generator, dtype=torch.float64)
    ours, summed = convolve(f, g), written_out(f, g)
    printed = torch.tensor(
        [sum(at(f, i) * at(g, i - a) for a in range(first)) for i in range(first + second - 1)],
        dtype=torch.float64,
    )
    correlated = cross_correlate(f, g, "full")
    size = float(f.abs().max() * g.abs().sum())
    rounding = 2 * (first + second) * 2.0**-52 * size
    because = "rounding of a sum of that many products"
    checks = [
        Check(
            "largest difference of convolve from Σ f(a) g(i-a)",
            float((ours - summed).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "Σ f(i) g(i-a)", measured=float((ours - printed).abs().max()), erratum="E43"
            ),
        ),
        Check(
            "largest difference of f * g and g * f",
            float((ours - convolve(g, f)).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong(
                "cross-correlations commute",
                measured=float((correlated - cross_correlate(g, f, "full")).abs().max()),
            ),
        ),
        Check(
            "largest difference of the correlation h ⋆ f and f * h flipped",
            float((correlated - written_out(f, g.flip(0))).abs().max()),
            0.0,
            rounding,
            because,
            wrong=Wrong("without the flip", measured=float((correlated - ours).abs().max())),
        ),
    ]
    return Finding(checks)


def at(f: Tensor, i: int) -> float:
    """0 outside."""
    return float(f[i]) if 0 <= i < len(f) else 0.0


def written_out(f: Tensor, g: Tensor) -> Tensor:
    """Σ_a f(a) g(i - a) for each i where it is not empty."""
    length = len(f) + len(g) - 1
    return torch.tensor(
        [sum(at(f, a) * at(g, i - a) for a in range(length)) for i in range(length)],
        dtype=torch.float64,
    )


claim = Claim(
    id="discrete-convolution",
    title="The convolution of two sequences",
    statement=(
        "(f * g)(i) is the sum over a of f(a) g(i-a). It commutes, and the cross-correlation is "
        "the convolution with the flipped kernel. A common slip has f(i) in place of f(a), which "
        "only scales f."
    ),
    formula=r"(f * g)(i) = \sum_a f(a)\, g(i - a) = (g * f)(i), \qquad h \star f = \bar h * f",
    sources=("E43", "M180", "M184"),
    measure=measure,
    reference="Oppenheim and Schafer (2010), Discrete-Time Signal Processing, section 2.3.",
    full={"first": 100, "second": 30},
    errata=(Erratum("E43", "Σ f(i) g(i-a)", "Σ f(a) g(i-a)"),),
)
