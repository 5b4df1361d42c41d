"""Metropolis and Hastings' ratio makes the target stationary; its reciprocal does not."""

from collections.abc import Callable

import numpy as np
import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.claims.claim import Figure

Rule = Callable[[np.ndarray, np.ndarray], np.ndarray]


def measure(generator: torch.Generator, *, states: int = 6) -> Finding:
    """The transition matrix of a small chain; its stationary distribution by linear algebra."""
    p = torch.rand(states, generator=generator, dtype=torch.float64).numpy() + 0.1
    p /= p.sum()
    proposal = torch.rand(states, states, generator=generator, dtype=torch.float64).numpy() + 0.1
    proposal /= proposal.sum(1, keepdims=True)
    even = np.full((states, states), 1 / states)
    chain, printed = transition(p, proposal, ratio), transition(p, proposal, printed_ratio)
    distribution, wrong = stationary(chain), stationary(printed)
    inverse = stationary(transition(p, even, printed_ratio))
    flow = p[:, None] * chain
    tolerance = 64 * states * 2.0**-52 * condition(chain)
    because = "rounding: 64 n eps times the condition number of the linear system"
    checks = [
        Check(
            "total variation between the chain's distribution and the target",
            distance(distribution, p),
            0.0,
            tolerance,
            because,
            wrong=Wrong("the reciprocal ratio", measured=distance(wrong, p), erratum="E5"),
        ),
        Check(
            "largest violation of detailed balance",
            float(np.abs(flow - flow.T).max()),
            0.0,
            16 * 2.0**-52,
            "rounding: 16 eps for products of three probabilities",
            wrong=Wrong(
                "the reciprocal ratio",
                measured=float(np.abs(p[:, None] * printed - (p[:, None] * printed).T).max()),
                erratum="E5",
            ),
        ),
        Check(
            "total variation of the printed chain from 1/p, even proposals",
            distance(inverse, (1 / p) / (1 / p).sum()),
            0.0,
            64 * states * 2.0**-52 * condition(transition(p, even, printed_ratio)),
            because,
            wrong=Wrong("it samples p", measured=distance(inverse, p)),
        ),
        Check(
            "smallest row sum of the kernel",
            float(chain.sum(1).min()),
            1.0,
            states * 2.0**-52,
            "rounding of a sum of that many numbers",
            wrong=Wrong(
                "no mass stays after a rejection",
                measured=float((proposal * np.minimum(1, ratio(p, proposal))).sum(1).min()),
            ),
        ),
    ]
    table = Table(["state", "target", "right", "printed"], [
        [i, p[i], distribution[i], wrong[i]] for i in range(states)
    ])  # fmt: skip
    return Finding(checks, table, {"p": p, "distribution": distribution, "wrong": wrong})


def ratio(p: np.ndarray, proposal: np.ndarray) -> np.ndarray:
    """[from, to]: p(to) q(from | to) / (p(from) q(to | from))."""
    return p[None, :] * proposal.T / (p[:, None] * proposal)


def printed_ratio(p: np.ndarray, proposal: np.ndarray) -> np.ndarray:
    """As printed: upside down."""
    return 1 / ratio(p, proposal)


def transition(p: np.ndarray, proposal: np.ndarray, rule: Rule) -> np.ndarray:
    """Accepted proposals, and the rejected ones on the diagonal."""
    moves: np.ndarray = proposal * np.minimum(1, rule(p, proposal))
    np.fill_diagonal(moves, 0)
    return moves + np.diag(1 - moves.sum(1))


def system(chain: np.ndarray) -> np.ndarray:
    """π (P - I) = 0 with one equation replaced by Σ π = 1."""
    matrix = (chain - np.eye(len(chain))).T
    matrix[-1] = 1
    return matrix


def stationary(chain: np.ndarray) -> np.ndarray:
    """The distribution that one step leaves as it is."""
    return np.linalg.solve(system(chain), np.eye(len(chain))[-1])


def condition(chain: np.ndarray) -> float:
    """Of the system that gives the distribution."""
    return float(np.linalg.cond(system(chain)))


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """Half the sum of absolute differences."""
    return float(np.abs(one - other).sum() / 2)


def draw(paper: Figure, finding: Finding) -> None:
    """Target as bars, both stationary distributions as points."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    states = np.arange(1, len(data["p"]) + 1)
    axes.bar(states, data["p"], color=INK, alpha=0.3, label="target p")
    axes.plot(states, data["distribution"], "o", color=MODEL, ms=6, label="right ratio")
    axes.plot(states, data["wrong"], "x", color=LINEAR, ms=6, label="printed reciprocal")
    axes.set(xlabel="state", ylabel="stationary probability")
    axes.set_title("Metropolis-Hastings keeps the target; the reciprocal prefers rare states")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


claim = Claim(
    id="metropolis-hastings",
    title="Metropolis-Hastings leaves its target stationary",
    statement=(
        "With the acceptance probability min{1, p(θ')q(θ|θ') / (p(θ)q(θ'|θ))}, and with rejected "
        "moves staying where they are, the chain is in detailed balance with p, and p is its only "
        "stationary distribution. A common slip prints the reciprocal, which for symmetric "
        "proposals samples 1/p."
    ),
    formula=(
        r"\alpha(\theta' \mid \theta) = \min\Bigl\{1, \frac{p(\theta')\, q(\theta \mid \theta')}"
        r"{p(\theta)\, q(\theta' \mid \theta)}\Bigr\}"
    ),
    sources=("E5", "M341", "M342"),
    measure=measure,
    reference="Hastings (1970), Monte Carlo sampling methods using Markov chains, section 2.",
    full={"states": 40},
    errata=(Erratum("E5", "p(θ)q(θ'|θ) / (p(θ')q(θ|θ'))", "p(θ')q(θ|θ') / (p(θ)q(θ'|θ))"),),
    draw=draw,
)
