"""The two forms of the perceptron's rule make the same steps; the scale of weights is free."""

import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.connectionism import Perceptron
from ansatz.connectionism.perceptron import run


def measure(generator: torch.Generator, *, rows: int = 60, features: int = 4) -> Finding:
    """Iterates of both forms on data of whole numbers, and predictions of scaled weights."""
    random = np.random.default_rng(int(torch.randint(2**31, (), generator=generator)))
    X, y = separable(random, rows, features)
    steps = run(X, y, keep_history=True, max_epochs=10_000).history
    assert steps is not None
    half, whole = by_errors(X, y, 0.5, len(steps)), by_errors(X, y, 1.0, len(steps))
    tail = run(X, y, form="zero_one", rate=0.25, keep_history=True, max_epochs=10_000).history
    assert tail is not None
    flips, opposite = scaled(Perceptron(max_epochs=10_000).fit(X, y), random)
    checks = [
        Check(
            "largest difference of the iterates, labels ±1 and rate ½",
            float(np.abs(half - steps).max()),
            0,
            0,
            "sums of whole numbers are exact",
            wrong=Wrong("the forms agree at rate 1", measured=float(np.abs(whole - steps).max())),
        ),
        Check(
            "largest difference of the iterates, labels 0 and 1 and rate ¼, in units of ¼",
            float(np.abs(4 * tail - steps).max()),
            0,
            0,
            "sums of whole numbers and products with ¼ are exact",
        ),
        Check(
            "predictions changed by c > 0",
            flips,
            0,
            0,
            "products with powers of two are exact",
            wrong=Wrong("c of any sign", measured=opposite),
        ),
    ]
    return Finding(checks)


def separable(
    random: np.random.Generator, rows: int, features: int
) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers on both sides of a hyperplane, some distance from it."""
    X = random.integers(-9, 10, (4 * rows, features)).astype(float)
    direction = random.normal(size=features)
    score = X @ direction / np.linalg.norm(direction)
    X = np.column_stack([X, np.ones(len(X))])
    return X[np.abs(score) > 1][:rows], np.sign(score[np.abs(score) > 1])[:rows]


def by_errors(X: np.ndarray, y: np.ndarray, rate: float, updates: int) -> np.ndarray:
    """w ← w + η (y - ŷ) x row by row, ŷ the sign of the score; 0 is held to be wrong."""
    weight = np.zeros(X.shape[1])
    history: list[np.ndarray] = []
    while len(history) < updates:
        for x, label in zip(X, y, strict=True):
            score = weight @ x
            output = np.sign(score) if score else -label
            if output != label:
                weight = weight + rate * (label - output) * x
                history.append(weight)
    return np.array(history[:updates])


def scaled(model: Perceptron, random: np.random.Generator) -> tuple[int, int]:
    """Predictions that change when the weights are multiplied by 2^k, and by -1."""
    points = random.normal(size=(200, model.n_features_in_))
    before, flips = model.predict(points), 0
    coefficients, intercept = model.coef_, model.intercept_
    for factor in (2.0**-30, 0.5, 8.0, 2.0**40):
        model.coef_, model.intercept_ = factor * coefficients, factor * intercept
        flips += int((model.predict(points) != before).sum())
    model.coef_, model.intercept_ = -coefficients, -intercept
    return flips, int((model.predict(points) != before).sum())


claim = Claim(
    id="perceptron-forms",
    title="Two forms of the perceptron's rule, one sequence of weights",
    statement=(
        "Correcting by the error, with labels 0 and 1 or ±1, makes the same steps as adding yx on "
        "a mistake, up to the rate: exactly the same at rate ½ with labels ±1. Multiplying the "
        "weights by a positive number changes no prediction. The sign of a score of 0 needs a "
        "convention: here it is +1 in prediction and a mistake in training."
    ),
    formula=(
        r"w \leftarrow w + \eta (y - \hat{y}) x \;=\; w + 2 \eta\, y x \text{ on a mistake}, "
        r"\qquad f[c w, c b] = f[w, b] \;\; (c > 0)"
    ),
    sources=("M002", "M003"),
    measure=measure,
    reference="Rosenblatt (1958), The perceptron. https://doi.org/10.1037/h0042519",
    full={"rows": 400, "features": 10},
)
