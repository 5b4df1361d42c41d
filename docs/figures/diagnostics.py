"""Draws the figures of docs/diagnostics.md: python docs/figures/diagnostics.py.

Each shows what a diagnostic looks like when the likelihood is right and when it is wrong in a known
way; the outcomes are simulated, the numbers and drawings are those of a report.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes

from ansatz.figures.style import INK, figure, to_svg
from ansatz.likelihoods import NormalDistribution, Poisson
from ansatz.outcomes.report.horizons import calibrate
from ansatz.outcomes.report.survival_calibration import draw_horizon
from ansatz.report.corp import reliability
from ansatz.report.interval_coverage import by_width, draw_coverage, intervals
from ansatz.report.pit import draw_pit, pit_histogram
from ansatz.report.quantile_residuals import draw_quantile_lines, draw_uniform_qq, quantile_lines
from ansatz.report.reliability import draw_reliability
from ansatz.report.residual_panels import draw_along, draw_normal_qq
from ansatz.report.residual_tests import quantile_residuals, uniform_envelope
from ansatz.report.transform import Transform, transform

IMAGES = Path(__file__).parents[1] / "images" / "diagnostics"
Panel = tuple[str, Callable[[Axes], None]]
GREY = "#7a8089"  # reads on white and on near-black; a page's own ink cannot reach into an image


def save(name: str, panels: Sequence[Panel], width: float = 1.75, height: float = 1.9) -> None:
    """Writes one row of small panels under their titles."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with figure(width * len(panels), height) as paper:
        for axes, (title, draw) in zip(
            paper.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
        ):
            draw(axes)
            axes.set_title(title)
        svg = to_svg(paper)
    svg = svg.replace("currentColor", GREY).replace(INK, GREY).replace(INK.lower(), GREY)
    svg = svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    (IMAGES / f"{name}.svg").write_text(svg + "\n", encoding="utf-8")


def normal_transform(mean: float, sd: float, rows: int = 2000, said: float = 1.0) -> Transform:
    """Outcomes N(mean, sd^2) on the scale of likelihoods N(0, said^2)."""
    y = mean + sd * torch.randn(rows, dtype=torch.float64)
    ones = torch.ones(rows, dtype=torch.float64)
    return transform(NormalDistribution(0 * ones, said * ones), y)


def draw_pit_panels() -> None:
    """Draws transforms: right, too narrow, too wide, biased."""
    cases = {
        "right": (0.0, 1.0),
        "too narrow": (0.0, 1.5),
        "too wide": (0.0, 0.65),
        "too low": (0.45, 1.0),
    }

    def panel(mean: float, sd: float) -> Callable[[Axes], None]:
        histogram = pit_histogram(normal_transform(mean, sd), bins=12)

        def draw(axes: Axes) -> None:
            draw_pit(axes, histogram)
            axes.set(xlabel="F(y)", ylabel="", ylim=(0, 2.4), xticks=[0, 0.5, 1])

        return draw

    save("pit", [(title, panel(*case)) for title, case in cases.items()])


def draw_coverage_panels() -> None:
    """Draws predicted standard deviations that vary more than those of the outcomes."""
    sd = torch.linspace(0.6, 1.6, 3000, dtype=torch.float64)
    distribution = NormalDistribution(torch.zeros_like(sd), sd)
    right = by_width(intervals(distribution, distribution.sample(), 0.9))
    wrong = by_width(intervals(distribution, 1.05 * torch.randn_like(sd), 0.9))

    def panel(found: list) -> Callable[[Axes], None]:  # type: ignore[type-arg]
        def draw(axes: Axes) -> None:
            draw_coverage(axes, [part._replace(label=part.label.split()[0]) for part in found])
            axes.set(xlabel="predicted spread, decile", ylabel="", ylim=(0.7, 1.0))

        return draw

    titles = ("right in every part", "right on average only")
    save("coverage", list(zip(titles, map(panel, (right, wrong)), strict=True)), width=3.0)


def counts(excess: float, rows: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Residuals of a Poisson distribution for counts whose variance is mu + excess mu^2."""
    mean = torch.exp(1.2 * torch.rand(rows, dtype=torch.float64) + 0.5)
    rate = mean
    if excess:
        shape = torch.full_like(mean, 1 / excess)
        rate = mean * torch._standard_gamma(shape) * excess
    found = transform(Poisson().distribution(mean.log().unsqueeze(1)), torch.poisson(rate))
    return quantile_residuals(found, repeats=1).uniform[0], mean.numpy()


def draw_residual_panels() -> None:
    """Draws residuals of the right likelihood and of overdispersed counts."""
    panels: list[Panel] = []
    for title, excess in (("right", 0.0), ("overdispersed", 0.5)):
        u, mean = counts(excess)

        def qq(axes: Axes, u: np.ndarray = u) -> None:
            draw_uniform_qq(axes, u, uniform_envelope(len(u)))

        def lines(axes: Axes, u: np.ndarray = u, mean: np.ndarray = mean) -> None:
            draw_quantile_lines(axes, u, mean, quantile_lines(u, mean))
            axes.set_ylabel("")

        panels += [(title, qq), (title, lines)]
    save("residuals", panels, width=2.0, height=2.1)


def draw_classic_panels() -> None:
    """Draws a bend that the model has missed, a growing scale, a heavy tail."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.random(400))

    def bend(axes: Axes) -> None:
        draw_along(axes, x, rng.normal(size=400) + 3 * (x - 0.5) ** 2 - 0.25)
        axes.set(xlabel="prediction", ylabel="residual")

    def fan(axes: Axes) -> None:
        z = rng.normal(size=400) * (0.5 + x)
        draw_along(axes, x, np.sqrt(np.abs(z)), centre=0.8222, sd=0.3491)
        axes.set(xlabel="prediction", ylabel="√|residual|")

    def tail(axes: Axes) -> None:
        draw_normal_qq(axes, rng.standard_t(4, size=400) / math.sqrt(2))

    save("panels", [("a bend", bend), ("a growing spread", fan), ("a heavy tail", tail)], 2.3, 2.1)


def draw_reliability_panels() -> None:
    """Draws probabilities that are right, too sure, not sure enough."""
    rng = np.random.default_rng(0)
    truth = rng.beta(0.9, 0.9, 3000)
    event = rng.random(3000) < truth

    def sharpened(power: float) -> Callable[[Axes], None]:
        odds = (truth / (1 - truth)) ** power
        found = reliability(event, odds / (1 + odds))

        def draw(axes: Axes) -> None:
            draw_reliability(axes, found)
            axes.set(xlabel="predicted", ylabel="observed", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])

        return draw

    cases = {"right": 1.0, "too sure": 2.0, "not sure enough": 0.5}
    panels = [(title, sharpened(power)) for title, power in cases.items()]
    save("reliability", panels, width=2.2, height=2.3)


def draw_survival_panels() -> None:
    """Draws right risks, and risks that are too extreme."""
    rng = np.random.default_rng(0)
    score = rng.normal(size=1500)
    event_time, censored = rng.exponential(np.exp(-0.8 * score)), rng.exponential(2.0, 1500)
    time, event = np.minimum(event_time, censored), event_time <= censored

    def panel(slope: float) -> Callable[[Axes], None]:
        risk = 1 - np.exp(-np.exp(slope * score))
        found = calibrate(risk, time, event, 1.0)
        return lambda axes: draw_horizon(axes, found)

    save("survival", [("right", panel(0.8)), ("spread too far", panel(1.8))], 2.6, 2.4)


if __name__ == "__main__":
    torch.manual_seed(0)
    draw_pit_panels()
    draw_coverage_panels()
    draw_residual_panels()
    draw_classic_panels()
    draw_reliability_panels()
    draw_survival_panels()
