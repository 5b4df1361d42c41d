"""A likelihood is maximised, so that its negative logarithm is the loss."""

import math
from collections.abc import Callable

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.likelihoods import Bernoulli

BOX = 12.0  # logits are searched in [-BOX, BOX]


def measure(generator: torch.Generator, *, rows: int = 400, share: float = 0.2) -> Finding:
    """Minimises a constant logit's loss, plain and weighted by 1 / frequency of the class."""
    y = torch.bernoulli(torch.full((rows,), share, dtype=torch.float64), generator=generator)
    frequency = torch.where(y == 1, y.mean(), 1 - y.mean())
    plain, weighted = mean_loss(y, torch.ones_like(y)), mean_loss(y, 1 / frequency)
    p = float(y.mean())
    odds = math.log(p / (1 - p))
    totals = [float((1 / frequency)[y == label].sum()) for label in (0, 1)]
    # Near its minimum h(f) = h* + h'' (f - f*)² / 2, and h is known up to 8 eps: h'' = p (1 - p).
    located = 4 * math.sqrt(2 * 8 * 2.0**-52 * plain(odds) / (p * (1 - p)))
    checks = [
        Check(
            "logit that minimises the node loss",
            argmin(plain),
            odds,
            located,
            "4 times the root of rounding over curvature: closer than that rounding hides it",
            wrong=Wrong(
                "minimising Σ y log σ + (1-y) log(1-σ)",
                measured=argmin(lambda f: -plain(f)),
                erratum="E19",
            ),
        ),
        Check(
            "logit that minimises the weighted loss, w = 1 / frequency",
            argmin(weighted),
            0.0,
            4 * math.sqrt(2 * 8 * 2.0**-52 * weighted(0.0) / 0.5),
            "as above; balanced classes have the log odds 0, and the curvature is 2 / 4",
            wrong=Wrong(
                "minimising Σ w log P", measured=argmin(lambda f: -weighted(f)), erratum="E19"
            ),
        ),
        Check(
            "ratio of the two classes' total weights",
            totals[0] / totals[1],
            1.0,
            2 * rows * 2.0**-52,
            "rounding of two sums of that many rows",
        ),
        Check(
            "smallest loss over logits",
            min(plain(f) for f in np.linspace(-BOX, BOX, 49)),
            0.0,
            0.0,
            "minus the logarithm of a probability",
            ">=",
        ),
    ]
    grid = np.linspace(-5, 5, 201)
    curve = np.array([plain(f) for f in grid])
    table = Table(["class", "rows", "total weight"], [
        [label, int((y == label).sum()), totals[label]] for label in (0, 1)
    ])  # fmt: skip
    return Finding(checks, table, {"grid": grid, "curve": curve, "odds": odds})


def mean_loss(y: Tensor, weight: Tensor) -> Callable[[float], float]:
    """The weighted mean of the library's loss as a function of one logit for all rows."""
    likelihood = Bernoulli()

    def value(logit: float) -> float:
        raw = torch.full((len(y), 1), float(logit), dtype=y.dtype)
        return float((weight * likelihood.loss(raw, y)).mean())

    return value


def argmin(function: Callable[[float], float]) -> float:
    """By a search within the box."""
    return float(minimize_scalar(function, bounds=(-BOX, BOX), options={"xatol": 1e-10}).x)


def draw(paper: Figure, finding: Finding) -> None:
    """The loss and its negative over the logit."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    axes.plot(data["grid"], data["curve"], color=MODEL, label="- Σ log P")
    axes.plot(data["grid"], -data["curve"], "--", color=LINEAR, lw=1, label="printed: Σ log P")
    axes.axvline(data["odds"], color=INK, lw=0.8, ls=":", label="log odds of y")
    axes.set(xlabel="logit f", ylabel="mean over rows")
    axes.set_title("minimising needs the minus: without it the best logit is infinite")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="cross-entropy-sign",
    title="The cross-entropy is minus a log-likelihood",
    statement=(
        "The loss to minimise is the negative log-likelihood. It is never negative, and a constant "
        "logit is best at the log odds of y, or at 0 when classes are weighted by one over their "
        "frequency. A common slip prints the loss without the minus; minimising that drives the "
        "logit to infinity."
    ),
    formula=(
        r"\ell = -\sum_i w_{y_i} \bigl[ y_i \log \sigma(f_i) + (1 - y_i) \log(1 - \sigma(f_i))"
        r" \bigr] \ge 0"
    ),
    sources=("E19", "M105", "M106", "M324"),
    measure=measure,
    reference="Bishop (2006), Pattern Recognition and Machine Learning, section 4.3.2.",
    full={"rows": 20_000},
    errata=(Erratum("E19", "Σ y log σ(hθ) + (1-y) log(1-σ(hθ))", "minus the same"),),
    draw=draw,
)
