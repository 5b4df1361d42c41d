"""A convolution is a product of Fourier transforms."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.layers import convolve, fft_convolve


def measure(generator: torch.Generator, *, sizes: tuple[int, ...] = (8, 32, 128, 512)) -> Finding:
    """Around a ring and on a line, and the multiplications that both ways need."""
    errors, tolerances = [], []
    for n in sizes:
        f, h = torch.randn(2, n, generator=generator, dtype=torch.float64)
        index = (torch.arange(n)[:, None] - torch.arange(n)) % n
        around = h[index] @ f  # Σ_a f(a) h(i - a mod n)
        ring = fft_convolve(f, h, "circular")
        errors.append(float((ring - around).abs().max()))
        tolerances.append(n * 2.0**-52 * float(f.norm() * h.norm()))
    line, padded = convolve(f, h), fft_convolve(f, h)
    short = torch.cat([ring, torch.zeros(n - 1, dtype=torch.float64)])
    added = torch.fft.irfft(torch.fft.rfft(f) + torch.fft.rfft(h), n)
    counts = [(n, n * n, 3 * butterflies(n) + n) for n in sizes]
    checks = [
        Check(
            "largest error of the transform's product around a ring, over tolerance",
            max(e / t for e, t in zip(errors, tolerances, strict=True)),
            0.0,
            1.0,
            "in units of n eps |f| |h|, the rounding of sums of n products",
            wrong=Wrong(
                "the sum of the transforms",
                measured=float((added - around).abs().max()) / tolerances[-1],
                erratum="E64",
            ),
        ),
        Check(
            "largest error on a line, padded with zeros to n + m - 1",
            float((padded - line).abs().max()),
            0.0,
            2 * float(tolerances[-1]),
            "2n eps |f| |h|",
            wrong=Wrong(
                "without padding the end meets the beginning",
                measured=float((short - line).abs().max()),
            ),
        ),
        Check(
            f"multiplications of the transform at n = {sizes[-1]}",
            counts[-1][2],
            3 * sizes[-1] / 2 * np.log2(sizes[-1]) + sizes[-1],
            0,
            "whole numbers: three transforms of n/2 log₂ n each, counted in the recursion",
            wrong=Wrong("n², as the sum needs", predicted=counts[-1][1]),
        ),
    ]  # fmt: skip
    return Finding(checks, Table(["n", "sum", "transform"], counts), {"counts": np.array(counts)})


def butterflies(n: int) -> int:
    """Complex multiplications of Cooley and Tukey's recursion for a power of two."""
    return 0 if n == 1 else 2 * butterflies(n // 2) + n // 2


def draw(paper: Figure, finding: Finding) -> None:
    """Multiplications over the length."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, counts = paper.subplots(), finding.data["counts"]
    n = counts[:, 0]
    axes.loglog(n, n**2, color=LINEAR, lw=1, ls="--", label="n²: the sum")
    axes.loglog(n, 1.5 * n * np.log2(n) + n, color=MODEL, label="3/2 n log₂ n + n")
    axes.loglog(n, counts[:, 2], "o", color=INK, ms=5, label="counted in the transform")
    axes.set_xticks(n, [str(each) for each in n])
    axes.set_yticks([100, 10_000, 1_000_000], ["100", "10 000", "1 000 000"])
    axes.minorticks_off()
    axes.set(xlabel="length n", ylabel="multiplications")
    axes.set_title("convolving by fast Fourier transforms takes n log n multiplications")
    axes.legend()


claim = Claim(
    id="convolution-theorem",
    title="Convolution is multiplication of Fourier transforms",
    statement=(
        "The Fourier transform of a convolution is the product of the transforms: exactly around a "
        "ring, and on a line after padding with zeros. The fast transform needs of the order of n "
        "log n multiplications in place of n²."
    ),
    formula=r"\mathcal{F}(f * h) = \mathcal{F} f \cdot \mathcal{F} h",
    sources=("M183", "E64"),
    measure=measure,
    reference=(
        "Oppenheim and Schafer (2010), Discrete-Time Signal Processing, chapter 8; Cooley and "
        "Tukey (1965), An algorithm for the machine calculation of complex Fourier series. "
        "https://doi.org/10.1090/S0025-5718-1965-0178586-1"
    ),
    full={"sizes": (8, 32, 128, 512, 2048)},
    errata=(Erratum("E64", "the proof of the theorem is left out", "F(f * h) = Ff · Fh"),),
    draw=draw,
)
