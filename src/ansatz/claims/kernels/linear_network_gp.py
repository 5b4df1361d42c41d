"""A linear unit with random weights is a Gaussian process with a linear kernel."""

import torch
from scipy import stats

from ansatz.claims import Check, Claim, Erratum, Finding, Wrong
from ansatz.claims.claim import Figure


def measure(generator: torch.Generator, *, size: int = 4, draws: int = 10_000) -> Finding:
    """The covariance of the outputs at n = d points over many draws of the weights."""
    sigma = 1.5
    X = torch.randn(size, size, generator=generator, dtype=torch.float64)  # rows are points
    weights = sigma / size**0.5 * torch.randn(draws, size, generator=generator, dtype=torch.float64)
    outputs = weights @ X.T  # (S, N)
    measured = outputs.T @ outputs / draws
    right, printed = sigma**2 / size * X @ X.T, sigma**2 / size * X.T @ X
    variance = right.diagonal()
    error = ((torch.outer(variance, variance) + right**2) / draws).sqrt()
    pairs = size * (size + 1) // 2
    limit = float(stats.norm.isf(1e-6 / (2 * pairs)))
    more = torch.randn(size + 3, size, generator=generator, dtype=torch.float64)
    checks = [
        Check(
            "largest deviation of the covariance, in standard errors",
            float(((measured - right) / error).abs().max()),
            0.0,
            limit + 2 * limit**2 / draws**0.5,
            f"normal quantile at 1e-6 for {pairs} pairs; the second term for the skew of products",
            wrong=Wrong(
                "XᵀX", measured=float(((measured - printed) / error).abs().max()), erratum="E34"
            ),
        ),
        Check(
            f"rows of the covariance of {size + 3} outputs",
            len(more @ more.T),
            size + 3,
            0,
            "whole numbers",
            wrong=Wrong("XᵀX has one row per input", measured=len(more.T @ more), erratum="E34"),
        ),
    ]
    data = {"measured": measured, "right": right, "printed": printed, "error": error}
    return Finding(checks, data={name: value.flatten().numpy() for name, value in data.items()})


def draw(paper: Figure, finding: Finding) -> None:
    """Measured covariances over predicted ones."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    ends = [data["measured"].min(), data["measured"].max()]
    axes.plot(ends, ends, color=INK, lw=0.8, label="equal")
    axes.plot(data["printed"], data["measured"], "x", color=LINEAR, ms=5, label="printed: XᵀX")
    axes.errorbar(data["right"], data["measured"], 2 * data["error"], fmt="o", color=MODEL,
                  ms=4, lw=1, label="XXᵀ, ± 2 standard errors")  # fmt: skip
    axes.set(xlabel="predicted covariance", ylabel="measured covariance")
    axes.set_title("outputs of random linear units covary as their inputs' inner products")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="linear-network-gp",
    title="A random linear network is a Gaussian process",
    statement=(
        "With weights N(0, σ²/d) the outputs at the rows of X are normal with covariance (σ²/d) "
        "XXᵀ, one row per point. A common slip is XᵀX, which has one row per input."
    ),
    formula=(
        r"y = X w, \; w \sim \mathcal{N}\bigl(0, \tfrac{\sigma^2}{d} I\bigr) \;\Rightarrow\; "
        r"y \sim \mathcal{N}\bigl(0, \tfrac{\sigma^2}{d} X X^\top\bigr)"
    ),
    sources=("E34", "M336"),
    measure=measure,
    reference=(
        "Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, section 2.1."
    ),
    full={"draws": 1_000_000},
    errata=(Erratum("E34", "N(0, (σ²/d) XᵀX)", "N(0, (σ²/d) XXᵀ)"),),
    draw=draw,
)
