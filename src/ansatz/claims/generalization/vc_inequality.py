"""No interval's training error strays from its true error by more than the VC inequality says."""

import math

import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.theory import sauer_bound, vc_bound, vc_gap

SIZES = (100, 400, 1_600, 6_400)
NOISE = 0.3  # P(y = 1) at every x


def measure(generator: torch.Generator, *, runs: int = 200, level: float = 0.05) -> Finding:
    """The largest gap over all intervals as classifiers, in many samples."""
    gaps = {n: largest_gaps(n, runs, generator).numpy() for n in SIZES}
    ours = {n: vc_gap(n, level, sauer_bound(n, 2)) for n in SIZES}
    single = {n: math.sqrt(math.log(2 / level) / (2 * n)) for n in SIZES}
    beyond = max(float((gaps[n] > ours[n]).mean()) for n in SIZES)
    naive = max(float((gaps[n] > single[n]).mean()) for n in SIZES)
    error = (level * (1 - level) / runs) ** 0.5
    excess, broken = -1.0, -1.0
    for n in SIZES:
        for gap in np.linspace(0.01, 1, 100):
            share = float((gaps[n] > gap).mean())
            excess = max(excess, share - vc_bound(n, gap, sauer_bound(n, 2)))
            broken = max(broken, share - min(1.0, 2 * math.exp(-2 * n * gap**2)))
    because = f"4 standard errors of a share of {level} in {runs} samples"
    checks = [
        Check(
            f"share of samples whose largest gap exceeds ε(δ), δ = {level}",
            beyond,
            level,
            4 * error,
            because,
            "<=",
            wrong=Wrong("Hoeffding's ε, of one function chosen before", measured=naive),
        ),
        Check(
            "largest excess of P(sup > ε) over 8 F(n) exp(-nε²/32), all n and ε",
            excess,
            0.0,
            2 / runs**0.5,
            "4 standard errors of a share, 1/(2√runs) at most",
            "<=",
            wrong=Wrong("2 exp(-2nε²), without the growth function", measured=broken),
        ),
    ]
    table = Table(
        ["rows", "95 % quantile of the gap", "VC", "one function"],
        [[n, float(np.quantile(gaps[n], 1 - level)), ours[n], single[n]] for n in SIZES],
    )
    return Finding(checks, table, {"gaps": gaps, "ours": ours, "single": single, "level": level})


def largest_gaps(n: int, runs: int, generator: torch.Generator) -> torch.Tensor:
    """sup |ℓ(I) - ℓ̂(I)| over all intervals I as predictors of y = 1, exactly; x is uniform.

    The loss of I is y outside and 1 - y inside, so the gap is that of ȳ plus the increment over I
    of Z(t) = ∫₀ᵗ (1 - 2 P(y = 1)) - (1/n) Σ_{x <= t} (1 - 2y), whose extremes are at the points.
    """
    x, order = torch.rand(runs, n, generator=generator, dtype=torch.float64).sort(1)
    y = (torch.rand(runs, n, generator=generator, dtype=torch.float64) < NOISE).double()
    jumps = (1 - 2 * y).gather(1, order).cumsum(1) / n
    before = torch.cat([torch.zeros(runs, 1, dtype=torch.float64), jumps[:, :-1]], 1)
    drift = (1 - 2 * NOISE) * x
    path = torch.stack([drift - before, drift - jumps], 2).flatten(1)  # in the order of t
    last = (1 - 2 * NOISE) - jumps[:, -1:]
    path = torch.cat([torch.zeros(runs, 1, dtype=torch.float64), path, last], 1)
    up = (path - path.cummin(1).values).amax(1)
    down = (path - path.cummax(1).values).amin(1)
    start = NOISE - y.mean(1)  # of the empty interval
    return torch.maximum((start + up).abs(), (start + down).abs())


def draw(paper: Figure, finding: Finding) -> None:
    """Quantiles of the largest gap, between the two bounds."""
    axes = paper.subplots()
    data = finding.data
    middle = np.array([np.median(data["gaps"][n]) for n in SIZES])
    low, high = (np.array([np.quantile(data["gaps"][n], q) for n in SIZES]) for q in (0.05, 0.95))
    bars = np.stack([middle - low, high - middle])
    axes.plot(SIZES, [data["ours"][n] for n in SIZES], color=INK, label="VC inequality, δ = 0.05")
    axes.errorbar(SIZES, middle, bars, fmt="o", color=MODEL, markersize=5, capsize=3,
                  label="largest gap: median, 5 % to 95 %")  # fmt: skip
    axes.plot(SIZES, [data["single"][n] for n in SIZES], "--", color=LINEAR, linewidth=0.9,
              label="Hoeffding, one function")  # fmt: skip
    logarithmic(axes.xaxis, axes.yaxis)
    axes.set(xlabel="rows of training data", ylabel="gap of true and training error")
    axes.set_title("all intervals at once: never above the VC bound, often above Hoeffding's")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="vc-inequality",
    title="The inequality of Vapnik and Chervonenkis",
    statement=(
        "The chance that any function of a class has a training error further than ε from its true "
        "error is at most 8F(n) exp(−nε²/32). Over all intervals on a line it is never violated, "
        "though far from tight; the bound for one function chosen beforehand is."
    ),
    formula=(
        r"P\Big( \sup_{f} |\ell(f) - \hat\ell(f)| > \epsilon \Big) \le 8 F(n) e^{-n \epsilon^2/32}"
    ),
    sources=("M354",),
    measure=measure,
    reference=(
        "Vapnik and Chervonenkis (1971), On the uniform convergence of relative frequencies of "
        "events to their probabilities; Devroye, Györfi and Lugosi (1996), A Probabilistic Theory "
        "of Pattern Recognition, theorem 12.5."
    ),
    full={"runs": 2_000},
    draw=draw,
)
