"""Single figures of a model or a training, for notebooks and files: the drawings of the report."""

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from ansatz.errors import DataError, UsageError
from ansatz.figures.number_format import printable
from ansatz.figures.style import INK, MODEL, figure, thin
from ansatz.report.evidence import Evidence
from ansatz.report.gathering import gather, replayed
from ansatz.report.pit import draw_pit, pit_histogram
from ansatz.report.reliability import draw_reliability, questions, reliability_of
from ansatz.report.transform import is_classes, targets
from ansatz.report.what_was_fitted import draw_history

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ansatz.training import History

Plot = Literal["training", "observed", "calibration"]
Drawing = Callable[["Axes"], None]


def plot_history(history: "History") -> "Figure":
    """Draws the learning curves of a training."""
    if not history.records:
        raise UsageError("the training was not evaluated: there are no learning curves to draw.")
    return _drawn([lambda axes: _draw_training(axes, history)])


def plot_fit(fit: Any, what: str | None = None) -> "Figure":
    """Draws a fit on its test rows; its training alone needs no rows.

    Args:
        fit: what ``ansatz.fit`` gives.
        what: one drawing; None for all that apply.
    """
    if what == "training":
        return _plot(fit.fitted, None, what)
    from ansatz.fitting.replay import replay

    return _plot(fit.fitted, replayed(replay(fit)), what)


def plot_model(model: Any, X: Any, y: Any, what: str | None = None) -> "Figure":
    """Draws a fitted estimator on rows with outcomes.

    Args:
        model: a fitted estimator.
        X: rows as in ``fit``.
        y: their outcomes.
        what: one drawing; None for all that apply.
    """
    return _plot(model.model_, None if X is None else gather(model, X, y), what)


def _plot(model: Any, evidence: Evidence | None, what: str | None) -> "Figure":
    if what is not None and what not in get_args(Plot):
        raise UsageError(f"plot draws {', '.join(get_args(Plot))}, not {what!r}.")
    found: dict[str, Sequence[Drawing]] = {"training": (), "observed": (), "calibration": ()}
    history = model.history
    if history is not None and len(history.records) > 1:
        found["training"] = [lambda axes: _draw_training(axes, history)]
    if evidence is not None:
        found["observed"] = _observed(evidence)
        found["calibration"] = _calibration(evidence)
    chosen = found if what is None else {what: found[what]}
    drawings = [each for several in chosen.values() for each in several]
    if not drawings:
        kind = "such a model" if what is None else f"'{what}'"
        raise DataError(f"there is nothing to draw of {kind}: give held-out rows X and y.")
    return _drawn(drawings)


def _draw_training(axes: "Axes", history: "History") -> None:
    draw_history(axes, history)
    axes.set_title("Training")
    if axes.get_legend() is not None:
        axes.legend(fontsize=7.5)


def _observed(evidence: Evidence) -> list[Drawing]:
    """Predicted against observed numbers, one drawing for each target."""
    if evidence.model.outcome.labels is not None or not evidence.value.is_floating_point():
        return []
    if evidence.value.shape != evidence.point.shape or evidence.value.ndim > 2:
        return []
    names = evidence.model.outcome.names or [evidence.target]
    y = evidence.value.double().numpy().reshape(len(evidence.value), -1)
    point = np.asarray(evidence.point, dtype=np.float64).reshape(y.shape)
    return [
        lambda axes, k=k: draw_observed(axes, point[:, k], y[:, k], names[k])  # type: ignore[misc]
        for k in range(y.shape[1])
    ]


def draw_observed(axes: "Axes", point: Any, y: Any, name: str = "") -> None:
    """Draws outcomes against their predictions, with the line on which both are equal."""
    x, z = thin(point, y)
    seen = np.isfinite(x) & np.isfinite(z)
    x, z = x[seen], z[seen]
    axes.plot(x, z, "o", color=MODEL, markersize=3, alpha=0.5, markeredgewidth=0)
    if len(x):
        ends = [min(x.min(), z.min()), max(x.max(), z.max())]
        axes.plot(ends, ends, color=INK, lw=0.8)
    axes.set_xlabel("predicted")
    axes.set_ylabel("observed")
    axes.set_title(f"Observed and predicted {printable(name, 24)}")


def _calibration(evidence: Evidence) -> list[Drawing]:
    """Reliability of classes, or the probability integral transform of numbers."""
    weight = evidence.weight.numpy()
    distribution = evidence.distribution
    if distribution is None or hasattr(distribution, "ranks"):
        return []
    if is_classes(distribution):
        asked = questions(evidence)[:4] if evidence.value.ndim == 1 else []
        return [
            lambda axes, q=q: draw_reliability(  # type: ignore[misc]
                axes,
                reliability_of(q, weight, evidence.seed),
                f"Reliability: {printable(q.name, 24)}",
            )
            for q in asked
        ]
    drawings: list[Drawing] = []
    for target in targets(evidence):
        usable = target.transform.finite()
        part = target.transform.take(usable)
        if len(part.lower):
            histogram = pit_histogram(part, weight=weight[usable], seed=evidence.seed)
            drawings.append(
                lambda axes, h=histogram, n=target.name: draw_pit(  # type: ignore[misc]
                    axes, h, f"Calibration {printable(n, 24)}".strip()
                )
            )
    return drawings


def _drawn(drawings: Sequence[Drawing]) -> "Figure":
    columns = min(len(drawings), 3)
    lines = -(-len(drawings) // columns)
    with figure(max(4.6, 3.4 * columns), 3.0 * lines) as paper:
        paper.set_facecolor("white")
        grid = paper.subplots(lines, columns, squeeze=False)
        for axes, draw in zip(grid.flat, drawings, strict=False):
            draw(axes)
        for axes in grid.flat[len(drawings) :]:
            axes.set_axis_off()
        # A notebook shows what has this method, without pyplot.
        paper._repr_png_ = lambda: _png(paper)  # type: ignore[attr-defined]
        return paper


def _png(paper: "Figure") -> bytes:
    written = io.BytesIO()
    paper.savefig(written, format="png", dpi=120)
    return written.getvalue()
