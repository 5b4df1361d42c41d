"""Supplies what tags add to a report and a comparison."""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data.batch import UNLABELLED
from ansatz.figures.number_format import number, percent, printable, with_error
from ansatz.figures.section import Cell, Chapter, Figure, Section, Table
from ansatz.figures.style import figure, to_svg
from ansatz.metrics import Estimate, mean_estimate
from ansatz.report.baselines import Forecast, baselines
from ansatz.report.evidence import Evidence
from ansatz.report.outcome_report import OutcomeReport
from ansatz.report.paired_scores import Evaluated, ScorePair, log_score_pair

PAIRS, WORDS, SENTENCES, MOST = 15, 4, 6, 60
LETTERS = 92  # of a line of coloured words

_HERE = "ansatz.outcomes.report.tag"


class TagReport(OutcomeReport):
    """The contribution of tags: scores by tag, confusions, sentences coloured by their losses.

    The words of a sentence are dependent: standard errors count sentences.
    """

    def chapters(self) -> list[Chapter]:
        """Lists the chapters on tags."""
        return [
            Chapter(31, "scores of each tag", f"{_HERE}:tags_section"),
            Chapter(32, "confused tags", f"{_HERE}:confusion_section"),
            Chapter(33, "sentences coloured by their loss", f"{_HERE}:worst_section"),
        ]

    def calibration(self, evidence: Evidence) -> str:
        """Compares predicted probabilities with accuracy."""
        probs, known = (
            evidence.model.of_classes.probabilities(evidence.predictive()),
            _known(evidence),
        )
        top, codes = probs[:, : known.shape[1]].max(-1)
        right = (codes == _tags(evidence)).double()
        sizes = known.sum(1).double()
        gap = torch.where(known, right - top, 0).sum(1) / sizes.clamp(min=1)
        found = _ratio(gap, sizes, evidence.weight)
        error = float((found.influence.square().mean() / len(gap)).sqrt())
        words = (
            "the mean probability of the predicted tag is "
            f"{percent(float(top[known].mean()))}, the "
            f"accuracy {percent(float(right[known].mean()))}, a difference of "
            f"{with_error(100 * found.value, 100 * error)} points over sentences"
        )
        if abs(found.value) < 2 * error:
            return f"{words}; no miscalibration is detected."
        return f"{words}: it is {'over' if found.value < 0 else 'under'}confident."

    def estimates(self, evidence: Evidence, forecast: Forecast) -> dict[str, Estimate]:
        """Estimates log score and accuracy of words, with influences of sentences."""
        known = _known(evidence, forecast.point)
        sizes = known.sum(1).double()
        right = (forecast.point[:, : known.shape[1]] == _tags(evidence, forecast.point)) & known
        share = right.sum(1) / sizes.clamp(min=1)
        found = {"accuracy": _ratio(share, sizes, evidence.weight)}
        if forecast.losses is not None:
            found["nll"] = _ratio(forecast.losses, sizes, evidence.weight)
        return found

    def response(self, evidence: Evidence) -> None:
        """None: words have no common feature."""
        return None

    def words(self, evidence: Evidence, row: int) -> str | None:
        """The tags of a sentence."""
        codes = evidence.outcome[row]
        named = [str(evidence.model.labels[k]) for k in codes[codes >= 0].tolist()]
        return " ".join(named)

    def same_outcomes(self, a: Evaluated, b: Evaluated) -> bool:
        """Tests whether the tags are equal."""
        return torch.equal(a.job.y, b.job.y) and np.array_equal(a.model.labels, b.model.labels)

    def score_pair(self, a: Evaluated, b: Evaluated) -> ScorePair:
        """Computes the mean log score of the words of each sentence."""
        return log_score_pair(a, b)

    def score_beside(self, a: Evaluated, b: Evaluated) -> ScorePair:
        """Computes the share of wrong tags of each sentence."""
        return ScorePair("error", _wrong(a), _wrong(b), higher=False)


def _known(evidence: Evidence, point: Any = None) -> Tensor:
    return _tags(evidence, point) != UNLABELLED


def _tags(evidence: Evidence, point: Any = None) -> Tensor:
    """The tags up to the longest sentence that was predicted."""
    steps = (evidence.kept["raw"] if point is None else torch.as_tensor(point)).shape[1]
    return evidence.outcome[:, :steps]


def _ratio(values: Tensor, sizes: Tensor, weight: Tensor) -> Estimate:
    """The mean over words from the means of sentences: a ratio of means of sentences."""
    size = mean_estimate(sizes, weight).value
    value = mean_estimate(values * sizes, weight).value / size
    return Estimate(value, sizes * (values - value) / size)


def _wrong(evaluated: Evaluated) -> NDArray[np.float64]:
    y = evaluated.job.y
    known = y != UNLABELLED
    codes = evaluated.model.outcome.estimate(evaluated.predictive, y)
    found: NDArray[np.float64] = (((codes != y) & known).sum(1) / known.sum(1).clamp(min=1)).numpy()
    return found


def tags_section(evidence: Evidence) -> Section:
    """Reports precision, recall and F1 of each tag by its frequency, beside the baselines."""
    forecasts = baselines(evidence).forecasts
    labels = evidence.model.labels
    counts = {f.name: _counts(evidence, f.point) for f in forecasts}
    right, true, predicted = counts["model"]
    order = [k for k in np.argsort(-true, kind="stable").tolist() if true[k] > 0][:MOST]
    rows: list[list[Cell]] = []
    for k in order:
        f1 = [_f1(counts[f.name], k) for f in forecasts]
        precision = float(right[k] / predicted[k]) if predicted[k] else None
        rows.append([str(labels[k]), int(true[k]), precision, float(right[k] / true[k]), *f1])
    worst = min(order, key=lambda k: _f1(counts["model"], k))
    lead = (
        f"The worst of {len(order)} tags is “{printable(labels[worst], 24)}”, with F1 "
        f"{number(_f1(counts['model'], worst), 3)} on {int(true[worst])} words."
    )
    names = ["F1" if f.name == "model" else f"F1, {f.name}" for f in forecasts]
    head = ["tag", "words", "precision", "recall", *names]
    return Section("Scores of each tag", lead, [Table(head, rows, "By frequency in the test.")])


def _counts(evidence: Evidence, point: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Right, true and predicted words of each tag."""
    y, known = _tags(evidence, point), _known(evidence, point)
    codes, truth = torch.as_tensor(point)[:, : y.shape[1]][known], y[known]
    size = len(evidence.model.labels)
    parts = truth[truth == codes], truth, codes
    return tuple(torch.bincount(each, minlength=size).numpy() for each in parts)  # type: ignore[return-value]


def _f1(counts: tuple[NDArray[Any], NDArray[Any], NDArray[Any]], k: int) -> float:
    right, true, predicted = counts
    total = true[k] + predicted[k]
    return float(2 * right[k] / total) if total else math.nan


def confusion_section(evidence: Evidence) -> Section | None:
    """Reports the tags that are most often taken for another, with their most frequent words."""
    y, known = _tags(evidence), _known(evidence)
    codes = torch.as_tensor(evidence.point)[:, : y.shape[1]]
    wrong = known & (codes != y)
    if not bool(wrong.any()):
        return Section("Confused tags", "No word of the test has a wrong tag.")
    labels, size = evidence.model.labels, len(evidence.model.labels)
    pairs = (y[wrong] * size + codes[wrong]).numpy()
    words = _words_at(evidence, wrong)
    found, counts = np.unique(pairs, return_counts=True)
    true = torch.bincount(y[known], minlength=size).numpy()
    rows: list[list[Cell]] = []
    for place in np.argsort(-counts, kind="stable")[:PAIRS]:
        k, other = divmod(int(found[place]), size)
        named, often = np.unique(words[pairs == found[place]].astype(str), return_counts=True)
        common = named[np.argsort(-often, kind="stable")[:WORDS]]
        shown = ", ".join(printable(word, 20) for word in common)
        share = float(counts[place] / true[k])
        rows.append([str(labels[k]), str(labels[other]), int(counts[place]), share, shown])
    k, other = divmod(int(found[counts.argmax()]), size)
    lead = (
        f"{int(wrong.sum())} of {int(known.sum())} words have a wrong tag; most often "
        f"“{printable(labels[k], 24)}” is taken for “{printable(labels[other], 24)}”."
    )
    head = ["true tag", "predicted", "words", "share of the true tag", "most frequent words"]
    return Section("Confused tags", lead, [Table(head, rows)])


def _words_at(evidence: Evidence, mask: Tensor) -> NDArray[Any]:
    """The words, or numbers of the steps, where the mask is True."""
    sentence, step = (each.numpy() for each in mask.nonzero(as_tuple=True))
    rows: Any = evidence.job.rows
    words = getattr(rows, "words", None)
    if words is None:
        return step + 1
    found: NDArray[Any] = words[rows.offsets.numpy()[sentence] + step]
    return found


def worst_section(evidence: Evidence) -> Section | None:
    """Draws the sentences with the greatest losses, each word coloured by its own."""
    rows: Any = evidence.job.rows
    if getattr(rows, "words", None) is None:
        return None
    outcome: Any = evidence.model.outcome
    losses, seen = outcome.step_losses(evidence.predictive(), evidence.outcome)
    order = losses.sum(1).argsort(descending=True, stable=True)[:SENTENCES].tolist()
    labels, point = evidence.model.labels, evidence.point
    lines = []
    for row in order:
        words = rows.words[int(rows.offsets[row]) : int(rows.offsets[row + 1])]
        shown = []
        for step, word in enumerate(words[: losses.shape[1]]):
            wrong = bool(seen[row, step]) and point[row, step] != int(evidence.outcome[row, step])
            tag = f"/{labels[point[row, step]]}" if wrong else ""
            shown.append((printable(f"{word}{tag}", 40), float(losses[row, step])))
        lines.append(shown)
    total = float((losses.sum(1) / seen.sum(1).clamp(min=1))[order[0]])
    lead = (
        f"The {len(lines)} test sentences with the greatest losses; the first has "
        f"{number(total, 3)} nats a word. A wrong tag stands behind its word."
    )
    caption = "The darker a word, the greater its loss: from 0 to 5 nats and more."
    drawn = Figure(draw_coloured(lines), caption, "Sentences, their words coloured by loss.")
    return Section("Sentences coloured by their loss", lead, [drawn])


def draw_coloured(lines: list[list[tuple[str, float]]], most: float = 5.0) -> str:
    """Words on a background that grows darker with their numbers, as an SVG."""
    places: list[tuple[int, int, str, float]] = []
    row = 0
    for line in lines:
        column = 0
        for word, value in line:
            if column and column + len(word) > LETTERS:
                row, column = row + 1, 2
            places.append((row, column, word, value))
            column += len(word) + 1
        row += 2
    with figure(7.2, 0.19 * (row + 1)) as paper:
        axes = paper.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, LETTERS + 6), ylim=(row + 0.5, -1))
        axes.set_axis_off()
        for y, x, word, value in places:
            shade = min(max(value / most, 0.0), 1.0)
            box = {"facecolor": (0.84, 0.37, 0.0, 0.75 * shade), "edgecolor": "none", "pad": 1.0}
            axes.text(
                x,
                y,
                word.replace("$", r"\$"),
                family="monospace",
                fontsize=7,
                va="center",
                bbox=box,
            )
        return to_svg(paper)
