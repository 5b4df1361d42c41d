"""The set of separating units shrinks with every point, and is empty if nothing separates."""

import numpy as np
import torch
from scipy.optimize import nnls

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure
from ansatz.connectionism import version_space
from ansatz.figures.style import LINEAR, MODEL


def measure(
    generator: torch.Generator,
    *,
    sets: int = 24,
    runs: int = 4,
    points: int = 10,
    features: int = 3,
) -> Finding:
    """The largest margin in a box as points come, and Gordan's alternative by least squares."""
    random = np.random.default_rng(int(torch.randint(2**31, (), generator=generator)))
    disagree = without_bias = 0
    for _ in range(sets):
        X, y = random.normal(size=(8, features)), random.choice([-1.0, 1.0], 8)
        torn = has_alternative(X, y)
        disagree += version_space(X, y).empty != torn
        without_bias += version_space(X, y, fit_intercept=False).empty != torn
    curves = []
    for _ in range(runs):
        X, y = random.normal(size=(points, features)), random.choice([-1.0, 1.0], points)
        curves.append([version_space(X[:k], y[:k]).margin for k in range(1, points + 1)])
    steps = np.diff(np.array(curves), axis=1)
    checks = [
        Check(
            "sets for which 'empty' and 'not separable' disagree",
            disagree,
            0,
            0,
            "whole numbers",
            wrong=Wrong("hyperplanes through the origin only", measured=without_bias),
        ),
        Check(
            "largest rise of the best margin when a point is added",
            float(steps.max()),
            0,
            1e-8,
            "tolerance of the linear program",
            relation="<=",
            wrong=Wrong("a point is taken away", measured=float(-steps.min())),
        ),
    ]
    return Finding(checks, data={"curves": curves, "features": features})


def has_alternative(X: np.ndarray, y: np.ndarray) -> bool:
    """Gordan: a combination λ ≥ 0, Σλ = 1 of the signed points (x, 1) that vanishes."""
    signed = y[:, None] * np.column_stack([X, np.ones(len(X))])
    _, residual = nnls(
        np.vstack([signed.T, np.ones(len(X))]), np.append(np.zeros(X.shape[1] + 1), 1)
    )
    return bool(residual < 1e-9)


def draw(paper: Figure, finding: Finding) -> None:
    """The best margin falls with every point, to 0."""
    axes = paper.subplots()
    for position, curve in enumerate(finding.data["curves"]):
        count = np.arange(1, len(curve) + 1)
        alive = np.array(curve) > 0
        name = "a unit separates" if position == 0 else None
        axes.plot(count, curve, color=MODEL, lw=0.8, alpha=0.6)
        axes.plot(count[alive], np.array(curve)[alive], "o", color=MODEL, label=name)
        name = "empty" if position == 0 else None
        axes.plot(count[~alive], np.array(curve)[~alive], "s", color=LINEAR, label=name)
    axes.set(xlabel="points, with random labels", ylabel="largest margin in a box")
    features = finding.data["features"]
    axes.set_title(f"every point cuts the version space ({features} features and a bias)")
    axes.legend()


claim = Claim(
    id="version-space",
    title="The version space shrinks, and is empty if and only if nothing separates",
    statement=(
        "The set of units with a positive margin shrinks when points are added, and it is empty if "
        "and only if the data are not linearly separable, that is if some convex combination of "
        "the signed points vanishes."
    ),
    formula=(
        r"V(S) = \{(w, b): \gamma(S) > 0\}, \quad S \subset S' \Rightarrow V(S') \subset V(S), "
        r"\quad V(S) = \emptyset \iff \exists \lambda \ge 0, \lambda \ne 0: "
        r"\sum_i \lambda_i y_i (x_i, 1) = 0"
    ),
    sources=("M006",),
    measure=measure,
    reference="Gordan (1873), Über die Auflösung linearer Gleichungen mit reellen Coefficienten.",
    full={"sets": 1000, "runs": 12, "points": 20, "features": 5},
    draw=draw,
)
