"""The perceptron's weight is a combination of the points, and separable data end its mistakes."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.connectionism.perceptron import run
from ansatz.figures.style import LINEAR, MODEL


def measure(
    generator: torch.Generator, *, rows: int = 40, features: int = 100, passes: int = 30
) -> Finding:
    """The part of the weight outside the span of fewer points than dimensions; mistakes by pass."""
    random = np.random.default_rng(int(torch.randint(2**31, (), generator=generator)))
    X, y = random.normal(size=(rows, features)), random.choice([-1.0, 1.0], rows)
    result = run(X, y, max_epochs=10_000)
    basis = np.linalg.qr(X.T)[0]  # (D, N), of the span
    start = random.normal(size=features) * np.linalg.norm(result.weight) / features**0.5
    twice = np.vstack([X[:2], X[:2], X[2:]])  # the first two points with both labels
    labels = np.concatenate([y[:2], -y[:2], y[2:]])
    separable = [run(X, y, max_epochs=k).wrong for k in range(1, passes + 1)]
    torn = [run(twice, labels, max_epochs=k).wrong for k in range(1, passes + 1)]
    eps = np.finfo(float).eps
    checks = [
        Check(
            "share of the weight outside the span of the points",
            outside(result.weight, basis),
            0,
            8 * eps * result.mistakes,
            "rounding: 8 eps for each update",
            wrong=Wrong(
                "from any start, not from 0", measured=outside(result.weight + start, basis)
            ),
        ),
        Check(
            "mistakes of the last pass on separable data",
            result.wrong,
            0,
            0,
            "whole numbers",
            wrong=Wrong("data that no hyperplane separates", measured=torn[-1]),
        ),
    ]
    return Finding(checks, data={"separable": separable, "torn": torn})


def outside(weight: np.ndarray, basis: np.ndarray) -> float:
    """‖w - P w‖ / ‖w‖."""
    return float(np.linalg.norm(weight - basis @ (basis.T @ weight)) / np.linalg.norm(weight))


def draw(paper: Figure, finding: Finding) -> None:
    """Mistakes by pass."""
    axes = paper.subplots()
    passes = np.arange(1, len(finding.data["torn"]) + 1)
    axes.plot(passes, finding.data["torn"], "s-", color=LINEAR, label="two points with both labels")
    axes.plot(passes, finding.data["separable"], "o-", color=MODEL, label="separable data")
    axes.set(xlabel="pass over the data", ylabel="mistakes in the pass", ylim=(-0.8, None))
    axes.set_title("without a limit on passes the perceptron ends only on separable data")
    axes.legend(loc="upper right")


claim = Claim(
    id="perceptron-span",
    title="The perceptron's weight lies in the span of the points",
    statement=(
        "Started at 0, the weight of the perceptron is at any time a combination of the points, "
        "with whole coefficients. On separable data a pass without a mistake comes, on other data "
        "never: the algorithm needs a limit on the number of passes, which is often left out."
    ),
    formula=r"w_t = \sum_i \alpha_i y_i x_i, \qquad \alpha_i \in \{0, 1, 2, \dots\}",
    sources=("M004",),
    measure=measure,
    reference="Novikoff (1962), On convergence proofs on perceptrons.",
    full={"rows": 80, "features": 150, "passes": 60},
    draw=draw,
)
