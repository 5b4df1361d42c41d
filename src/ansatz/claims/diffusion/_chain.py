"""The noising chain in one dimension, and its backward step by Bayes' rule on a grid."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from ansatz.claims import Finding
from ansatz.generative.diffusion import Process

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Schedule(NamedTuple):
    """Arrays over t = 1..T, stored from index 0."""

    beta: np.ndarray  # variance that a step adds
    alpha: np.ndarray  # 1 - beta
    total: np.ndarray  # ᾱ, the running product of alpha
    process: Process  # whose formulas are checked

    @property
    def before(self) -> np.ndarray:
        """ᾱ of the step before; 1 before the first."""
        return np.concatenate([[1.0], self.total[:-1]])

    @property
    def posterior_variance(self) -> np.ndarray:
        """β̃, by the library."""
        found: np.ndarray = self.process.posterior_variance(self.times).numpy()
        return found

    @property
    def times(self) -> torch.Tensor:
        """1..T."""
        return torch.arange(1, len(self.beta) + 1)


def schedule(steps: int, first: float = 0.05, last: float = 0.3) -> Schedule:
    """A linear one."""
    beta = np.linspace(first, last, steps)
    process = Process("linear", steps, beta=(first, last))
    return Schedule(beta, 1 - beta, np.cumprod(1 - beta), process)


def posterior_mean(noising: Schedule, x0: float, x: np.ndarray) -> np.ndarray:
    """The mean of q(x_{t-1} | x_t, x_0) for each t, with one x_t each."""
    start = torch.full((len(x),), x0, dtype=torch.float64)
    found: np.ndarray = noising.process.posterior(
        torch.as_tensor(x), start, noising.times
    ).mean.numpy()
    return found


class Backward(NamedTuple):
    """Mean, variance and entropy of x_{t-1} given x_t."""

    mean: float
    variance: float
    entropy: float


def backward(
    mean: float, variance: float, beta: float, x: float, *, points: int = 4_001
) -> Backward:
    """Bayes' rule for x_{t-1} ~ N(mean, variance) and x_t = √(1-β) x_{t-1} + √β ε, on a grid.

    The trapezium rule is exact to rounding for a smooth density that has died out at the ends.
    """
    width = 12 * variance**0.5  # where the prior lives
    peak, reach = x / (1 - beta) ** 0.5, 12 * (beta / (1 - beta)) ** 0.5  # and the likelihood
    low, high = max(mean - width, peak - reach), min(mean + width, peak + reach)
    grid = np.linspace(low, high, points)
    log = -((grid - mean) ** 2) / (2 * variance) - (x - (1 - beta) ** 0.5 * grid) ** 2 / (2 * beta)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    found = float(weight @ grid)
    density = weight / (grid[1] - grid[0])
    entropy = -float(weight[weight > 0] @ np.log(density[weight > 0]))
    return Backward(found, float(weight @ (grid - found) ** 2), entropy)


def draw_errors(paper: "Figure", finding: Finding, *, printed: str, right: str) -> "Axes":
    """Errors of two formulas for the backward mean over t; ``data`` has exact, printed, right."""
    from ansatz.figures.style import INK, LINEAR, MODEL

    axes, data = paper.subplots(), finding.data
    miss = data["printed"] - data["exact"]
    axes.plot(data["t"], miss, "x--", color=LINEAR, lw=1, label=printed)
    axes.plot(data["t"], data["right"] - data["exact"], "o", color=MODEL, label=right)
    axes.axhline(0, color=INK, lw=0.7, label="Bayes' rule, by quadrature")
    axes.set(xlabel="step t of the noising", ylabel="mean of the step before, error")
    axes.locator_params(axis="x", integer=True)
    return axes
