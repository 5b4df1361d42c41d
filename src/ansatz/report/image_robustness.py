"""How right answers fade when images move, turn or grow noisy, and which symmetries hold."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ansatz.figures.number import number, percent
from ansatz.figures.section import Cell, Figure, Section, Table, Text
from ansatz.figures.style import INK, MODEL, figure, to_svg
from ansatz.report.image_perturbations import Curve
from ansatz.report.shares import wilson
from ansatz.symmetry import Certificate

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_curve(axes: "Axes", curve: Curve) -> None:
    """The share of right answers against the strength, in its Wilson intervals.

    Args:
        axes: of matplotlib.
        curve: what to draw.

    Example:
        >>> from ansatz.report.image_perturbations import Curve
        >>> from ansatz.report.image_robustness import draw_curve
        >>> from ansatz.figures.style import figure
        >>> with figure() as paper:
        ...     draw_curve(paper.subplots(), Curve("noise", "%", [0, 10], [9, 7], 10))
    """
    shares = [wilson(n, curve.total) for n in curve.correct]
    value, low, high = (100 * np.array(part) for part in zip(*shares, strict=True))
    axes.axhline(value[0], color=INK, lw=0.8, alpha=0.6)
    axes.fill_between(curve.strength, low, high, color=MODEL, alpha=0.2, lw=0)
    axes.plot(curve.strength, value, "o-", color=MODEL)
    axes.set(xlabel=f"{curve.name}, {curve.unit}", ylim=(0, 102))


def section(curves: Sequence[Curve], certificates: Sequence[Certificate] = ()) -> Section | None:
    """Accuracy under perturbations, and the certificates of symmetries.

    Args:
        curves: see :func:`ansatz.report.image_perturbations.robustness`.
        certificates: see :func:`ansatz.symmetry.certify`.

    Example:
        >>> from ansatz.report.image_perturbations import Curve
        >>> from ansatz.report.image_robustness import section
        >>> section([Curve("noise", "%", [0, 10], [90, 70], 100)]).lead
        'Right answers go from 90 % to 70 % under noise of 10 %.'
    """
    parts: list[Text | Table | Figure] = []
    if curves:
        parts.append(_figure(curves))
    if certificates:
        parts.append(_certificate_table(certificates))
    if not parts:
        return None
    return Section("When images move, turn or grow noisy", _lead(curves, certificates), parts)


def _lead(curves: Sequence[Curve], certificates: Sequence[Certificate]) -> str:
    said = [
        f"{'to' if i else f'Right answers go from {_share(curve, 0)} to'} {_share(curve, -1)} "
        f"under {curve.name} of {_strength(curve)}"
        for i, curve in enumerate(curves)
    ]
    words = f"{', '.join(said)}." if said else ""
    exact = [c for c in certificates if c.relative < 1e-4]
    if certificates and exact:
        kept = ", ".join(dict.fromkeys(c.group for c in exact))
        words += f" By construction it respects: {kept} (violated by rounding only)."
    elif certificates:
        words += " None of the symmetries tried holds to rounding."
    return words.strip()


def _share(curve: Curve, place: int) -> str:
    return percent(curve.correct[place] / max(curve.total, 1))


def _strength(curve: Curve) -> str:
    amount = number(float(curve.strength[-1]))
    return f"{amount} %" if curve.unit.startswith("%") else f"{amount} {curve.unit}"


def _figure(curves: Sequence[Curve]) -> Figure:
    with figure(6.6 if len(curves) > 1 else 3.4, 2.5) as paper:
        grid = paper.subplots(1, len(curves), squeeze=False, sharey=True)
        for axes, curve in zip(grid.flat, curves, strict=True):
            draw_curve(axes, curve)
        grid.flat[0].set_ylabel("right answers, %")
        svg = to_svg(paper)
    said = "; ".join(
        f"{curve.name}: {_share(curve, 0)} to {_share(curve, -1)} at {_strength(curve)}"
        for curve in curves
    )
    return Figure(
        svg,
        f"Share of {curves[0].total} test images that are given their class, with 95 % Wilson "
        "intervals, as the same images are perturbed more and more, each in a direction of its "
        "own; the level line is without. What comes in from outside is the nearest cell of the "
        "edge.",
        f"Accuracy under perturbations. {said}.",
    )


def _certificate_table(certificates: Sequence[Certificate]) -> Table:
    rows: list[list[Cell]] = [
        [
            certificate.group + ("" if certificate.exact else " (approximate)"),
            certificate.kind,
            number(certificate.largest, 3),
            number(certificate.mean, 3),
            number(certificate.relative, 3),
            _element(certificate.worst_element)
            + (" rad" if certificate.group == "rotation" else ""),
            certificate.samples,
        ]
        for certificate in certificates
    ]
    head = ["group", "outputs", "largest", "mean", "relative", "at", "tried"]
    return Table(
        head,
        rows,
        "Certificates of symmetry: the largest change of any raw output when inputs are moved by "
        "random elements of a group (for equivariant ones, the distance to the output moved "
        "likewise); its mean over elements; the largest relative to the spread of outputs among "
        "images, so that 1 says that moving an image matters as much as taking another one.",
    )


def _element(element: Any) -> str:
    """A group's element in few letters."""
    if isinstance(element, bool | int | float):
        return number(element, 3)
    if isinstance(element, tuple) and all(isinstance(each, int | float) for each in element):
        return f"({', '.join(number(each, 3) for each in element)})"
    return "–"
