"""Draws one figure per likelihood: python docs/figures/likelihoods.py [NAME ...].

Every curve is computed by the likelihood that it shows, with parameters as the likelihood names
them.
"""

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from matplotlib.ticker import MaxNLocator
from style import BLUE, COLOURS, GREEN, GREY, ORANGE, STYLE, VIOLET, axes, save
from torch import Tensor

from ansatz import likelihoods
from ansatz.likelihoods.special.general_loss import shaped_loss
from ansatz.spec import TargetSpec

IMAGES = Path(__file__).parents[1] / "images" / "likelihoods"
Curve = tuple[str, Any]  # what the legend says, and the distribution


def number(value: float) -> Tensor:
    """A parameter in double precision."""
    return torch.tensor(float(value), dtype=torch.float64)


def logit(p: float) -> Tensor:
    """The log odds of p."""
    return number(math.log(p / (1 - p)))


def minus(text: str) -> str:
    """With the sign for minus that the axes have."""
    return text.replace("-", "−")


def densities(
    low: float, high: float, curves: Sequence[Curve], top: float = math.inf, **legend: Any
) -> Figure:
    """Densities over a common axis; ``top`` cuts off one that has no bound."""
    figure, ax = axes()
    first = low + 1e-3 * (high - low) if low == 0 else low  # at 0 itself some densities are 0
    y = torch.linspace(first, high, 181, dtype=torch.float64)
    for (label, likelihood), colour in zip(curves, COLOURS, strict=False):
        density = likelihood.log_prob(y).exp().numpy()
        density = np.where(density > 1.5 * top, np.nan, density)
        ax.plot(y, density, color=colour, label=minus(label))
        ax.fill_between(y, density, color=colour, alpha=0.08, linewidth=0)
    ax.set_ylim(0, min(top, ax.get_ylim()[1]))
    ax.set_xlim(round(low), round(high))
    ax.legend(**{"loc": "upper right", **legend})
    return figure


def probabilities(high: int, curves: Sequence[Curve], **legend: Any) -> Figure:
    """Probabilities of whole numbers, as bars side by side."""
    figure, ax = axes(y="probability")
    y = torch.arange(0.0, high + 1, dtype=torch.float64)
    width = 0.8 / len(curves)
    for i, ((label, likelihood), colour) in enumerate(zip(curves, COLOURS, strict=False)):
        place = y.numpy() + (i - (len(curves) - 1) / 2) * width
        ax.bar(place, likelihood.log_prob(y).exp(), 0.9 * width, color=colour, label=label)
    counts_axis(ax, high)
    ax.legend(**{"loc": "upper right", **legend})
    return figure


def counts_axis(ax: Axes, high: int) -> None:
    """Ticks at whole numbers."""
    ax.set_xlim(-0.8, high + 0.8)
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(4))


def atom(ax: Axes, place: float, height: float, colour: str) -> None:
    """A point that has a probability of its own."""
    ax.plot([place, place], [0, height], color=colour, linewidth=2.4, clip_on=False, zorder=3)
    ax.plot([place], [height], "o", color=colour, markersize=5, clip_on=False, zorder=3)


# Real numbers.


def normal() -> Figure:
    """Two means, two standard deviations."""
    pairs = [(0, 1), (0, 0.5), (1.5, 2)]
    made = [likelihoods.NormalDistribution(number(m), number(s)) for m, s in pairs]
    labels = [f"μ = {m}, σ = {s}" for m, s in pairs]
    return densities(-5, 6, list(zip(labels, made, strict=True)))


def laplace() -> Figure:
    """The peak, beside the normal distribution with the same standard deviation."""
    made = [
        (f"b = {b}", likelihoods.LaplaceDistribution(number(0), number(b))) for b in (0.5, 1, 2)
    ]
    return densities(-6, 6, made)


def student_t() -> Figure:
    """The heavier the tails, the lower the shoulders."""
    made = [
        (f"ν = {nu}", likelihoods.StudentTDistribution(number(0), number(1), number(nu)))
        for nu in (1, 3, 10)
    ]
    made.append(("ν → ∞: normal", likelihoods.NormalDistribution(number(0), number(1))))
    return densities(-6, 6, made)


def normal_mixture() -> Figure:
    """A mixture with its components."""
    figure, ax = axes()
    weights, means, sds = [0.35, 0.45, 0.2], [-2.0, 1.0, 4.0], [0.7, 0.9, 0.6]
    y = torch.linspace(-5, 6.5, 181, dtype=torch.float64)
    given = [torch.tensor(v, dtype=torch.float64) for v in (weights, means, sds)]
    distribution = likelihoods.NormalMixtureDistribution(given[0].log(), given[1], given[2])
    for w, m, s, colour in zip(weights, means, sds, COLOURS[1:], strict=True):
        part = w * likelihoods.NormalDistribution(number(m), number(s)).log_prob(y).exp()
        ax.fill_between(y, part, color=colour, alpha=0.25, linewidth=0)
        ax.plot(y, part, color=colour, linewidth=0.9, label=minus(f"π = {w}, μ = {m:g}, σ = {s}"))
    ax.plot(y, distribution.log_prob(y).exp(), color=BLUE, linewidth=2, label="their sum")
    ax.set_ylim(0, 0.285)
    ax.legend(loc="upper right", ncols=2, columnspacing=1.2)
    return figure


def barron() -> Figure:
    """Loss and density from squared error to Cauchy's."""
    figure, (left, right) = plt.subplots(1, 2)
    x = torch.linspace(-5, 5, 241, dtype=torch.float64)
    shapes = {2.0: "α = 2", 1.0: "α = 1", 0.0: "α = 0", -2.0: "α = −2"}
    for (alpha, label), colour in zip(shapes.items(), COLOURS, strict=True):
        shape = number(alpha).expand_as(x)
        loss = shaped_loss(x**2, shape, 2 - shape)
        left.plot(x, loss, color=colour, label=label)
        if alpha >= 0:
            distribution = likelihoods.BarronDistribution(
                number(0), number(1), number(max(alpha, 1e-6))
            )
            right.plot(x, distribution.log_prob(x).exp(), color=colour)
    left.set_ylim(0, 6)
    for ax, title in ((left, "loss ρ"), (right, "density, α ≥ 0")):
        ax.spines["left"].set_visible(False)
        ax.set_yticks([])
        ax.set_xlabel("(y − f) / c")
        ax.set_xticks([-4, 0, 4])
        ax.set_title(title, fontsize=8.5)
    right.set_ylim(bottom=0)
    left.legend(loc="upper center")
    return figure


def quantiles() -> Figure:
    """A fan over x: every predicted quantile, and nothing between them."""
    figure, ax = axes("x", "y")
    likelihood = likelihoods.Quantiles()
    x = torch.linspace(0, 10, 121, dtype=torch.float64)
    curves = likelihood.quantiles(_fan(x)).T
    for i, alpha in ((0, 0.14), (1, 0.26)):
        ax.fill_between(x, curves[i], curves[-1 - i], color=BLUE, alpha=alpha, linewidth=0)
    for curve, level in zip(curves, likelihood.levels, strict=True):
        ax.plot(x, curve, color=BLUE, linewidth=2 if level == 0.5 else 0.8)
        ax.annotate(f"{level:g}", (10, curve[-1]), (5, -3), textcoords="offset points", color=BLUE)
    rng = np.random.default_rng(0)
    at = rng.uniform(0, 10, 120)
    knots = likelihood.quantiles(_fan(torch.from_numpy(at))).numpy()
    knots = np.column_stack(
        [1.5 * knots[:, 0] - knots[:, 1] / 2, knots, 2 * knots[:, -1] - knots[:, -2]]
    )
    levels = (0, *likelihood.levels, 1)
    seen = [np.interp(rng.uniform(), levels, row) for row in knots]
    ax.plot(at, seen, ".", color=ORANGE, markersize=2.5)
    ax.set_xlim(0, 10.9)
    return figure


def _fan(x: Tensor) -> Tensor:
    """Raw numbers whose quantiles swing and move apart with x, upwards more than downwards."""
    spread = 0.25 + 0.09 * x
    steps = [inverse(factor * spread) for factor in (0.8, 1.5, 0.55, 0.75)]
    return torch.stack([2 + 1.5 * torch.sin(0.7 * x), *steps], -1)


def inverse(step: Tensor) -> Tensor:
    """The raw number whose softplus is the step."""
    return torch.expm1(step).log()


# Positive numbers.


def exponential() -> Figure:
    """Three means."""
    made = [(f"μ = {m}", likelihoods.ExponentialDistribution(number(m).log())) for m in (0.5, 1, 2)]
    return densities(0, 5, made)


def gamma() -> Figure:
    """One mean, four dispersions."""
    made = [
        (f"μ = 2, φ = {phi}", likelihoods.GammaDistribution(number(2).log(), number(phi)))
        for phi in (0.05, 0.25, 0.5, 1.5)
    ]
    return densities(0, 6, made, top=1.0)


def log_normal() -> Figure:
    """One median, three standard deviations of the logarithm."""
    made = [
        (f"μ = log 2, σ = {s}", likelihoods.LogNormalDistribution(number(2).log(), number(s)))
        for s in (0.2, 0.5, 1)
    ]
    return densities(0, 7, made)


def weibull() -> Figure:
    """From falling to steeply rising hazards."""
    made = [
        (f"λ = 2, σ = {s}", likelihoods.WeibullDistribution(number(2).log(), number(s)))
        for s in (0.25, 0.5, 1, 1.5)
    ]
    return densities(0, 6, made, top=0.9)


def inverse_gaussian() -> Figure:
    """One mean, three dispersions."""
    made = [
        (f"μ = 2, φ = {phi}", likelihoods.InverseGaussianDistribution(number(2).log(), number(phi)))
        for phi in (0.02, 0.15, 1)
    ]
    return densities(0, 6, made)


def tweedie() -> Figure:
    """A density and the probability of exactly 0."""
    figure, ax = axes()
    y = torch.linspace(0.01, 8, 181, dtype=torch.float64)
    zero = torch.zeros((), dtype=torch.float64)
    settings = [(1, 2), (2, 1.5), (4, 1)]
    for i, ((mean, phi), colour) in enumerate(zip(settings, COLOURS, strict=False)):
        distribution = likelihoods.TweedieDistribution(number(mean).log(), number(phi), number(1.5))
        density = distribution.log_prob(y).exp()
        none = float(distribution.log_prob(zero).exp())
        ax.plot(y, density, color=colour, label=f"μ = {mean}, φ = {phi}: P(0) = {none:.2f}")
        ax.fill_between(y, density, color=colour, alpha=0.08, linewidth=0)
        atom(ax, -0.12 * i, none, colour)  # side by side, all at 0
    ax.set_xlim(-0.35, 8)
    ax.set_ylim(0, 0.5)
    ax.legend(loc="upper right", title="p = 1.5")
    return figure


def generalized_pareto() -> Figure:
    """A bounded, a light and two heavy tails, on a logarithmic scale."""
    figure, ax = axes("excess y", "density")
    y = torch.linspace(0, 12, 181, dtype=torch.float64)
    for xi, colour in zip((-0.25, 0, 0.3, 0.8), COLOURS, strict=True):
        distribution = likelihoods.GeneralizedParetoDistribution(number(0), number(xi))
        ax.plot(y, distribution.log_prob(y).exp(), color=colour, label=minus(f"σ = 1, ξ = {xi}"))
    ax.set_yscale("log")
    ax.set_ylim(1e-4, 1.5)
    ax.minorticks_off()
    ax.legend(loc="upper right")
    return figure


# Shares.


def beta() -> Figure:
    """From a U to a peak."""
    made = [
        (f"μ = {m}, φ = {phi:g}", likelihoods.BetaDistribution(logit(m), number(1 / phi)))
        for m, phi in ((0.5, 1), (0.3, 4), (0.3, 20), (0.8, 20))
    ]
    return densities(0.002, 0.998, made, top=6.4, loc="upper center", ncols=2)


def zero_one_inflated_beta() -> Figure:
    """A beta density between two points of their own."""
    figure, ax = axes()
    y = torch.linspace(0.002, 0.998, 181, dtype=torch.float64)
    ends = torch.tensor([0.0, 1.0], dtype=torch.float64)
    settings = [(0.4, 8, 0.25, 0.1), (0.7, 3, 0.05, 0.4)]
    for (m, phi, none, all_), colour, shift in zip(settings, COLOURS, (-1, 1), strict=False):
        odds = torch.tensor([none, all_], dtype=torch.float64) / (1 - none - all_)
        distribution = likelihoods.ZeroOneInflatedBetaDistribution(
            likelihoods.BetaDistribution(logit(m), number(1 / phi)), odds.log()
        )
        density = distribution.log_prob(y).exp()
        label = f"μ = {m}, φ = {phi}, π₀ = {none}, π₁ = {all_}"
        ax.plot(y, density, color=colour, label=label)
        ax.fill_between(y, density, color=colour, alpha=0.08, linewidth=0)
        for place, height in zip(
            ends.tolist(), distribution.log_prob(ends).exp().tolist(), strict=True
        ):
            atom(ax, place + 0.008 * shift, height, colour)
    ax.set_ylim(0, 2.1)
    ax.legend(loc="upper center")
    return figure


def dirichlet() -> Figure:
    """One mean of three shares, two concentrations, on the triangle of all compositions."""
    figure, frames = plt.subplots(1, 2)
    corners = np.array([[0, 0], [1, 0], [0.5, math.sqrt(3) / 2]])
    steps = 48
    parts = np.array(
        [(i, j, steps - i - j) for i in range(steps + 1) for j in range(steps + 1 - i)], dtype=float
    )
    parts = (parts + 0.1) / (steps + 0.3)  # a little inside
    means = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    shades = [(*matplotlib.colors.to_rgb(BLUE), alpha) for alpha in np.linspace(0.1, 0.95, 8)]
    for ax, phi in zip(frames, (6, 25), strict=True):
        distribution = likelihoods.DirichletDistribution(
            means.log().expand(len(parts), -1), number(1 / phi)
        )
        density = distribution.log_prob(torch.from_numpy(parts)).exp().numpy()
        levels = np.linspace(0.03, 1, 9) * density.max()
        ax.tricontourf(*(parts @ corners).T, density, levels=levels, colors=shades)
        ax.fill(*corners.T, fill=False, edgecolor=GREY, linewidth=0.8)
        for name, corner, shift in zip("₁₂₃", corners, ((-12, -5), (4, -5), (-4, 4)), strict=True):
            ax.annotate(f"y{name}", corner, shift, textcoords="offset points")
        ax.plot(*(means.numpy() @ corners), "+", color=ORANGE, markersize=7)
        ax.text(0.5, -0.16, f"μ = (0.5, 0.3, 0.2), φ = {phi}", ha="center")
        ax.set_aspect("equal")
        ax.axis("off")
    return figure


# Directions and vectors.


def von_mises() -> Figure:
    """Densities standing on the circle."""
    figure = plt.figure(layout="none")
    ax = figure.add_axes((0.0, 0.0, 0.62, 1.0), projection="polar")
    angle = torch.linspace(0, 2 * math.pi, 241, dtype=torch.float64)
    ground = np.ones(len(angle))
    ax.plot(angle, ground, color=GREY, linewidth=0.7)
    for (mean, kappa), colour in zip([(0.0, 0.5), (2.1, 2), (4.2, 10)], COLOURS, strict=False):
        a, b = number(kappa * math.cos(mean)), number(kappa * math.sin(mean))
        distribution = likelihoods.VonMisesDistribution(a, b)
        reach = 1 + distribution.log_prob(angle).exp().numpy()
        label = minus(f"κ = {kappa}\na = {float(a):.2g}, b = {float(b):.2g}")
        ax.plot(angle, reach, color=colour, label=label)
        ax.fill_between(angle, ground, reach, color=colour, alpha=0.1, linewidth=0)
    ax.spines["polar"].set_visible(False)
    ax.grid(False)
    ax.set_rticks([])
    ax.set_rlim(0, 2.4)
    ax.set_xticks([])
    for place, label in ((0, "0"), (0.5, "π/2"), (1, "π"), (1.5, "3π/2")):
        ax.text(place * math.pi, 0.72, label, ha="center", va="center", fontsize=8)
    figure.legend(*ax.get_legend_handles_labels(), loc="center right", labelspacing=1)
    return figure


def multivariate_normal() -> Figure:
    """Ellipses that hold 50 and 90 % of the probability."""
    figure, ax = axes("y₁", "y₂")
    settings = [((-2, 0), (1, 1), 0.0), ((1.2, 1), (1, 0.6), 0.8), ((4, -0.5), (0.6, 1), -0.5)]
    for (mean, sds, slope), colour in zip(settings, COLOURS, strict=False):
        B = torch.tensor([[0.0, 0.0], [slope, 0.0]], dtype=torch.float64)
        distribution = likelihoods.MultivariateNormalDistribution(
            torch.tensor(mean, dtype=torch.float64), torch.tensor(sds, dtype=torch.float64), B
        )
        values, vectors = torch.linalg.eigh(distribution.covariance)
        tilt = math.degrees(math.atan2(vectors[1, 1], vectors[0, 1]))
        for level, alpha in ((0.5, 0.25), (0.9, 0.12)):
            reach = math.sqrt(-2 * math.log(1 - level))  # the chi-square quantile, 2 degrees
            width, height = (2 * reach * values.sqrt()).flip(0).tolist()
            ax.add_patch(Ellipse(mean, width, height, angle=tilt, fc=colour, alpha=alpha, lw=0))
            ax.add_patch(Ellipse(mean, width, height, angle=tilt, fc="none", ec=colour, lw=1.2))
        label = minus(f"σ = ({sds[0]:g}, {sds[1]:g}), b₂₁ = {slope:g}")
        ax.plot([], [], color=colour, label=label)
    ax.set_xlim(-5, 7.5)
    ax.set_ylim(-3.4, 6)
    ax.set_aspect("equal")
    ax.legend(loc="upper left")
    return figure


# Classes.


def bernoulli() -> Figure:
    """The probability of 1 over its log odds."""
    figure, ax = axes("η = raw[0], the log odds", "probability")
    eta = torch.linspace(-6, 6, 181, dtype=torch.float64)
    one = likelihoods.Bernoulli().distribution(eta.unsqueeze(-1)).mean
    ax.fill_between(eta, one, color=BLUE, alpha=0.9, linewidth=0)
    ax.fill_between(eta, one, 1, color=ORANGE, alpha=0.9, linewidth=0)
    ax.text(3, 0.4, "y = 1", ha="center", color="white", weight="bold")
    ax.text(-3, 0.55, "y = 0", ha="center", color="white", weight="bold")
    ax.set_xlim(-6, 6)
    ax.set_ylim(0, 1)
    return figure


def categorical() -> Figure:
    """Three logits that depend on x differently."""
    x = torch.linspace(-4, 4, 181, dtype=torch.float64)
    raw = torch.stack([-1.6 * x, 0.8 + 0 * x, 1.2 * x - 1], -1)
    return _stacked(x, likelihoods.Categorical().probs(raw), "x;  η = (−1.6 x,  0.8,  1.2 x − 1)")


def ordinal() -> Figure:
    """Cumulative logits: the thresholds cut one axis."""
    likelihood = likelihoods.Ordinal()
    likelihood.outputs(TargetSpec(classes=4))
    cuts = torch.tensor([-2.0, 0.0, 2.5], dtype=torch.float64)
    likelihood._set(cuts)
    eta = torch.linspace(-6, 6, 181, dtype=torch.float64)
    with torch.no_grad():
        figure = _stacked(eta, likelihood.probs(eta.unsqueeze(-1)), "η = raw[0]")
    ax = figure.axes[0]
    ax.set_xticks(cuts.tolist(), ["θ₀", "θ₁", "θ₂"])
    return figure


def _stacked(x: Tensor, probs: Tensor, name: str) -> Figure:
    figure, ax = axes(name, "probability")
    edges = np.concatenate([np.zeros((len(x), 1)), probs.cumsum(-1).numpy()], 1)
    for k in range(probs.shape[-1]):
        low, high = edges[:, k], edges[:, k + 1]
        ax.fill_between(x, low, high, color=COLOURS[k], alpha=0.9, linewidth=0)
        widest = int(np.argmax(np.where((x.abs() < 0.85 * x.max()).numpy(), high - low, 0)))
        middle = (low[widest] + high[widest]) / 2
        ax.text(x[widest], middle, f"{k}", ha="center", va="center", color="white", weight="bold")
    ax.set_xlim(float(x[0]), float(x[-1]))
    ax.set_ylim(0, 1)
    return figure


# Counts.


def poisson() -> Figure:
    """Three means."""
    made = [(f"μ = {m}", likelihoods.PoissonDistribution(number(m).log())) for m in (1, 4, 9)]
    return probabilities(17, made)


def negative_binomial() -> Figure:
    """One mean, three dispersions."""
    made = [("μ = 5, α → 0: poisson", likelihoods.PoissonDistribution(number(5).log()))]
    made += [
        (f"μ = 5, α = {a}", likelihoods.NegativeBinomialDistribution(number(5).log(), number(a)))
        for a in (0.3, 1)
    ]
    return probabilities(17, made)


def binomial() -> Figure:
    """Successes of ten trials."""
    likelihood = likelihoods.Binomial()
    trials = torch.tensor(10.0, dtype=torch.float64)
    made = [
        (f"n = 10, p = {p}", likelihood.distribution(logit(p).reshape(1), trials))
        for p in (0.1, 0.5, 0.8)
    ]
    return probabilities(10, made, loc="upper center")


def beta_binomial() -> Figure:
    """The same mean with ever less agreement among the trials."""
    made = [
        (
            f"n = 10, μ = 0.4, 1/φ = {d}",
            likelihoods.BetaBinomialDistribution(logit(0.4), number(d), number(10)),
        )
        for d in (0.01, 0.2, 1.5)
    ]
    return probabilities(10, made)


def _with_zeros(counts: Any, share: float, labels: tuple[str, str], top: float) -> Figure:
    """Counts, and above their own zeros those of another cause."""
    figure, ax = axes(y="probability")
    y = torch.arange(0.0, 16, dtype=torch.float64)
    bars = ((1 - share) * counts.log_prob(y).exp()).numpy()
    ax.bar(y, bars, 0.72, color=BLUE, label=labels[0])
    ax.bar([0], [share], 0.72, bottom=bars[:1], color=ORANGE, label=labels[1])
    counts_axis(ax, 15)
    ax.set_ylim(0, top)
    ax.legend(loc="upper right")
    return figure


def zero_inflated_poisson() -> Figure:
    """The zeros that are not counts."""
    counts = likelihoods.PoissonDistribution(number(4).log())
    return _with_zeros(counts, 0.3, ("(1 − π) Poisson, μ = 4", "π = 0.3"), 0.36)


def zero_inflated_negative_binomial() -> Figure:
    """The same with overdispersed counts."""
    counts = likelihoods.NegativeBinomialDistribution(number(5).log(), number(0.5))
    labels = ("(1 − π) negative binomial, μ = 5, α = 0.5", "π = 0.25")
    return _with_zeros(counts, 0.25, labels, 0.36)


def hurdle_poisson() -> Figure:
    """More zeros, and fewer, than a Poisson distribution would have."""
    figure, ax = axes(y="probability")
    y = torch.arange(0.0, 12, dtype=torch.float64)
    for (rate, share), colour, shift in zip([(3, 0.6), (3, 0.99)], COLOURS, (-1, 1), strict=False):
        distribution = likelihoods.HurdlePoissonDistribution(number(rate).log(), logit(share))
        bars = distribution.log_prob(y).exp()
        label = f"r = {rate}, p = {share}"
        ax.bar(y + 0.2 * shift, bars, 0.36, color=colour, label=label)
    plain = likelihoods.PoissonDistribution(number(3).log())
    ax.plot(y, plain.log_prob(y).exp(), "_", color=GREY, markersize=12, label="poisson, μ = 3")
    counts_axis(ax, 11)
    ax.legend(loc="upper right")
    return figure


def hurdle_negative_binomial() -> Figure:
    """The same odds of a zero with two dispersions of the positive counts."""
    figure, ax = axes(y="probability")
    y = torch.arange(0.0, 16, dtype=torch.float64)
    for alpha, colour, shift in zip((0.05, 1.0), COLOURS, (-1, 1), strict=False):
        distribution = likelihoods.HurdleNegativeBinomialDistribution(
            number(5).log(), number(alpha), logit(0.75)
        )
        label = f"μ = 5, α = {alpha:g}, p = 0.75"
        ax.bar(y + 0.2 * shift, distribution.log_prob(y).exp(), 0.36, color=colour, label=label)
    counts_axis(ax, 15)
    ax.legend(loc="upper right")
    return figure


# Rankings and times.


def plackett_luce() -> Figure:
    """Chances of the first place, and expected ranks."""
    worth = torch.tensor([8.0, 4.0, 2.0, 1.0, 1.0], dtype=torch.float64)
    distribution = likelihoods.RankingDistribution(worth.log())
    names = [f"worth {w:g}" for w in worth.tolist()]
    figure, (left, right) = plt.subplots(1, 2, sharey=True)
    rows = np.arange(len(names))[::-1]
    left.barh(rows, distribution.probs, 0.62, color=BLUE)
    right.plot(distribution.ranks, rows, "o", color=ORANGE, markersize=6)
    for ax, title in ((left, "P(first)"), (right, "expected rank")):
        ax.set_title(title, fontsize=8.5)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
    for row, chance, rank in zip(
        rows, distribution.probs.tolist(), distribution.ranks.tolist(), strict=True
    ):
        left.text(chance + 0.01, row, f"{chance:.2f}", va="center")
        right.text(rank + 0.15, row, f"{rank:.1f}", va="center")
    left.set_yticks(rows, names)
    left.set_xlim(0, 0.6)
    left.set_xticks([0, 0.25, 0.5])
    right.set_xlim(1, 5)
    right.set_xticks([1, 2, 3, 4, 5])
    return figure


def _times() -> tuple[Tensor, Tensor]:
    """200 survival times with a hump in their hazard, and log-risks of 0."""
    generator = torch.Generator().manual_seed(0)
    distribution = likelihoods.LogNormalDistribution(number(1.2), number(0.7))
    time = distribution.sample((200,), generator)
    event = torch.rand(200, generator=generator, dtype=torch.float64) < 0.85
    return likelihoods.survival_outcome(time, event.double()), torch.zeros(
        200, 1, dtype=torch.float64
    )


def cox() -> Figure:
    """One baseline; risks that stand in a constant ratio."""
    y, raw = _times()
    likelihood = likelihoods.Cox().double()
    likelihood.set_baseline(raw.squeeze(-1), y)
    figure, ax = axes("time", "survival")
    t = np.linspace(0, 10, 400)
    for risk, colour in zip((-1.0, 0.0, 1.0), COLOURS, strict=False):
        curve = likelihood.distribution(torch.tensor([risk], dtype=torch.float64))
        alive = curve.log_survival(torch.from_numpy(t)).exp()
        label = minus(f"η = {risk:g}: hazard × {math.exp(risk):.2g}")
        ax.step(t, alive, where="post", color=colour, linewidth=1.4, label=label)
    _survival_axis(ax)
    return figure


def discrete_hazard() -> Figure:
    """A free hazard per interval: curves may cross."""
    y, _ = _times()
    likelihood = likelihoods.DiscreteHazard(intervals=8).double()
    likelihood.observe(y, torch.ones(len(y), dtype=torch.float64))
    shift, _ = likelihood.start(y, torch.ones(len(y), dtype=torch.float64))
    figure, ax = axes("time", "survival")
    t = torch.linspace(0, 10, 181, dtype=torch.float64)
    tilt = torch.linspace(2.0, -2.0, len(shift), dtype=torch.float64)
    cases = [("as all rows", 0.0), ("early hazard up, late down", 1.0), ("the reverse", -1.0)]
    for (label, slope), colour in zip(cases, COLOURS, strict=False):
        alive = likelihood.distribution((shift + slope * tilt).detach()).log_survival(t).exp()
        ax.plot(t, alive.detach(), color=colour, label=label)
    _survival_axis(ax)
    cuts = [cut for cut in likelihood.cuts.tolist() if cut < 10]
    ax.plot(cuts, [0.03] * len(cuts), "|", color=GREY, markersize=8)
    ax.text(cuts[0], 0.065, "cuts", ha="center", fontsize=7.5)
    return figure


def _survival_axis(ax: Axes) -> None:
    ax.set_xlim(0, 10)
    ax.set_ylim(0, 1)
    ax.set_yticks([0, 0.5, 1])
    ax.legend(loc="upper right")


# Losses and wrappers.


def losses() -> Figure:
    """What a residual costs, and where it stops to matter."""
    x, raw = _residuals()
    made = {
        "mse / 2": likelihoods.MSE().loss(raw, x) / 2,
        "mae": likelihoods.MAE().loss(raw, x),
        "huber": likelihoods.Huber().loss(raw, x),
        "tukey": likelihoods.Tukey(scale=1.0).loss(raw, x),
    }
    return _losses(x, made, 7)


def robust_losses() -> Figure:
    """The shapes of Barron's loss that have a name: equal near 0, and ever flatter far from it."""
    x, raw = _residuals()
    names = ("charbonnier", "cauchy", "geman_mcclure", "welsch")
    made = {name: likelihoods.create(name, scale=1.0).loss(raw, x) for name in names}
    return _losses(x, made, 6)


def _residuals() -> tuple[Tensor, Tensor]:
    """Residuals, and raw numbers that predict 0."""
    x = torch.linspace(-6, 6, 241, dtype=torch.float64)
    return x, torch.zeros(len(x), 1, dtype=torch.float64)


def _losses(x: Tensor, made: dict[str, Tensor], top: float) -> Figure:
    figure, ax = axes("y − f, in units of s", "loss")
    for (label, loss), colour in zip(made.items(), COLOURS, strict=True):
        ax.plot(x, loss, color=colour, label=label)
    ax.set_ylim(0, top)
    ax.set_xlim(-6, 6)
    ax.legend(loc="upper center", ncols=2)
    return figure


def class_losses() -> Figure:
    """The cost of the probability that was given to the class that came."""
    figure, ax = axes("probability of the observed class", "loss")
    p = torch.linspace(0.01, 0.995, 241, dtype=torch.float64)
    raw = torch.logit(p).unsqueeze(-1)
    one = torch.ones(len(p), dtype=torch.long)
    for g, colour in zip((0.0, 1.0, 2.0), COLOURS, strict=False):
        label = "cross_entropy" if g == 0 else f"focal, γ = {g:g}"
        ax.plot(p, likelihoods.Focal(gamma=g).loss(raw, one), color=colour, label=label)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 4)
    ax.yaxis.set_major_locator(MaxNLocator(4))
    ax.legend(loc="upper right")
    return figure


def censored() -> Figure:
    """What an observed and three censored rows contribute."""
    figure, ax = axes("time")
    distribution = likelihoods.WeibullDistribution(number(4).log(), number(0.5))
    y = torch.linspace(0, 10, 181, dtype=torch.float64)
    density = distribution.log_prob(y).exp()
    ax.plot(y, density, color=GREY, linewidth=1.2)
    areas = [
        (0, 1.5, GREEN, "left: F(u)"),
        (2.6, 4.2, VIOLET, "interval: F(u) − F(l)"),
        (6, 10, ORANGE, "right: S(l)"),
    ]
    at = number(5.1)
    atom(ax, 5.1, float(distribution.log_prob(at).exp()), BLUE)
    ax.plot([], [], "o-", color=BLUE, markersize=5, label="observed: f(y)")
    for low, high, colour, label in areas:
        inside = (y >= low) & (y <= high)
        ax.fill_between(
            y[inside], density[inside], color=colour, alpha=0.6, linewidth=0, label=label
        )
    ax.set_ylim(0, 0.25)
    ax.set_xlim(0, 10)
    ax.legend(loc="upper right")
    return figure


def truncated() -> Figure:
    """The part that is recorded, made whole."""
    inner = likelihoods.NormalDistribution(number(0), number(1))
    figure, ax = axes()
    y = torch.linspace(-3.5, 3.5, 181, dtype=torch.float64)
    likelihood = likelihoods.Truncated("normal", lower=-0.5, upper=2.0, options={"dispersion": 1.0})
    inside = (y > -0.5) & (y <= 2)
    shown = (
        likelihood.distribution(torch.zeros(1, 1, dtype=torch.float64)).log_prob(y[inside]).exp()
    )
    ax.plot(y, inner.log_prob(y).exp(), color=GREY, linewidth=1.2, label="normal, μ = 0, σ = 1")
    ax.plot(y[inside], shown, color=BLUE, label="truncated to −0.5 < y ≤ 2")
    ax.fill_between(y[inside], shown, color=BLUE, alpha=0.1, linewidth=0)
    ax.set_ylim(0, 0.78)
    ax.legend(loc="upper left")
    return figure


DRAWN: dict[str, Callable[[], Figure]] = {
    draw.__name__: draw
    for draw in (
        barron,
        bernoulli,
        beta,
        beta_binomial,
        binomial,
        categorical,
        censored,
        class_losses,
        cox,
        dirichlet,
        discrete_hazard,
        exponential,
        gamma,
        generalized_pareto,
        hurdle_negative_binomial,
        hurdle_poisson,
        inverse_gaussian,
        laplace,
        log_normal,
        losses,
        multivariate_normal,
        negative_binomial,
        normal,
        normal_mixture,
        ordinal,
        plackett_luce,
        poisson,
        quantiles,
        robust_losses,
        student_t,
        truncated,
        tweedie,
        von_mises,
        weibull,
        zero_inflated_negative_binomial,
        zero_inflated_poisson,
        zero_one_inflated_beta,
    )
}


def main(names: Sequence[str]) -> None:
    """Draws the named figures, all of them by default."""
    for name in names or DRAWN:
        with plt.rc_context(STYLE), torch.no_grad():
            figure = DRAWN[name]()
            save(figure, IMAGES / f"{name}.svg", name)
            plt.close(figure)


if __name__ == "__main__":
    main(sys.argv[1:])
