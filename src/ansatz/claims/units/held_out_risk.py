"""The error on held-out rows estimates the risk without bias; that on training rows does not."""

import numpy as np
import torch
from scipy.stats import norm

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.figures.style import INK, LINEAR, MODEL
from ansatz.metrics import influence_error, mean_estimate


def measure(
    generator: torch.Generator,
    *,
    features: tuple[int, ...] = (2, 5, 10, 15, 20),
    rows: int = 40,
    held_out: int = 200,
    runs: int = 200,
) -> Finding:
    """Least squares on data whose risk is known: its errors on training and held-out rows."""
    table, ratios, gaps = [], [], {}
    for d in features:
        trained, held, risk, errors, losses = experiment(d, rows, held_out, runs, generator)
        gaps[d] = {"held": held - risk, "trained": trained - risk}
        ratios.append((held - risk) / errors)
        table.append(
            [
                d,
                *(
                    float(v)
                    for part in (trained, held, risk)
                    for v in (part.mean(), part.std() / runs**0.5)
                ),
            ]
        )
    worst = {
        side: max(float(abs(g[side].mean()) / (g[side].std() / runs**0.5)) for g in gaps.values())
        for side in ("held", "trained")
    }
    formulas = [
        [1 - d / rows, 1 + d / (rows - d - 1)] for d in features
    ]  # mean training error, risk
    training = max(abs(row[1] - a) / row[2] for row, (a, _) in zip(table, formulas, strict=True))
    expected = max(abs(row[5] - b) / row[6] for row, (_, b) in zip(table, formulas, strict=True))
    ratio = torch.cat(ratios)
    covered = float((ratio.abs() < 1.96).double().mean())
    quantile = (
        f"a normal quantile of 7e-6, for {len(features)} sizes; standard errors over {runs} runs"
    )
    checks = [
        Check(
            "held-out error less the risk: largest mean, in standard errors",
            worst["held"],
            0.0,
            4.5,
            quantile,
            wrong=Wrong("training error less the risk", measured=worst["trained"]),
        ),
        Check(
            "training error: largest deviation from σ² (1 - d/n), in standard errors",
            training,
            0.0,
            4.5,
            quantile,
            wrong=Wrong("σ²", measured=max(abs(row[1] - 1) / row[2] for row in table)),
        ),
        Check(
            "risk: largest deviation from σ² (1 + d/(n - d - 1)), in standard errors",
            expected,
            0.0,
            4.5,
            quantile,
            wrong=Wrong("σ²", measured=max(abs(row[5] - 1) / row[6] for row in table)),
        ),
        Check(
            "share of runs whose ± 1.96 standard errors hold the risk",
            covered,
            0.95 - shortfall(held_out),
            4 * (0.95 * 0.05 / len(ratio)) ** 0.5,
            f"4 standard errors of a share over {len(ratio)} runs; Edgeworth's 1/s term is in the "
            "prediction",
            wrong=Wrong(
                "the standard deviation of a row for that of the mean",
                measured=float((ratio.abs() < 1.96 * held_out**0.5).double().mean()),
            ),
        ),
        Check(
            "largest relative difference of the library's standard error to s/√n",
            max(
                abs(influence_error(mean_estimate(row).influence) / float(e) - 1)
                for row, e in zip(losses[:20], errors[:20], strict=True)
            ),
            0.0,
            held_out * 2.0**-52,
            "rounding: sums over the held-out rows",
        ),
    ]
    head = ["features", "training", "error", "held out", "error ", "risk", "error  "]
    return Finding(checks, Table(head, table), {"rows": rows})


def experiment(
    d: int, rows: int, held_out: int, runs: int, generator: torch.Generator
) -> tuple[torch.Tensor, ...]:
    """Errors on training and held-out rows, the risk, standard errors, and the held-out losses.

    x and the noise are standard normal, so the risk of weights w is 1 + |w - w*|², and w* = 0
    serves as well as any other.
    """
    x = torch.randn(runs, rows + held_out, d, generator=generator, dtype=torch.float64)
    y = torch.randn(runs, rows + held_out, generator=generator, dtype=torch.float64)
    X, t = x[:, :rows], y[:, :rows]
    w = torch.linalg.solve(X.mT @ X, (X.mT @ t.unsqueeze(2)))
    squared = (y - (x @ w).squeeze(2)).square()
    held = squared[:, rows:]
    return (
        squared[:, :rows].mean(1),
        held.mean(1),
        1 + w.square().sum((1, 2)),
        held.std(1) / held_out**0.5,
        held,
    )


def shortfall(n: int) -> float:
    """The coverage that an interval of 1.96 standard errors lacks to 95%, for means of n squares.

    Squares of a normal number have the skewness √8 and the excess kurtosis 12.
    """
    z, skewness2, kurtosis = 1.96, 8, 12
    term = (
        kurtosis / 12 * (z**3 - 3 * z)
        - skewness2 / 18 * (z**5 + 2 * z**3 - 3 * z)
        - (z**3 + 3 * z) / 4
    )
    return -2 * float(norm.pdf(z)) * term / n


def draw(paper: Figure, finding: Finding) -> None:
    """Both errors against the number of features, with their predictions."""
    assert finding.table is not None
    axes = paper.subplots()
    d, train, train_error, held, held_error, _, _ = np.array(finding.table.rows).T
    n, line = finding.data["rows"], np.linspace(1, float(d.max()), 100)
    axes.errorbar(d, held, 2 * held_error, fmt="o", color=MODEL, label="on held-out rows")
    axes.plot(line, 1 + line / (n - line - 1), color=LINEAR, label="risk: 1 + d/(n − d − 1)")
    axes.errorbar(d, train, 2 * train_error, fmt="s", color=INK, label="on training rows")
    axes.plot(line, 1 - line / n, "--", color=LINEAR, label="1 − d/n")
    axes.set(
        xlabel=f"features d of a linear model on n = {n} rows", ylabel="mean squared error (σ² = 1)"
    )
    axes.set_title("training error falls as the risk rises; held-out error follows the risk")
    axes.legend(loc="upper left")


claim = Claim(
    id="held-out-risk",
    title="Held-out rows estimate the risk",
    statement=(
        "The mean loss on rows that were not trained on is an unbiased estimate of the expected "
        "loss, and its standard error estimates how far off it is. The mean loss on the training "
        "rows is too low: for least squares by a factor 1 - d/n, while the risk has grown by d/n "
        "and more."
    ),
    formula=(
        r"\mathrm{E} \Big[ \tfrac1s \sum_{i \in \text{held out}} \ell(f(x_i), y_i) \Big] = "
        r"\mathrm{E}\,\ell(f(x), y), \qquad "
        r"\mathrm{E}[\text{training}] = \sigma^2 (1 - \tfrac dn), "
        r"\qquad \mathrm{E}[\text{risk}] = \sigma^2 \big(1 + \tfrac{d}{n - d - 1}\big)"
    ),
    sources=("M061",),
    measure=measure,
    reference="Hastie, Tibshirani and Friedman (2009), The Elements of Statistical Learning, 7.4; "
    "Hall (1992), The Bootstrap and Edgeworth Expansion, section 2.6.",
    full={"rows": 200, "features": (5, 20, 50, 100), "runs": 3000},
    draw=draw,
)
