"""Nesterov's acceleration: 1/t² where gradient descent has 1/t."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.claims.optimization._path import follow, rotation, spectrum
from ansatz.optim import nesterov

Gradient = Callable[[np.ndarray], np.ndarray]


def measure(generator: torch.Generator, *, longest: int = 96, steps: int = 60) -> Finding:
    """Gaps on the worst functions of both methods; and torch's path after a change of variables."""
    counts = [t for t in (3, 6, 12, 24, 48, 96, 192, 384, 768) if t <= longest]
    chain = {"descent": [chain_gap(t, descend) for t in counts]}
    chain["nesterov"] = [chain_gap(t, accelerate) for t in counts]
    huber = [huber_gap(t, descend) for t in counts]
    t = np.array(counts, dtype=float)
    upper, lower = 2 / (t + 1) ** 2, 3 / (32 * (t + 1) ** 2)
    textbook, look_ahead, torchs = paths(generator, steps)
    checks = [
        Check(
            "largest gap of Nesterov, in units of 2L |θ₀ - θ*|² / (t + 1)²",
            float((chain["nesterov"] / upper).max()),
            1.0,
            0.0,
            "a bound with room for rounding",
            relation="<=",
            wrong=Wrong("descent had it too", measured=float((huber / upper).max())),
        ),
        Check(
            "descent on its worst function: gap (4t + 2) / (L |θ₀ - θ*|²)",
            float((np.array(huber) * (4 * t + 2)).max()),
            1.0,
            float(8 * EPS * t[-1]),
            "rounding: 8 eps times the steps",
            wrong=Wrong("the rate 1 / (2t) were reached", predicted=2.0),
        ),
        Check(
            "least gap of either method on the chain, in units of 3L |θ₀ - θ*|² / (32 (t + 1)²)",
            float((np.minimum(chain["nesterov"], chain["descent"]) / lower).min()),
            1.0,
            0.0,
            "a bound with room for rounding",
            relation=">=",
            wrong=Wrong(
                "a rate of 1/t³ on the chain",
                measured=float((upper / (t + 1) / lower).min()),
            ),
        ),
        Check(
            "largest gap between torch's SGD(nesterov=True) and χ = θ + β(θ - θ₋)",
            float((torchs - look_ahead).abs().max()),
            0.0,
            float(32 * EPS * look_ahead.abs().max()),
            "rounding, in a method that forgets it",
            wrong=Wrong(
                "torch kept θ itself in the parameters",
                measured=float((torchs - textbook).abs().max()),
            ),
        ),
    ]
    rows = [
        list(row) for row in zip(counts, huber, chain["descent"], chain["nesterov"], strict=True)
    ]
    table = Table(["steps", "descent, its worst", "descent, chain", "Nesterov, chain"], rows)
    return Finding(checks, table, {"t": t, "huber": huber, **chain})


def chain_gap(steps: int, method: Callable[[Gradient, np.ndarray, int], np.ndarray]) -> float:
    """(h - h*) / (L |θ₀ - θ*|²) on Nesterov's chain of 2 steps + 1 variables, with L = 1."""
    n = 2 * steps + 1
    one = np.eye(1, n)[0]

    def gradient(x: np.ndarray) -> np.ndarray:
        padded = np.concatenate([[0.0], x, [0.0]])
        return (2 * x - padded[:-2] - padded[2:] - one) / 4

    def value(x: np.ndarray) -> float:
        ends = np.diff(np.concatenate([[0.0], x, [0.0]]))
        return float((ends @ ends) / 8 - x[0] / 4)

    best = 1 - np.arange(1, n + 1) / (n + 1)
    return (value(method(gradient, np.zeros(n), steps)) - value(best)) / float(best @ best)


def huber_gap(steps: int, method: Callable[[Gradient, np.ndarray, int], np.ndarray]) -> float:
    """The same on descent's own worst function: slope w = 1 / (2t + 1), rounded near 0."""
    w = 1 / (2 * steps + 1)
    x = float(method(lambda x: np.clip(x, -w, w), np.ones(1), steps)[0])
    return w * abs(x) - w**2 / 2 if abs(x) > w else x**2 / 2


def descend(gradient: Gradient, x: np.ndarray, steps: int) -> np.ndarray:
    """Gradient descent at the rate 1/L = 1."""
    for _ in range(steps):
        x = x - gradient(x)
    return x


def accelerate(gradient: Gradient, x: np.ndarray, steps: int) -> np.ndarray:
    """Nesterov's method with β = (a - 1) / a₊, a₊ = (1 + √(1 + 4a²)) / 2."""
    before, a = x, 1.0
    for _ in range(steps):
        a, last = (1 + np.sqrt(1 + 4 * a * a)) / 2, a
        # The first step has last = 1 and so no momentum.
        ahead = x + (last - 1) / a * (x - before)
        before, x = x, ahead - gradient(ahead)
    return x


def paths(generator: torch.Generator, steps: int) -> tuple[Tensor, Tensor, Tensor]:
    """θ and χ by the textbook, and the parameters of torch's rule, on a quadratic."""
    Q = rotation(5, generator)
    hessian = Q @ torch.diag(spectrum(50.0, 5)) @ Q.T
    start = torch.randn(5, dtype=torch.float64, generator=generator)
    rate, beta = 0.9, 0.8
    theta, before, thetas, aheads = start, start, [], []
    for _ in range(steps + 1):
        ahead = theta + beta * (theta - before)
        thetas.append(theta)
        aheads.append(ahead)
        before, theta = theta, ahead - rate * hessian @ ahead

    def loss(point: Tensor) -> Tensor:
        return 0.5 * point @ hessian @ point

    found = follow(loss, start, lambda p: nesterov(p, rate, momentum=beta), steps)
    return torch.stack(thetas), torch.stack(aheads), found


def draw(paper: Figure, finding: Finding) -> None:
    """Gaps against steps on logarithmic axes."""
    from ansatz.figures.decades import logarithmic
    from ansatz.figures.style import INK, LINEAR, MODEL, THIRD

    data, axes = finding.data, paper.subplots()
    t = data["t"]
    axes.plot(t, 1 / (4 * t + 2), color=LINEAR, lw=1, label="1 / (4t + 2)")
    axes.plot(t, data["huber"], "o", color=LINEAR, label="descent, its worst function")
    axes.plot(t, data["descent"], "s", color=THIRD, label="descent, chain of variables")
    axes.plot(t, data["nesterov"], "D", color=MODEL, label="Nesterov, chain of variables")
    axes.fill_between(
        t,
        3 / 32 / (t + 1) ** 2,
        2 / (t + 1) ** 2,
        color=INK,
        alpha=0.15,
        lw=0,
        label="between 3/32 and 2 over (t + 1)²",
    )
    axes.set(xlabel="steps t", ylabel="(h - h*) / (L |θ₀ - θ*|²)")
    axes.set_title("momentum turns 1/t into 1/t², and no method does better")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    logarithmic(axes.xaxis, axes.yaxis)


claim = Claim(
    id="nesterov",
    title="Nesterov's rate 1/t² against descent's 1/t",
    statement=(
        "On L-smooth convex losses Nesterov's method has a gap of at most 2L|θ₀ - θ*|² / (t + 1)² "
        "after t steps. Gradient descent has exactly L|θ₀ - θ*|² / (4t + 2) on its worst function, "
        "and on a chain of 2t + 1 variables neither can be below 3L|θ₀ - θ*|² / (32 (t + 1)²). "
        "torch's SGD(nesterov=True) takes the same path and keeps the look-ahead point χ in the "
        "parameters."
    ),
    formula=(
        r"\chi_t = \theta_t + \beta_t (\theta_t - \theta_{t-1}), \quad "
        r"\theta_{t+1} = \chi_t - \tfrac1L \nabla h(\chi_t) \;\Rightarrow\; "
        r"h(\theta_t) - h^* \le \frac{2L \|\theta_0 - \theta^*\|^2}{(t+1)^2}"
    ),
    sources=("M129",),
    measure=measure,
    reference=(
        "Nesterov (2018), Lectures on Convex Optimization, theorems 2.1.7 and 2.2.1; Drori and "
        "Teboulle (2014), Performance of first-order methods for smooth convex minimization. "
        "https://arxiv.org/abs/1206.3209"
    ),
    full={"longest": 768, "steps": 1000},
    draw=draw,
)
