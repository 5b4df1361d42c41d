"""Figures of claims, for a notebook or as the bytes of a file."""

import io
from collections.abc import Callable

from ansatz.claims.claim import Figure
from ansatz.claims.finding import Finding
from ansatz.claims.registry import get, run
from ansatz.errors import UsageError
from ansatz.figures.style import INK, to_svg
from ansatz.figures.style import figure as styled

FORMATS = ("png", "svg", "pdf")
_GREY = "#7a8089"  # reads on white and on near-black: an image cannot take a page's own ink
_DOTS = 200  # per inch of a png
_LETTERS = 200  # of a title, which is ours


def figure(name: str, finding: Finding | None = None) -> Figure:
    """Draws the figure of a claim: measurements as points, the prediction as a line over them.

    Args:
        name: as ``ansatz list claims`` spells it.
        finding: of a run; by default that of a quick run.

    Example:
        >>> from ansatz import claims
        >>> claims.figure("xor").axes[0].get_xlabel()
        'first input'
    """
    draw = _drawing(name)
    finding = run(name) if finding is None else finding
    with styled() as paper:
        draw(paper, finding)
        paper.set_facecolor("white")
    return paper


def render(name: str, finding: Finding, form: str = "svg") -> bytes:
    """Draws the figure of a claim as the content of a file; equal drawings are equal bytes.

    Args:
        name: as ``ansatz list claims`` spells it.
        finding: of a run.
        form: ``"png"`` (on white), ``"svg"`` (no ground, for light and dark pages) or ``"pdf"``.
    """
    if form not in FORMATS:
        raise UsageError(f"a figure is {', '.join(FORMATS)}, got '{form}'.")
    with styled() as paper:
        _drawing(name)(paper, finding)
        if form == "svg":
            return _as_svg_file(to_svg(paper, limit=_LETTERS))
        written = io.BytesIO()
        if form == "png":
            paper.savefig(written, format="png", dpi=_DOTS, facecolor="white")
        else:
            paper.savefig(written, format="pdf", metadata={"CreationDate": None})
        return written.getvalue()


def _drawing(name: str) -> Callable[[Figure, Finding], None]:
    draw = get(name).draw
    if draw is None:
        raise UsageError(f"claim '{name}' has no figure.")
    return draw


def _as_svg_file(svg: str) -> bytes:
    for ink in ("currentColor", INK, INK.lower()):
        svg = svg.replace(ink, _GREY)
    return (svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n").encode()
