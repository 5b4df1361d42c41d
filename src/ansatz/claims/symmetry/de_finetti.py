"""Infinite exchangeable sequences are mixtures of independent ones; finite ones need not be."""

import itertools
import math

import numpy as np
import torch
from scipy.special import betaln, roots_jacobi

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.claim import Figure


def measure(
    generator: torch.Generator, *, a: float = 2.0, b: float = 3.0, length: int = 8
) -> Finding:
    """Compares Polya's urn with a mixture of coins, and draws without replacement with neither."""
    words = list(itertools.product((0, 1), repeat=length))
    urn = np.array([polya(word, a, b) for word in words])
    mixture = np.array([mixed(sum(word), length, a, b) for word in words])
    plain = np.array([(a / (a + b)) ** sum(w) * (b / (a + b)) ** (length - sum(w)) for w in words])
    rounding = 1e-13
    drawn = np.array(list(itertools.permutations((0, 1))), dtype=float)  # one red, one black card
    cards = float((drawn[:, 0] * drawn[:, 1]).mean() - drawn[:, 0].mean() * drawn[:, 1].mean())
    order = torch.randperm(length, generator=generator).tolist()
    moved = np.array([polya([word[k] for k in order], a, b) for word in words])
    once = np.array([polya(word, a, b, gain=0) for word in words])
    turned = np.array([polya([word[k] for k in order], a, b, gain=0) for word in words])
    checks = [
        Check(
            "largest difference of the urn's probabilities and the mixture's",
            float(np.abs(urn - mixture).max()),
            0.0,
            rounding,
            "rounding of products and of an exact quadrature",
            wrong=Wrong("one coin: independent draws", measured=float(np.abs(urn - plain).max())),
        ),
        Check(
            "largest change of a probability under a new order",
            float(np.abs(urn - moved).max()),
            0.0,
            rounding,
            "rounding of products",
            wrong=Wrong(
                "an urn that gains a ball for red alone",
                measured=float(np.abs(once - turned).max()),
            ),
        ),
        Check(
            "covariance of two cards without replacement",
            cards,
            -0.25,
            0.0,
            "one red and one black card",
            wrong=Wrong("a mixture: a variance, so at least 0", predicted=0.0),
        ),
    ]
    counts = [sum(word) for word in words]
    return Finding(checks, data={"count": counts, "urn": urn.tolist(), "plain": plain.tolist()})


def polya(word: list[int] | tuple[int, ...], a: float, b: float, *, gain: int = 1) -> float:
    """The probability of a sequence from an urn that gains a red ball, or ``gain`` black ones."""
    red, black, found = a, b, 1.0
    for x in word:
        found *= (red if x else black) / (red + black)
        red, black = red + x, black + gain * (1 - x)
    return found


def mixed(ones: int, length: int, a: float, b: float) -> float:
    """The mean over coins of the probability of a sequence, by an exact Gauss-Jacobi rule."""
    nodes, weights = roots_jacobi(length, b - 1, a - 1)
    theta = (nodes + 1) / 2
    scale = 2 ** (1 - a - b) / math.exp(betaln(a, b))
    return float(scale * (weights * theta**ones * (1 - theta) ** (length - ones)).sum())


def draw(paper: Figure, finding: Finding) -> None:
    """Probabilities of sequences by the number of ones."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    axes.plot(data["count"], data["urn"], "o", color=MODEL, label="urn = mixture of coins")
    axes.plot(data["count"], data["plain"], "x", color=LINEAR, label="one coin")
    axes.set(xlabel="ones in the sequence", ylabel="probability of a sequence")
    logarithmic(axes.yaxis)
    axes.legend()
    axes.set_title("an order that does not matter is not independence")


claim = Claim(
    id="de-finetti",
    title="Exchangeable is a mixture of independent",
    statement=(
        "The probability of an infinite exchangeable sequence is a mixture of those of independent "
        "ones: Polya's urn is a mixture of coins with a beta prior. It fails for finite sequences: "
        "two cards of a deck of two are exchangeable, and their covariance is negative."
    ),
    formula=r"p(x_1, \dots, x_M) = \int \prod_i p(x_i \mid \theta) \, p(\theta) \, d\theta",
    sources=("M284",),
    measure=measure,
    reference="de Finetti (1937), La prévision: ses lois logiques, ses sources subjectives.",
    full={"length": 12},
    draw=draw,
)
