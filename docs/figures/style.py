"""Defines the look of the figures: transparent, mid-tones that read on white and on black."""

import re
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, VIOLET = "#3b87d8", "#d9772b", "#2f9e74", "#9a6fd0"
COLOURS = (BLUE, ORANGE, GREEN, VIOLET)  # 3:1 or more against white and against #0d1117
GREY = "#7a8089"  # text and axes: 4:1 against white, 4.7:1 against #0d1117
SIZE = (4.2, 2.6)  # inches
STYLE = {
    "figure.figsize": SIZE,
    "figure.constrained_layout.use": True,
    "savefig.transparent": True,
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same on every machine
    "font.size": 8.5,
    "text.color": GREY,
    "axes.facecolor": "none",
    "axes.edgecolor": GREY,
    "axes.labelcolor": GREY,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": plt.cycler(color=COLOURS),
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "legend.handlelength": 1.2,
    "legend.handletextpad": 0.6,
    "legend.labelspacing": 0.35,
    "legend.borderaxespad": 0.2,
    "svg.fonttype": "path",  # looks the same whatever fonts the reader has
    "svg.hashsalt": "ansatz",  # the same file from run to run
}


def axes(x: str = "y", y: str = "", **options: Any) -> tuple[Figure, Axes]:
    """Makes a figure of the common size; without a name, the vertical axis is left out."""
    figure, ax = plt.subplots(**options)
    ax.set_xlabel(x)
    if y:
        ax.set_ylabel(y)
    else:
        ax.spines["left"].set_visible(False)
        ax.set_yticks([])
    return figure, ax


def save(figure: Figure, path: Path, title: str) -> None:
    """Writes a small SVG: no date, two decimals in the paths."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Title": title, "Date": None, "Creator": None})
    text = path.read_text(encoding="utf-8")
    text = re.sub(r'(?<= d=")[^"]*', lambda path: _short(path[0]), text)
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    path.write_text(text, encoding="utf-8")


def _short(path: str) -> str:
    return re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", path)
