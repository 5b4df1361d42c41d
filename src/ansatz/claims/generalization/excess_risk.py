"""Excess risk is approximation error squared plus complexity over n."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.figures.decades import logarithmic
from ansatz.figures.style import INK, LINEAR, MODEL, THIRD

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


def measure(
    generator: torch.Generator, *, rows: int = 64, runs: int = 400, sd: float = 0.3
) -> Finding:
    """Least squares on the first m cosines, many times, against the two terms."""
    grid = (torch.arange(rows, dtype=torch.float64) + 0.5) / rows
    k = torch.arange(rows, dtype=torch.float64)
    basis = torch.cos(torch.pi * grid[:, None] * k) * 2**0.5  # (rows, functions)
    basis[:, 0] = 1  # orthonormal in the mean over the grid
    coefficients = (1 + k) ** -1.5
    truth = basis @ coefficients
    noise = sd * torch.randn(runs, rows, generator=generator, dtype=torch.float64)
    means, errors, approx = [], [], []
    for m in SIZES:
        design = basis[:, :m]
        fitted = torch.linalg.lstsq(design, (truth + noise).T).solution  # (m, runs)
        risks = (design @ fitted - truth[:, None]).square().mean(0)
        means.append(float(risks.mean()))
        errors.append(float(risks.std() / runs**0.5))
        best = design @ torch.linalg.lstsq(design, truth[:, None]).solution
        approx.append(float((best[:, 0] - truth).square().mean()))
    found, error, squared = np.array(means), np.array(errors), np.array(approx)
    complexity = sd**2 * np.array(SIZES) / rows
    exact = squared + complexity
    bound = exact + np.sqrt(squared) * sd / rows**0.5
    alone = float((np.abs(found - complexity) / error).max())
    faster = float(((found - squared - complexity / rows) / error).max())
    checks = [
        Check(
            "largest distance of the excess risk from approx² + σ²m/n, in standard errors",
            float((np.abs(found - exact) / error).max()),
            0.0,
            4.5,
            f"4.5 standard errors: {len(SIZES)} sizes over {runs} samples",
            wrong=Wrong("without approximation error", measured=alone),
        ),
        Check(
            "largest excess over complexity/n + approx/√n + approx², in standard errors",
            float(((found - bound) / error).max()),
            0.0,
            4.5,
            f"4.5 standard errors: {len(SIZES)} sizes over {runs} samples",
            "<=",
            wrong=Wrong("complexity over n², and approx²", measured=faster),
        ),
        Check(
            "the best size m, as measured",
            float(np.log2(SIZES[int(found.argmin())])),
            float(np.log2(SIZES[int(exact.argmin())])),
            1.0,
            "one step of the sizes, at most a factor of 2, where the two terms balance",
            wrong=Wrong("the largest model", predicted=float(np.log2(SIZES[-1]))),
        ),
    ]  # fmt: skip
    table = Table(
        ["m", "excess risk", "standard error", "approx²", "σ²m/n"],
        np.column_stack([SIZES, found, error, squared, complexity]).tolist(),
    )
    data = {"found": found, "error": error, "squared": squared, "complexity": complexity}
    return Finding(checks, table, data)


def draw(paper: Figure, finding: Finding) -> None:
    """The two terms and their sum."""
    axes = paper.subplots()
    data = finding.data
    exact = data["squared"] + data["complexity"]
    axes.plot(SIZES, exact, color=INK, label="sum of the two")
    axes.plot(
        SIZES[:-1],
        data["squared"][:-1],
        "--",
        color=THIRD,
        linewidth=0.9,
        label="approximation error²",
    )
    axes.plot(
        SIZES, data["complexity"], "--", color=LINEAR, linewidth=0.9, label="complexity: σ²m / n"
    )
    axes.errorbar(SIZES, data["found"], 2 * data["error"], fmt="o", color=MODEL, markersize=5,
                  capsize=3, label="measured, ± 2 standard errors")  # fmt: skip
    logarithmic(axes.xaxis, axes.yaxis)
    axes.set(xlabel="size m of the model", ylabel="excess risk", ylim=(5e-4, 0.6))
    axes.set_title("a small model cannot fit, a large one fits noise: the sum decides")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="excess-risk",
    title="Approximation and estimation",
    statement=(
        "The excess risk of least squares on m functions is the squared error of their best "
        "approximation plus the complexity σ²m over n, exactly when the rows are fixed; with a "
        "mixed term approx/√n added it bounds the excess risk of general classes."
    ),
    formula=(
        r"\mathrm{E}\, \|\hat f - f\|^2 = \inf_{g \in \mathcal F_m} \|g - f\|^2 + "
        r"\frac{\sigma^2 m}{n} \le \frac{\text{complexity}}{n} + "
        r"\frac{\text{approx}}{\sqrt n} + \text{approx}^2"
    ),
    sources=("M363",),
    measure=measure,
    reference="Györfi et al. (2002), A distribution-free theory of nonparametric regression.",
    full={"runs": 20_000},
    draw=draw,
)
