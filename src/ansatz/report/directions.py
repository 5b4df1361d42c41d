"""How far outcomes that are directions lie from the predicted ones."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ansatz.figures.section import Figure, Section, Table
from ansatz.figures.style import LINEAR, MODEL, figure, to_svg
from ansatz.likelihoods import Distribution
from ansatz.report.effect import Effect, cluster_sums, ratio
from ansatz.report.evidence import Evidence
from ansatz.report.verdict import effect_row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = NDArray[np.float64]


class AngularErrors(NamedTuple):
    """Errors of predicted directions.

    Args:
        error: ``(N,)``, from the predicted mean direction to the outcome, in (-pi, pi].
        bias: their mean direction, 0 for the right likelihood.
        concentration: observed over expected mean cosine, 1 for the right likelihood; below 1 the
            likelihood is too sure.
    """

    error: Numbers
    bias: Effect
    concentration: Effect


def angular_errors(
    distribution: Distribution,
    y: Tensor,
    *,
    weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> AngularErrors:
    r"""Bias and concentration of errors, with 95 % intervals.

    With e the angle from the mean direction, the bias is the angle of the mean of (cos e, sin e),
    and the expected cosine of each row is 1 minus its circular variance.

    Args:
        distribution: a circular likelihood per row.
        y: ``(N,)`` radians.
        weight: ``(N,)`` frequency weights.
        group: ``(N,)``, rows that may depend on each other.

    References:
        Mardia and Jupp (2000), Directional Statistics, chapter 5.
    """
    with torch.no_grad():
        gap = (y.double() - distribution.mean.double()).numpy()
        expected = (1 - distribution.variance).double().numpy()
    error = gap - 2 * np.pi * np.round(gap / (2 * np.pi))
    w = np.ones(len(error)) if weight is None else np.asarray(weight, dtype=np.float64)
    cosine, sine = (float(np.average(f(error), weights=w)) for f in (np.cos, np.sin))
    angle = math.atan2(sine, cosine)
    length = math.hypot(cosine, sine)
    off = np.sin(error - angle)  # of mean 0
    spread = (w * off**2).sum() if group is None else (cluster_sums(w * off, group) ** 2).sum()
    reach = 1.96 * math.sqrt(float(spread)) / (w.sum() * max(length, 1e-12))
    bias = Effect("bias, radians", angle, angle - reach, angle + reach, 0.0)
    name = "mean cosine of errors, observed / expected"
    return AngularErrors(error, bias, ratio(name, np.cos(error), expected, weight=w, group=group))


def draw_errors(axes: "Axes", found: AngularErrors, density: tuple[Numbers, Numbers]) -> None:
    """The histogram of errors and the mean of the predicted densities.

    Args:
        axes: of matplotlib.
        found: the errors.
        density: angles and the mean predicted density there.
    """
    edges = np.linspace(-np.pi, np.pi, int(np.clip(len(found.error) // 12, 9, 37)))
    heights, _ = np.histogram(found.error, edges, density=True)
    axes.stairs(heights, edges, color=MODEL, fill=True, alpha=0.45, label="errors")
    axes.plot(*density, color=LINEAR, label="predicted")
    axes.set_xlim(-np.pi, np.pi)
    axes.set_xticks([-np.pi, -np.pi / 2, 0, np.pi / 2, np.pi], ["−π", "−π/2", "0", "π/2", "π"])
    axes.set_xlabel("outcome − predicted mean direction")
    axes.set_ylabel("density")
    axes.legend(loc="upper right")


def section(evidence: Evidence) -> Section | None:
    """Errors of directions; None for other outcomes."""
    likelihood = evidence.distribution
    if likelihood is None or not getattr(likelihood, "circular", False) or evidence.value.ndim > 1:
        return None
    weight = evidence.weight.numpy()
    found = angular_errors(likelihood, evidence.value, weight=weight, group=evidence.group)
    with figure(5.2, 2.6) as paper:
        draw_errors(paper.subplots(), found, _mean_density(likelihood, weight))
        svg = to_svg(paper)
    size = float(np.average(np.abs(found.error), weights=weight))
    bias, sure = found.bias, found.concentration
    lead = (
        f"Outcomes lie {size:.2f} radians from the predicted direction on average; the mean cosine "
        f"of the errors is {sure.value:.2f} ({sure.low:.2f} to {sure.high:.2f}) of what the likelihoods "
        "say, and below 1 they are too sure."
    )
    caption = (
        "Angles between outcomes and predicted mean directions, and the mean of the predicted "
        "densities, which should run along the histogram."
    )
    head = ["", "estimate", "95 % interval", "right likelihood", "p"]
    rows = [effect_row(bias), effect_row(sure)]
    return Section("Errors of direction", lead, [Figure(svg, caption, lead), Table(head, rows, "")])


def _mean_density(distribution: Distribution, weight: Numbers) -> tuple[Numbers, Numbers]:
    angle = torch.linspace(-math.pi, math.pi, 121, dtype=torch.float64)
    with torch.no_grad():
        heights = (
            distribution.log_prob(distribution.mean + angle.unsqueeze(1)).exp().double().numpy()
        )  # (121, N)
    return angle.numpy(), np.average(heights, axis=1, weights=weight)
