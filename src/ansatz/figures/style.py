"""Defines the style of all figures, and writes them as small SVG."""

import hashlib
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ansatz.figures.number_format import LIMIT, printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The palette of Okabe and Ito, distinguishable with any kind of colour vision; each colour has a
# contrast of 3 and more with white and with near-black.
MODEL = "#2080C0"  # blue: the model
LINEAR = "#D55E00"  # vermilion: the linear model
THIRD = "#009E73"  # green
FOURTH = "#B86A9A"  # purple
PALETTE = (MODEL, LINEAR, THIRD, FOURTH, "#C08A00", "#3A9BC4")
INK = "#767676"  # text, axes, references; becomes the colour of the text around the figure
POINTS = 2_000  # most points drawn

_FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
_STYLE: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],  # for measuring; shown in the reader's font
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titleweight": "normal",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.0,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.facecolor": "none",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.useoffset": False,
    "axes.unicode_minus": True,
    "axes.xmargin": 0.03,
    "axes.ymargin": 0.06,
    "figure.facecolor": "none",
    "grid.color": INK,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "patch.linewidth": 0.7,
    "text.color": INK,
    "text.parse_math": False,  # names may contain dollar signs
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "svg.fonttype": "none",
    "svg.hashsalt": "ansatz",
}
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"


@contextmanager
def figure(width: float = 6.4, height: float = 3.2) -> "Iterator[Figure]":
    """Makes a matplotlib figure in the style of the library, without pyplot.

    Args:
        width: inches; a page is 7.2 wide.
        height: inches.

    Example:
        >>> from ansatz.figures.style import figure, to_svg
        >>> with figure(3, 2) as paper:
        ...     lines = paper.subplots().plot([0, 1], [0, 1])
        ...     svg = to_svg(paper)
        >>> svg.startswith("<svg") and "currentColor" in svg
        True
    """
    from cycler import cycler
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    style: Any = {**_STYLE, "axes.prop_cycle": cycler(color=list(PALETTE))}
    with rc_context(style):
        yield Figure(figsize=(width, height), layout="constrained")


def thin(*arrays: ArrayLike, limit: int = POINTS, seed: int = 0) -> tuple[NDArray[Any], ...]:
    """Samples the same rows of each array, at most ``limit``, in order.

    Example:
        >>> import numpy as np
        >>> from ansatz.figures.style import thin
        >>> [len(part) for part in thin(np.arange(9_000), np.arange(9_000))]
        [2000, 2000]
    """
    found = tuple(np.asarray(array) for array in arrays)
    count = len(found[0])
    if count <= limit:
        return found
    rows = np.sort(np.random.default_rng(seed).choice(count, limit, replace=False))
    return tuple(array[rows] for array in found)


def to_svg(paper: "Figure", *, limit: int = LIMIT) -> str:
    """Writes the figure as one ``<svg>`` element for a page.

    Text stays text in the reader's font; ink takes the colour of the surrounding text; styles are
    attributes, so that a page may forbid inline styles; identifiers are unique across figures; the
    output is deterministic.

    Args:
        paper: made by :func:`figure`, within its context.
        limit: largest number of letters of a line of text.

    Example:
        >>> from ansatz.figures.style import figure, to_svg
        >>> with figure() as paper:
        ...     title = paper.subplots().set_title("a < b")
        ...     "a &lt; b" in to_svg(paper)
        True
    """
    from matplotlib.text import Text

    for label in paper.findobj(Text):
        label.set_text("\n".join(printable(line, limit) for line in label.get_text().split("\n")))
    written = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a letter that the font lacks
        paper.savefig(written, format="svg", metadata=nothing, transparent=True)
    text = written.getvalue()
    root = ElementTree.fromstring(text[text.index("<svg") :])
    _simplify(root)
    return _serialize(root)


def _simplify(root: ElementTree.Element) -> None:
    for parent in list(root.iter()):
        for child in list(parent):
            empty = child.tag == f"{_SVG}defs" and len(child) and child[0].tag == f"{_SVG}style"
            if empty or child.tag == f"{_SVG}metadata":
                parent.remove(child)
    prefix = "f" + hashlib.sha256(ElementTree.tostring(root)).hexdigest()[:10]
    names = _used_names(root)
    for element in root.iter():
        element.text = element.text if element.tag == f"{_SVG}text" else None
        element.tail = None
        _unfold_style(element)
        given = element.attrib.pop("id", None)
        if given in names:
            element.set("id", f"{prefix}-{names[given]}")
        for key, value in list(element.attrib.items()):
            element.set(key, _rename(key, value, names, prefix))
    width, height = root.get("width", ""), root.get("height", "")
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.set("style-width", width)  # read and removed by _serialize
    root.set("viewBox", root.get("viewBox", f"0 0 {width} {height}"))
    root.set("stroke-linejoin", "round")
    root.set("font-family", _FONT)


def _used_names(root: ElementTree.Element) -> dict[str, int]:
    """Numbers the identifiers that are referred to."""
    found: dict[str, int] = {}
    for element in root.iter():
        for key, value in element.attrib.items():
            name = value[1:] if key == _LINK and value.startswith("#") else ""
            if value.startswith("url(#"):
                name = value[5:-1]
            if name:
                found.setdefault(name, len(found))
    return found


def _unfold_style(element: ElementTree.Element) -> None:
    """Turns ``style="fill: none; stroke-width: 1"`` into attributes."""
    for rule in element.attrib.pop("style", "").split(";"):
        key, colon, value = rule.partition(":")
        if colon and key.strip() != "font-family":
            element.set(key.strip(), value.strip())


def _rename(key: str, value: str, names: dict[str, int], prefix: str) -> str:
    if value.startswith("url(#"):
        return f"url(#{prefix}-{names[value[5:-1]]})"
    if key == _LINK:  # else the bytes of an image
        return f"#{prefix}-{names[value[1:]]}" if value.startswith("#") else "".join(value.split())
    if value.lower() == INK:
        return "currentColor"
    if key in ("d", "x", "y", "transform", "points", "width", "height"):
        value = _NUMBER.sub(lambda match: f"{float(match[0]):.2f}", value)
        return " ".join(value.split())
    return value


def _serialize(root: ElementTree.Element) -> str:
    width = root.attrib.pop("style-width").removesuffix("pt")
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        if _LINK in element.attrib:
            element.set("href", element.attrib.pop(_LINK))
    root.set("width", f"{float(width) * 4 / 3:.0f}")  # points to pixels
    root.set("role", "img")
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)
