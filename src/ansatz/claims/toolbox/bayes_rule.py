"""Bayes' rule: the posterior is likelihood times prior over the evidence."""

import numpy as np
import torch
from scipy.stats import binom
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.figures.style import INK, LINEAR, MODEL

TOSSES, HEADS = 8, 6


def measure(generator: torch.Generator, *, tables: int = 100, draws: int = 200_000) -> Finding:
    """Random joint tables; then a coin whose bias has a prior, by rejection sampling."""
    parts = pieces(tables, generator)
    rounding = 24 * EPS
    bias, prior, likelihood = coin()
    posterior = prior * likelihood / (prior * likelihood).sum()
    printed = likelihood / (prior * likelihood).sum()
    kept, frequency = simulate(bias, prior, draws, generator)
    # Multinomial standard errors of the frequencies; a quantile for as many comparisons.
    error = np.sqrt(posterior * (1 - posterior) / kept)
    checks = [
        Check(
            "coin: largest deviation of simulated from Bayes' posterior, in standard errors",
            float(abs((frequency - posterior) / error).max()),
            0.0,
            4.5,
            f"a normal quantile of 7e-6, for {len(bias)} values of the bias",
            wrong=Wrong(
                "p(S|θ) / p(S), without the prior",
                measured=float(abs((frequency - printed) / error).max()),
                erratum="E22",
            ),
        ),
        Check(
            "coin: total probability of the posterior",
            float(posterior.sum()),
            1.0,
            len(bias) * EPS,
            f"rounding: a sum of {len(bias)}",
            wrong=Wrong("p(S|θ) / p(S)", predicted=float(printed.sum())),
        ),
        Check(
            "tables: largest |p(x|y) - p(y|x) p(x) / p(y)|",
            float(bayes_error(*parts).max()),
            0.0,
            rounding,
            "rounding: sums of 24 numbers below 1",
            wrong=Wrong("p(y|x) for p(x|y)", measured=float(inversion_error(*parts).max())),
        ),
        Check(
            "tables: largest error of p(z|x,y) recovered from the joint table",
            float(chain_error(*parts).max()),
            0.0,
            rounding,
            "rounding: sums of 24 numbers below 1",
            wrong=Wrong("p(z|y) for p(z|x,y)", measured=float(markov_error(*parts).max())),
        ),
        Check(
            "tables: largest |p(y) - sum of p(y|x) p(x)|",
            float(total_error(*parts).max()),
            0.0,
            rounding,
            "rounding: sums of 24 numbers below 1",
        ),
    ]
    rows = [
        [float(v) for v in row]
        for row in zip(bias, prior, posterior, frequency, error, printed, strict=True)
    ]
    head = ["θ", "prior", "posterior", "simulated", "standard error", "p(S|θ)/p(S)"]
    return Finding(checks, Table(head, rows))


def coin() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nine biases, a prior that believes in fair coins, the chance of the data under each."""
    bias = np.linspace(0.2, 0.8, 9)
    prior = (bias * (1 - bias)) ** 2
    return bias, prior / prior.sum(), binom.pmf(HEADS, TOSSES, bias)


def simulate(
    bias: np.ndarray, prior: np.ndarray, draws: int, generator: torch.Generator
) -> tuple[int, np.ndarray]:
    """Coins from the prior are tossed; those that gave the data are counted."""
    rng = np.random.default_rng(int(torch.randint(2**31, (), generator=generator)))
    which = rng.choice(len(bias), draws, p=prior)
    kept = which[rng.binomial(TOSSES, bias[which]) == HEADS]
    return len(kept), np.bincount(kept, minlength=len(bias)) / len(kept)


def pieces(tables: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Random p(x), p(y|x) and p(z|x,y), over 3, 4 and 2 values: (tables, x, y, z) each."""
    shapes = (3, 1, 1), (3, 4, 1), (3, 4, 2)
    x, y, z = (
        0.1 + torch.rand(tables, *shape, generator=generator, dtype=torch.float64)
        for shape in shapes
    )
    return x / x.sum(1, keepdim=True), y / y.sum(2, keepdim=True), z / z.sum(3, keepdim=True)


def bayes_error(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """p(x|y) counted from the joint table of all three, against p(y|x) p(x) / p(y)."""
    both = (x * y * z).sum(3)
    counted = both / both.sum(1, keepdim=True)
    rule = (y * x / (y * x).sum(1, keepdim=True)).squeeze(3)
    return (counted - rule).abs()


def inversion_error(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """p(x|y) against p(y|x): the fallacy of the prosecutor."""
    both = (x * y * z).sum(3)
    return (both / both.sum(1, keepdim=True) - y.squeeze(3)).abs()


def chain_error(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """The last conditional, from the product of all."""
    joint = x * y * z
    return (joint / joint.sum(3, keepdim=True) - z).abs()


def markov_error(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """The same if z depended on y alone."""
    joint = x * y * z
    return (joint.sum(1, keepdim=True) / joint.sum((1, 3), keepdim=True) - z).abs()


def total_error(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """p(y) counted from the joint table against the sum over x of p(y|x) p(x)."""
    return ((x * y * z).sum((1, 3)) - (y * x).sum((1, 3))).abs()


def draw(paper: Figure, finding: Finding) -> None:
    """The posterior of the coin's bias between prior and likelihood."""
    assert finding.table is not None
    axes = paper.subplots()
    bias, prior, posterior, frequency, error, printed = np.array(finding.table.rows).T
    axes.errorbar(
        bias, frequency, 2 * error, fmt="o", color=MODEL, label="coins that gave the data"
    )
    axes.plot(bias, posterior, color=LINEAR, label="p(S|θ) p(θ) / p(S)")
    axes.plot(bias, prior, ":", color=INK, lw=1, label="prior p(θ)")
    axes.plot(
        bias, printed, "--", color=INK, lw=0.8, label=f"p(S|θ) / p(S): sums to {sum(printed):.1f}"
    )
    axes.set(xlabel="bias θ of the coin", ylabel="probability", ylim=(0, 0.5))
    axes.set_title(f"{HEADS} heads in {TOSSES} tosses: the posterior needs the prior")
    axes.legend(loc="upper left")


claim = Claim(
    id="bayes-rule",
    title="Bayes' rule",
    statement=(
        "A joint distribution is the product of its conditionals, a marginal is the sum over the "
        "other variables, and the posterior is the likelihood times the prior over the evidence. A "
        "common slip leaves out the prior: the result does not sum to one."
    ),
    formula=(
        r"p(\theta \mid S) = \frac{p(S \mid \theta)\, p(\theta)}{p(S)}, \qquad "
        r"p(S) = \sum_\theta p(S \mid \theta)\, p(\theta)"
    ),
    sources=("M029", "E22"),
    measure=measure,
    reference="Gelman et al. (2013), Bayesian Data Analysis, section 1.3.",
    full={"tables": 2000, "draws": 5_000_000},
    errata=(Erratum("E22", "p(θ|S) = p(S|θ) / p(S)", "p(θ|S) = p(S|θ) p(θ) / p(S)"),),
    draw=draw,
)
