"""Reports the coefficients of a penalised linear model along the strengths of its penalty."""

from typing import TYPE_CHECKING

import torch

from ansatz.figures.number_format import number
from ansatz.figures.section import Figure, Section, Table, Text
from ansatz.figures.style import INK, MODEL, figure, to_svg
from ansatz.linear.penalised_fit import NAMES, WHY, PenalisedFit, PenaltyPath
from ansatz.report.evidence import Evidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 40  # coefficients that are listed


def draw_path(axes: "Axes", path: PenaltyPath) -> None:
    """Draws the coefficients per standard deviation by the strength of the penalty."""
    lines = path.standardised[:, 1:].flatten(1)
    chosen = lines[path.chosen] != 0
    for line, kept in zip(lines.T, chosen.tolist(), strict=True):
        axes.plot(path.strengths, line, color=MODEL if kept else INK, linewidth=0.9)
    _mark(axes, path)
    axes.set_ylabel("coefficient per sd")


def draw_losses(axes: "Axes", path: PenaltyPath) -> None:
    """Draws the out-of-fold loss by the strength of the penalty, with its standard error."""
    axes.errorbar(path.strengths, path.losses, yerr=path.errors, color=MODEL, linewidth=0.9)
    _mark(axes, path)
    axes.set_ylabel("out-of-fold loss")


def _mark(axes: "Axes", path: PenaltyPath) -> None:
    axes.set_xscale("log")
    axes.invert_xaxis()
    axes.axvline(path.strength, color=INK, linewidth=0.8, linestyle="--")
    axes.set_xlabel("strength")


def section(evidence: Evidence) -> Section | None:
    """Reports the coefficients and the path of a penalised linear model."""
    fits = [fit for fit in evidence.model.linear if isinstance(fit, PenalisedFit)]
    if len(fits) != 1 or fits[0].path is None:
        return None
    (fit,), path = fits, fits[0].path
    assert path is not None
    at = fit.coefficients[1:].abs().sum(1)
    kept, count = int((at > 0).sum()), len(at)
    unit = path.standardised[path.chosen, 1:]
    order = unit.abs().sum(1).argsort(descending=True)[: min(MOST, max(kept, 1))]
    rows = [
        [
            fit.names[1 + j],
            *(number(float(v)) for v in torch.cat([fit.coefficients[1 + j], unit[j]])),
        ]
        for j in order.tolist()
    ]
    names = list(fit.outputs) if len(fit.outputs) > 1 else ["estimate"]
    header = ["column", *names, *(f"{name} per sd" for name in names)]
    parts: list[Text | Table | Figure] = [
        Table(header, rows, "Penalised coefficients, the largest per standard deviation first.")
    ]
    if len(path.strengths) > 1:
        with figure(6.4, 2.6) as paper:
            left, right = paper.subplots(1, 2)
            draw_path(left, path)
            draw_losses(right, path)
            caption = (
                "Coefficients and out-of-fold loss by the strength of the penalty, from strong to "
                "weak; the dashed line is the strength that was taken."
            )
            parts.append(Figure(to_svg(paper), caption, "Lines of coefficients by strength."))
    parts.append(Text(f"There are no standard errors and p-values: {WHY}.", "note"))
    how = "given" if len(path.strengths) == 1 else "chosen by cross-validation"
    lead = (
        f"The penalty is {NAMES[path.penalty]} with strength {number(path.strength, 3)}, {how}: "
        f"{kept} of {count} columns have a coefficient other than 0."
    )
    return Section("Penalised coefficients", lead, parts)
