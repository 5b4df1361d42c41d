"""Novikoff: a perceptron makes at most R²/γ² mistakes on data with margin γ."""

from typing import NamedTuple

import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.connectionism import margin
from ansatz.connectionism.perceptron import run
from ansatz.figures.style import LINEAR, MODEL


class Instance(NamedTuple):
    """A data set with its separator, and the run of the perceptron on it."""

    bound: float
    mistakes: int
    forward: float
    length: float
    length_by_mean: float


def measure(
    generator: torch.Generator, *, sets: int = 30, rows: int = 100, corners: int = 16
) -> Finding:
    """Mistakes and both invariants on random sets, and on one where nothing is to spare."""
    random = np.random.default_rng(int(torch.randint(2**31, (), generator=generator)))
    found = [random_instance(random, rows) for _ in range(sets)]
    hard = hard_instance(random, corners)
    every = [*found, hard]
    rounding = 16 * corners * np.finfo(float).eps
    checks = [
        Check(
            f"mistakes on {corners} orthogonal points",
            hard.mistakes,
            np.floor(hard.bound + 1e-9),
            0,
            "whole numbers",
            relation="<=",
            wrong=Wrong("less than ⌊R²/γ²⌋", predicted=np.floor(hard.bound + 1e-9) - 1),
        ),
        Check(
            "largest mistakes / ⌊R²/γ²⌋",
            max(each.mistakes / np.floor(each.bound + 1e-9) for each in every),
            1,
            0,
            "whole numbers",
            relation="<=",
            wrong=Wrong(
                "R/γ, without the squares",
                measured=max(each.mistakes / np.floor(each.bound**0.5 + 1e-9) for each in every),
            ),
        ),
        Check(
            "smallest w*·wₜ / (tγ) over all updates",
            min(each.forward for each in every),
            1,
            rounding,
            "rounding: 16 eps for each of the updates of the tight case",
            relation=">=",
            wrong=Wrong("twice the margin", predicted=2),
        ),
        Check(
            "largest ‖wₜ‖ / (R√t) over all updates",
            max(each.length for each in every),
            1,
            rounding,
            "rounding: 16 eps for each of the updates of the tight case",
            relation="<=",
            wrong=Wrong(
                "R the mean norm, not the largest",
                measured=max(each.length_by_mean for each in every),
            ),
        ),
    ]
    rows_ = [[each.bound, each.mistakes] for each in every]
    return Finding(checks, Table(["R²/γ²", "mistakes"], rows_), {"every": every, "hard": hard})


def random_instance(random: np.random.Generator, rows: int) -> Instance:
    """Points in a few dimensions, off a hyperplane through the origin."""
    features = int(random.integers(2, 10))
    witness = random.normal(size=features)
    witness /= np.linalg.norm(witness)
    X = random.normal(size=(rows, features)) * random.exponential(size=(rows, 1))
    gap = 10 ** random.uniform(-1.5, 0)
    X += gap * np.sign(X @ witness)[:, None] * witness
    return evaluated(X, np.sign(X @ witness), witness)


def hard_instance(random: np.random.Generator, corners: int) -> Instance:
    """Unit vectors at right angles: no update helps another point, and R²/γ² is their number."""
    X, y = np.eye(corners), random.choice([-1.0, 1.0], corners)
    return evaluated(X, y, y / corners**0.5)


def evaluated(X: np.ndarray, y: np.ndarray, witness: np.ndarray) -> Instance:
    """Runs the perceptron and looks at every update."""
    history = run(X, y, max_epochs=1_000_000, keep_history=True).history
    assert history is not None
    gamma = margin(X, y, witness)
    norms = np.linalg.norm(X, axis=1)
    t = np.arange(1, len(history) + 1)
    lengths = np.linalg.norm(history, axis=1) / t**0.5
    return Instance(
        bound=float((norms.max() / gamma) ** 2),
        mistakes=len(history),
        forward=float((history @ witness / (t * gamma)).min()),
        length=float((lengths / norms.max()).max()),
        length_by_mean=float((lengths / norms.mean()).max()),
    )


def draw(paper: Figure, finding: Finding) -> None:
    """Mistakes beside the bound."""
    from ansatz.figures.decades import logarithmic

    axes = paper.subplots()
    every, hard = finding.data["every"], finding.data["hard"]
    ends = np.array([2.0, 1.5 * max(each.bound for each in every)])
    axes.plot(ends, ends, color=LINEAR, label="the bound R²/γ²")
    axes.plot(
        [each.bound for each in every], [each.mistakes for each in every], "o", color=MODEL,
        label="random data",
    )  # fmt: skip
    axes.plot([hard.bound], [hard.mistakes], "*", color=LINEAR, ms=13, label="orthogonal points")
    logarithmic(axes.xaxis, axes.yaxis)
    axes.set(xlabel="R²/γ²", ylabel="mistakes until none is left")
    axes.set_title("never more mistakes than R²/γ², and in the worst case as many")
    axes.legend(loc="upper left")


claim = Claim(
    id="novikoff",
    title="Novikoff: at most R²/γ² mistakes",
    statement=(
        "On data of norm at most R that a unit vector w* separates with margin γ, the perceptron "
        "makes at most ⌊R²/γ²⌋ mistakes, because at every update w*·wₜ ≥ tγ and ‖wₜ‖ ≤ R√t. "
        '"Fewer than" is a common slip, which orthogonal points refute.'
    ),
    formula=(
        r"w_*^\top w_t \ge t \gamma, \quad \lVert w_t \rVert \le R \sqrt{t} "
        r"\;\Rightarrow\; t \le \left\lfloor R^2 / \gamma^2 \right\rfloor"
    ),
    sources=("M007", "M008"),
    measure=measure,
    reference="Novikoff (1962), On convergence proofs on perceptrons.",
    full={"sets": 300, "rows": 300, "corners": 200},
    draw=draw,
)
