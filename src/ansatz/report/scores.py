"""How good the predictions are, with standard errors, beside simpler and other models."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from ansatz.metrics import Estimate
from ansatz.report.estimates import estimate_metrics
from ansatz.report.evidence import Evidence
from ansatz.report.number import number, with_error
from ansatz.report.rivals import Rivals, rivals
from ansatz.report.row_error import ordered_codes, row_error
from ansatz.report.section import Figure, Section, Table, Text
from ansatz.report.style import INK, LINEAR, MODEL, THIRD, figure, to_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HIGHER = {"accuracy", "auc", "r2", "c_index", "uno_c", "kendall_tau", "top_one_accuracy"}
FIRST = ("nll", "crps", "energy_score", "c_index", "pinball", "rmse", "mae", "r2", "accuracy")
WITHOUT_ERROR = {"ece"}  # a sum of absolute values: it is biased and far from normal
FEW = 100  # rows below which a standard error is not reliable
COLOURS = {"model": MODEL, "linear": LINEAR, "constant": INK, "boosted trees": THIRD}


class Score(NamedTuple):
    """A number with its standard error; nan where it cannot be told.

    Example:
        >>> from ansatz.report.scores import Score
        >>> Score(1.5, 0.5).ratio
        3.0
    """

    value: float
    error: float

    @property
    def ratio(self) -> float:
        """How many standard errors from zero."""
        return self.value / self.error if self.error > 0 else math.nan


class Comparison(NamedTuple):
    """One metric of every model, and by how much the first is better than each other.

    Example:
        >>> from ansatz.report.scores import Comparison
        >>> Comparison._fields
        ('metric', 'scores', 'better')
    """

    metric: str
    scores: dict[str, Score]
    better: dict[str, Score]  # positive: the model is better


def higher_is_better(metric: str) -> bool:
    """Whether more of a metric is better.

    Example:
        >>> from ansatz.report.scores import higher_is_better
        >>> higher_is_better("auc"), higher_is_better("nll"), higher_is_better("c_index_2")
        (True, False, True)
    """
    return metric in HIGHER or metric.startswith("c_index")


def compare(evidence: Evidence) -> list[Comparison]:
    """Every metric that applies, of the model and its rivals, with paired differences.

    Standard errors are those of a mean over rows, of the delta method for RMSE and R2, DeLong's
    for the area under the ROC curve; clustered by group, Newey and West's over time; of a
    bootstrap of rows or groups for what is no mean of rows (concordance, integrated Brier score).

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.report import gather
        >>> from ansatz.report.scores import compare
        >>> x = np.arange(60.0).reshape(-1, 1)
        >>> y = x[:, 0] + np.cos(x[:, 0])
        >>> model = Regressor("normal", network="linear").fit(x, y)
        >>> [found.metric for found in compare(gather(model, x, y))]
        ['nll', 'crps', 'rmse', 'mae', 'r2']
    """
    if "compare" not in evidence.kept:
        evidence.kept["compare"] = _compare(evidence, rivals(evidence))
    found: list[Comparison] = evidence.kept["compare"]
    return found


def _compare(evidence: Evidence, found: Rivals) -> list[Comparison]:
    weight = evidence.weight
    judged = {f.name: f.judge(weight) for f in found.forecasts}
    known = {f.name: estimate_metrics(evidence, f) for f in found.forecasts}
    names = [name for name, value in judged["model"].items() if value is not None]
    names.sort(key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    missing = [n for n in names if n not in known["model"] and n not in WITHOUT_ERROR]
    draws = _bootstrap(evidence, found, missing) if missing else {}
    comparisons = []
    for metric in names:
        scores, better = {}, {}
        sign = 1.0 if higher_is_better(metric) else -1.0
        for name in judged:
            value = judged[name].get(metric)
            if value is None:
                continue
            scores[name] = Score(
                value, _error(evidence, known[name].get(metric), draws, name, metric)
            )
            if name != "model":
                gap = judged["model"][metric] or 0.0
                better[name] = Score(
                    sign * (gap - value), _gap_error(evidence, known, draws, name, metric)
                )
        comparisons.append(Comparison(metric, scores, better))
    return comparisons


def _bootstrap(
    evidence: Evidence, found: Rivals, metrics: list[str]
) -> dict[tuple[str, str], np.ndarray]:
    """Draws of the metrics from the same resampled rows, or groups, for every model."""
    count = len(evidence.weight)
    draws = evidence.settings.get("draws", 100 if count <= 1_000 else 50 if count <= 5_000 else 20)
    rng = np.random.default_rng(evidence.seed)
    group = ordered_codes(evidence, "group")
    units = count if group is None else int(group.max()) + 1
    values: dict[tuple[str, str], list[float]] = {}
    for _ in range(draws):
        times = torch.from_numpy(rng.multinomial(units, np.full(units, 1 / units))).double()
        weight = evidence.weight * (times if group is None else times[group])
        for forecast in found.forecasts:
            judged = forecast.judge(weight)
            for metric in metrics:
                value = judged.get(metric)
                at = values.setdefault((forecast.name, metric), [])
                at.append(math.nan if value is None else value)
    return {key: np.array(column) for key, column in values.items()}


def _error(
    evidence: Evidence,
    estimate: Estimate | None,
    draws: Mapping[tuple[str, str], np.ndarray],
    name: str,
    metric: str,
) -> float:
    if estimate is not None:
        return row_error(evidence, estimate.influence)
    return _sd(draws.get((name, metric)))


def _gap_error(
    evidence: Evidence,
    known: Mapping[str, Mapping[str, Estimate]],
    draws: Mapping[tuple[str, str], np.ndarray],
    name: str,
    metric: str,
) -> float:
    a, b = known["model"].get(metric), known[name].get(metric)
    if a is not None and b is not None:
        return row_error(evidence, a.minus(b).influence)
    first, second = draws.get(("model", metric)), draws.get((name, metric))
    return math.nan if first is None or second is None else _sd(first - second)


def _sd(values: np.ndarray | None) -> float:
    if values is None or np.isfinite(values).sum() < 5:
        return math.nan
    return float(np.std(values[np.isfinite(values)], ddof=1))


def verdict(evidence: Evidence, rival: str = "linear") -> str:
    """Whether the model beats a rival, by how many standard errors; empty without that rival.

    Example:
        >>> from ansatz.report.scores import Score, judge_difference
        >>> judge_difference("the linear model", "nll", Score(0.2, 0.05), 500)
        'It beats the linear model by 0.200 ± 0.050 in nll, 4.0 standard errors.'
    """
    first = next((c for c in compare(evidence) if rival in c.better), None)
    if first is None:
        return ""
    names = {"linear": "the linear model of its law", "constant": "the constant model"}
    count = float(evidence.weight.sum())
    return judge_difference(names.get(rival, rival), first.metric, first.better[rival], count)


def judge_difference(rival: str, metric: str, better: Score, rows: float) -> str:
    """The sentence about a difference: below two standard errors it is not distinguishable.

    Example:
        >>> from ansatz.report.scores import Score, judge_difference
        >>> judge_difference("the linear model", "nll", Score(0.02, 0.05), 50)
        'It is not distinguishable from the linear model: the difference in nll is 0.020 ± 0.050, \
0.4 standard errors (with 50 rows the standard error itself is not reliable).'
    """
    doubt = (
        f" (with {rows:.0f} rows the standard error itself is not reliable)" if rows < FEW else ""
    )
    size = with_error(abs(better.value), better.error)
    if abs(better.value) < 1e-9:
        return f"It equals {rival} in {metric}."
    if not math.isfinite(better.ratio):
        word = "better" if better.value > 0 else "worse"
        return f"It is {word} than {rival} by {size} in {metric}, without a standard error."
    ratio = f"{abs(better.ratio):.1f} standard errors"
    if abs(better.ratio) < 2:
        return (
            f"It is not distinguishable from {rival}: the difference in {metric} is "
            f"{with_error(better.value, better.error)}, {ratio}{doubt}."
        )
    if better.value > 0:
        return f"It beats {rival} by {size} in {metric}, {ratio}{doubt}."
    return f"It loses to {rival} by {size} in {metric}, {ratio}{doubt}."


def draw_scores(axes: "Axes", comparison: Comparison) -> None:
    """Every model's score with its 95 % interval, as a dot plot.

    Args:
        axes: to draw on.
        comparison: one metric.

    Example:
        >>> from ansatz.report.scores import Comparison, Score, draw_scores
        >>> from ansatz.report.style import figure
        >>> with figure(3, 2) as paper:
        ...     draw_scores(paper.subplots(), Comparison("nll", {"model": Score(1.0, 0.1)}, {}))
    """
    names = list(comparison.scores)
    for place, name in enumerate(names):
        value, error = comparison.scores[name]
        colour = COLOURS.get(name, INK)
        if math.isfinite(error):
            axes.plot([value - 1.96 * error, value + 1.96 * error], [place, place], color=colour)
        axes.plot([value], [place], "o", color=colour, markersize=5)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    side = "higher" if higher_is_better(comparison.metric) else "lower"
    axes.set_xlabel(f"{comparison.metric} ({side} is better)")


def worst_share(evidence: Evidence, rival: str) -> float | None:
    """The share of the difference in nll that the 1 % of rows with the largest differences make.

    Example:
        >>> from ansatz.report.scores import worst_share
        >>> worst_share.__name__
        'worst_share'
    """
    found = rivals(evidence)
    other = found.find(rival)
    mine = found.forecasts[0]
    if other is None or other.losses is None or mine.losses is None:
        return None
    gap = evidence.weight * (other.losses - mine.losses)
    total = float(gap.sum())
    if len(gap) < FEW or total == 0:
        return None
    top = gap.abs().topk(max(1, len(gap) // 100)).indices
    return float(gap[top].sum()) / total


def section(evidence: Evidence) -> Section | None:
    """Metrics with standard errors, and paired differences.

    Args:
        evidence: of a model on its test rows.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.report import gather
        >>> from ansatz.report.scores import section
        >>> x = np.random.default_rng(0).normal(size=(60, 1))
        >>> y = x[:, 0] + np.cos(9 * x[:, 0])
        >>> model = Regressor("normal", network="linear").fit(x, y)
        >>> section(gather(model, x, y)).title
        'Scores'
    """
    comparisons = compare(evidence)
    found = rivals(evidence)
    names = [forecast.name for forecast in found.forecasts]
    if not comparisons:
        return None
    parts: list[Text | Table | Figure] = [_score_table(comparisons, names)]
    if len(names) > 1:
        parts.append(_difference_table(evidence, comparisons, names[1:]))
        with figure(6.4, 0.6 + 0.32 * len(names)) as paper:
            draw_scores(paper.subplots(), comparisons[0])
            parts.append(
                Figure(
                    to_svg(paper),
                    f"{comparisons[0].metric} on the test rows with 95 % intervals. Intervals of "
                    "two models may overlap although their paired difference is clear: the table "
                    "above has the differences.",
                    f"Dot plot of {comparisons[0].metric} by model.",
                )
            )
    share = worst_share(evidence, "linear")
    if share is not None and abs(share) > 0.3:
        parts.append(
            Text(
                f"{number(100 * share, 2)} % of the difference in nll to the linear model comes "
                "from the 1 % of rows with the largest differences: a few rows decide it."
            )
        )
    parts += [Text(note, "note") for note in found.notes]
    first = [verdict(evidence, name) for name in names[1:]]
    lead = " ".join(
        sentence for sentence in (first[:1] or ["Metrics on the test rows."]) if sentence
    )
    return Section("Scores", lead, parts)


def _score_table(comparisons: list[Comparison], names: list[str]) -> Table:
    rows = [
        [
            f"{c.metric} {'↑' if higher_is_better(c.metric) else '↓'}",
            *(with_error(*c.scores[n]) if n in c.scores else None for n in names),
        ]
        for c in comparisons
    ]
    return Table(
        ["metric", *names],
        rows,
        "On the test rows, ± one standard error; ↑ higher is better, ↓ lower is better. The linear "
        "and the constant model have the same law and learned from the same rows.",
    )


def _difference_table(evidence: Evidence, comparisons: list[Comparison], names: list[str]) -> Table:
    rows: list[list[str | None]] = []
    for c in (c for c in comparisons if c.metric not in WITHOUT_ERROR):
        cells: list[str | None] = []
        for name in names:
            gap = c.better.get(name)
            ratio = "" if gap is None or not math.isfinite(gap.ratio) else f" ({gap.ratio:+.1f})"
            cells.append(None if gap is None else with_error(*gap) + ratio.replace("-", "−"))
        rows.append([c.metric, *cells])
    how = "Standard errors are of paired rows"
    if evidence.group is not None:
        how += ", clustered by group"
    elif evidence.time is not None:
        how += ", Newey and West's over time"
    few = float(evidence.weight.sum()) < FEW
    doubt = " With fewer than 100 rows the standard errors themselves are not reliable." * few
    return Table(
        ["model better by", *(f"than {name}" for name in names)],
        rows,
        "Positive where the model is better; in parentheses the difference in standard errors: "
        f"below 2 it is not distinguishable from none. {how}.{doubt} They compare these fits, not "
        "the methods that made them.",
    )
