"""Cross-talk between random patterns is normal with variance s/n."""

import numpy as np
import torch
from scipy.stats import norm

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.connectionism import Hopfield
from ansatz.figures.style import INK, LINEAR, MODEL


def measure(
    generator: torch.Generator, *, neurons: int = 300, patterns: int = 40, runs: int = 40
) -> Finding:
    """Cross-talk in networks of random patterns: its variance, its tail, and the bits it flips."""
    n, s = neurons, patterns
    variances, tails, sample = [], [], []
    either = against = 0
    for _ in range(runs):
        x = torch.randint(0, 2, (s, n), generator=generator).double() * 2 - 1
        C = crosstalk(x)
        fields = Hopfield(n).double().store(x).fields(x)
        flips = fields * x < -1e-9
        # The field is x (n - 1)/n + C: the pattern's own part, without the self-connection.
        against += int((flips != (x * C < -(n - 1) / n - 1e-9)).sum())
        either += int((flips != (C.abs() > (n - 1) / n + 1e-9)).sum())
        variances.append(float(C.square().mean()))
        tails.append(float((C.abs() > norm.isf(0.025) * (s / n) ** 0.5).double().mean()))
        sample.append(C.flatten())
    variance, tail = np.array(variances), np.array(tails)
    step = 2 / n / (s / n) ** 0.5  # the values of C lie 2/n apart
    checks = [
        Check(
            "variance of the cross-talk",
            float(variance.mean()),
            s / n,
            4 * float(variance.std(ddof=1)) / runs**0.5 + (s / n - (s - 1) * (n - 1) / n**2),
            f"4 standard errors over {runs} networks; s/n for (s − 1)(n − 1)/n²",
            wrong=Wrong("s/n²", predicted=s / n**2),
        ),
        Check(
            "share beyond 1.96 √(s/n)",
            float(tail.mean()),
            0.05,
            4 * float(tail.std(ddof=1)) / runs**0.5
            + 2 * norm.pdf(1.96) * (step + 1.96 * (1 / s + 1 / n) / 2),
            "4 standard errors over networks; the lattice of C; s/n for (s − 1)(n − 1)/n²",
            wrong=Wrong("uniform with this variance", predicted=0.0),
        ),
        Check(
            "bits for which 'flips' and '−x C > 1' disagree",
            against,
            0,
            0,
            "whole numbers",
            wrong=Wrong("|C| > 1, whatever its sign", measured=either),
        ),
    ]
    return Finding(checks, data={"sample": torch.cat(sample).numpy(), "s": s, "n": n})


def crosstalk(x: torch.Tensor) -> torch.Tensor:
    """(1/n) Σ_{r≠t} x_ri Σ_{j≠i} x_rj x_tj, from the definition, (s, n)."""
    s, n = x.shape
    overlaps = torch.einsum("rj,tj->rt", x, x).fill_diagonal_(0)  # Σ_j over all j
    return (torch.einsum("rt,ri->ti", overlaps, x) - (s - 1) * x) / n


def draw(paper: Figure, finding: Finding) -> None:
    """The histogram and the normal distribution."""
    axes = paper.subplots()
    sample, s, n = (finding.data[name] for name in ("sample", "s", "n"))
    sigma = (s / n) ** 0.5
    edges = (np.arange(-int(1.7 * n), int(1.7 * n), 2 * (n // 40)) + 0.5) / n
    axes.hist(sample, edges, density=True, color=MODEL, alpha=0.45, label="measured")
    grid = np.linspace(edges[0], edges[-1], 400)
    axes.plot(grid, norm.pdf(grid, scale=sigma), color=INK, label="N(0, s/n)")
    for side, name in ((-1, "±1: a bit may flip"), (1, None)):
        axes.axvline(side, color=LINEAR, lw=0.9, ls="--", label=name)
    axes.set(xlabel=f"cross-talk C, {s} patterns in {n} neurons", ylabel="density")
    axes.set_title("the cross-talk of other patterns is normal with variance s/n")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="hopfield-crosstalk",
    title="Cross-talk is normal with variance s/n",
    statement=(
        "The cross-talk C is what the other s − 1 random patterns add to the field of a neuron; it "
        "is nearly normal with mean 0 and variance s/n. A bit flips if and only if −xC > 1. A "
        "common slip asks for |C| < 1, but cross-talk in the direction of the bit does no harm."
    ),
    formula=(
        r"C_{t, i} = \frac{1}{n} \sum_{r \ne t} \sum_{j \ne i} x_{r, i} x_{r, j} x_{t, j} "
        r"\approx N(0, s / n), \qquad x_{t, i} \text{ stable} \iff -x_{t, i} C_{t, i} < 1"
    ),
    sources=("M016",),
    measure=measure,
    reference="Hertz, Krogh and Palmer (1991), Introduction to the theory of neural computation, "
    "section 2.2.",
    full={"neurons": 1000, "patterns": 138, "runs": 40},
    draw=draw,
)
