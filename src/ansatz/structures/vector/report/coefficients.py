"""Reports the coefficients of a linear model with intervals, as a table and a forest plot."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from ansatz.figures.number_format import number, printable
from ansatz.figures.section import Cell, Figure, Section, Table, Text
from ansatz.figures.style import INK, LINEAR, MODEL, figure, to_svg
from ansatz.linear import Estimates
from ansatz.linear.summary import format_p
from ansatz.report.evidence import Evidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVEL = 0.95
MOST = 40  # coefficients in the table and the drawing
RATIOS = {"log": "exp", "logit": "odds ratio"}  # link -> what exp(coefficient) is


class Coefficient(NamedTuple):
    """An estimate with its interval, and the width of its column."""

    name: str
    output: str
    estimate: float
    error: float
    lower: float
    upper: float
    p_value: float
    width: float  # standard deviation of the column; 1 for an indicator


def coefficients_of(
    estimates: Estimates, widths: Tensor, level: float = LEVEL
) -> list[Coefficient]:
    """Lists the estimated coefficients with Wald intervals; ``widths`` is ``(D,)``."""
    quantile = float(estimates.reference.ppf((1 + level) / 2))
    errors = estimates.covariance.diagonal().clamp(min=0).sqrt().tolist()
    found = []
    for (row, column), value, error in zip(
        estimates.entries.tolist(), estimates.values.tolist(), errors, strict=True
    ):
        p = 2 * float(estimates.reference.sf(abs(value) / error)) if error > 0 else math.nan
        width = float(widths[row - 1]) if row else 1.0
        half = quantile * error
        name, output = estimates.names[row], estimates.outputs[column]
        found.append(Coefficient(name, output, value, error, value - half, value + half, p, width))
    return found


def draw_forest(axes: "Axes", found: list[Coefficient]) -> None:
    """Draws estimates and intervals per standard deviation, in the order of the table."""
    for place, each in enumerate(found):
        ends = [each.lower * each.width, each.upper * each.width]
        colour = MODEL if ends[0] > 0 or ends[1] < 0 else INK
        axes.plot(ends, [place, place], color=colour, linewidth=1.4, solid_capstyle="butt")
        axes.plot([each.estimate * each.width], [place], "s", color=colour, markersize=4)
    axes.axvline(0, color=LINEAR, linewidth=0.8)
    axes.set_yticks(range(len(found)), [_label(each, found) for each in found])
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("change of the linear predictor")


def section(evidence: Evidence) -> Section | None:
    """Reports coefficients, standard errors, intervals and p-values of a linear model."""
    if len(evidence.model.estimates) != 1:
        return None
    estimates = evidence.model.estimates[0]
    if len(estimates.names) == 1:  # the intercept
        return None
    every = coefficients_of(estimates, _widths(evidence, estimates))
    slopes = [each for each in every if each.name != estimates.names[0]]
    if not slopes or not all(math.isfinite(each.error) for each in slopes):
        return None
    table = getattr(evidence.model.summary, "table", None) or _own_summary(evidence)
    link, kind = str(table.get("link", "")), str(table.get("covariance", "model"))
    parts: list[Text | Table | Figure] = [_table(every[:MOST], link, kind, estimates)]
    shown = slopes[:MOST]
    with figure(6.4, 0.7 + 0.22 * len(shown)) as paper:
        draw_forest(paper.subplots(), shown)
        drawn = to_svg(paper)
    parts.append(
        Figure(
            drawn,
            "Coefficients with 95 % intervals: numbers per standard deviation of their column, "
            "levels and other columns of zeros and ones per unit. Grey intervals contain 0.",
            f"Forest plot of {len(shown)} coefficients.",
        )
    )
    if len(every) > MOST:
        parts.append(Text(f"{len(every) - MOST} further coefficients are not listed.", "note"))
    parts += [Text(str(message), "warning") for message in table.get("messages", ())]
    return Section("Coefficients", _lead(slopes), parts)


def _lead(slopes: list[Coefficient]) -> str:
    clear = sum(each.lower > 0 or each.upper < 0 for each in slopes)
    noun = "coefficient" if len(slopes) == 1 else "coefficients"
    return (
        f"{clear} of {len(slopes)} {noun} have 95 % intervals without 0; by chance alone "
        f"{number(0.05 * len(slopes), 2)} would."
    )


def _table(found: list[Coefficient], link: str, kind: str, estimates: Estimates) -> Table:
    several = len({each.output for each in found}) > 1
    ratio = link in RATIOS
    head = ["coefficient", *(["of"] if several else []), "estimate", "standard error"]
    head += ["lower", "upper", "p", *(["exp(estimate)"] if ratio else [])]
    rows: list[list[Cell]] = []
    for each in found:
        row: list[Cell] = [each.name, *([each.output] if several else [])]
        row += [each.estimate, each.error, each.lower, each.upper, format_p(each.p_value)]
        rows.append(row + ([math.exp(min(each.estimate, 700))] if ratio else []))
    errors = {"model": "classical", "cluster": "clustered"}.get(kind, kind)
    reference = "normal" if estimates.df is None else f"Student's t with {estimates.df:g} df"
    caption = f"95 % Wald intervals; {errors} standard errors, reference {reference}."
    return Table(head, rows, caption)


def _own_summary(evidence: Evidence) -> dict[str, Any]:
    fits = evidence.model.linear
    return fits[0].summary().to_dict() if fits else {}


def _widths(evidence: Evidence, estimates: Estimates) -> Tensor:
    """The standard deviation of each column; 1 for columns of zeros and ones."""
    job = evidence.job if evidence.training is None else evidence.training.job
    (x,) = evidence.model.encoder.inputs(job.rows, notes=[])
    indicator = ((x == 0) | (x == 1)).all(0)
    found = torch.where(indicator, 1.0, x.std(0, correction=0))
    return torch.where(found > 0, found, 1.0)


def _label(each: Coefficient, found: list[Coefficient]) -> str:
    several = len({other.output for other in found}) > 1
    return printable(each.name, 34) + (f" ({printable(each.output, 16)})" if several else "")
