"""The report on texts that a model writes or finds: scores, worst cases, alignments."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.figures.number_format import number, printable
from ansatz.figures.section import Cell, Chapter, Figure, Section, Table
from ansatz.figures.style import figure, to_svg
from ansatz.fitting.contracts.inference import Predictive
from ansatz.metrics import Estimate
from ansatz.metrics.standard_error import mean_estimate
from ansatz.outcomes.answer.scores import word_f1
from ansatz.outcomes.translation.scores import bootstrap, corpus_scores
from ansatz.outcomes.translation.search import translations
from ansatz.report.baselines import Forecast
from ansatz.report.evidence import Evidence
from ansatz.report.outcome_report import OutcomeReport

WORST, LIMIT = 10, 160  # rows of a table, letters of a text
LONGEST = 25  # tokens of an alignment
_HERE = "ansatz.outcomes.report.texts"


def translation_section(evidence: Evidence) -> Section | None:
    """BLEU and chrF with bootstrap intervals, and the texts of least probability per token."""
    rows: Any = evidence.job.rows
    if not len(rows) or rows.targets is None:
        return None
    found = [each.text for each in translations(evidence.model.posterior, rows)]
    references = rows.targets.texts.tolist()
    scores, intervals = corpus_scores(found, references), bootstrap(found, references)
    words = [
        f"{label} is {number(float(scores[name] or 0))} (95 % interval "
        f"{number(intervals[name][0])} to {number(intervals[name][1])})"
        for name, label in (("bleu", "BLEU"), ("chrf", "chrF"))
    ]
    lead = (
        f"{words[0]}, {words[1]}; {100 * float(scores['exact'] or 0):.1f} % of the texts are "
        "exactly the reference. Intervals are of 1,000 bootstrap samples of the texts."
    )
    raw = evidence.predictive().raw
    loss = (-raw[:, 0] / raw[:, 2]).double()
    sources = getattr(rows.source, "texts", None)
    rows_shown: list[list[Cell]] = []
    for row in loss.argsort(descending=True, stable=True)[:WORST].tolist():
        source = f"example {row}" if sources is None else printable(sources[row], LIMIT)
        given, text = printable(references[row], LIMIT), printable(found[row], LIMIT)
        rows_shown.append([source, given, text, float(loss[row])])
    caption = "The references that the model finds least probable, in nats per token."
    table = Table(["source", "reference", "translation", "nll"], rows_shown, caption)
    drawn = _alignment(evidence, rows)
    return Section("Texts", lead, [table] if drawn is None else [table, drawn])


def _alignment(evidence: Evidence, rows: Any) -> Figure | None:
    """The attention of each token of a reference to the steps of its source."""
    encoder: Any = evidence.model.encoder
    network: Any = evidence.model.network
    texts = getattr(rows.source, "texts", None)
    if texts is None or not hasattr(network, "alignment"):
        return None
    lengths = encoder.codes(rows).offsets.diff()
    fitting = (lengths - 12).abs().masked_fill(lengths > LONGEST, 1_000)
    row = int(fitting.argmin())
    one = rows[[row]]
    with torch.no_grad():
        *source, codes, _ = encoder.inputs(one, notes=[])
        before = torch.cat([codes.new_full((1, 1), network.boundary), codes], 1)
        weights = network.alignment(network.remember(source), before)[0]
    read, written = (encoder.tokens.split(t) for t in (texts[row], rows.targets.texts[row]))
    read, written = ([printable(w.replace("Ġ", ""), 16) for w in each] for each in (read, written))
    if len(read) > 2 * LONGEST or not read:
        return None
    with figure(6.4, 1.2 + 0.2 * len(written)) as paper:
        axes = paper.subplots()
        axes.imshow(weights.numpy(), aspect="auto", cmap="Greys", vmin=0, vmax=1)
        axes.set_xticks(range(len(read)), read, rotation=60, ha="right")
        axes.set_yticks(range(len(written) + 1), [*written, "(end)"])
        axes.grid(False)
        return Figure(
            to_svg(paper),
            "What the network attends to in the source (across) as it predicts each token of the "
            "reference (down); black is all of its attention.",
            "Alignment of one pair.",
        )


def answer_section(evidence: Evidence) -> Section | None:
    """The questions whose answers are the least probable, and where answers are missed."""
    rows: Any = evidence.job.rows
    if not len(rows) or rows.answers is None:
        return None
    outcome: Any = evidence.model.outcome
    found = outcome.texts(evidence.model.posterior, rows)
    pairs = zip(found, rows.answers, strict=True)
    f1 = np.array([max(word_f1(t, a) for a in given) for t, given in pairs])
    loss = evidence.model.outcome.row_losses(evidence.predictive(), evidence.outcome)
    lead = (
        f"{100 * float((f1 == 1).mean()):.1f} % of the answers have exactly the words of the given "
        f"ones, {100 * float((f1 == 0).mean()):.1f} % share no word with them."
    )
    rows_shown: list[list[Cell]] = [
        [
            printable(rows.questions[row], LIMIT),
            printable(rows.answers[row][0], 60),
            printable(found[row], 60),
            printable(rows.contexts[row], LIMIT),
            float(loss[row]),
        ]
        for row in loss.argsort(descending=True, stable=True)[:WORST].tolist()
    ]
    caption = "The answers that the model finds least probable, in nats."
    names = ["question", "answer", "found", "context", "nll"]
    return Section("Answers", lead, [Table(names, rows_shown, caption)])


class TranslationReport(OutcomeReport):
    """The contribution of texts that are written."""

    prediction = "log-probability"
    _chapter = Chapter(41, "texts", f"{_HERE}:translation_section")

    def chapters(self) -> list[Chapter]:
        """Lists the chapter on texts."""
        return [self._chapter]

    def calibration(self, evidence: Evidence) -> str:
        """Says what stands in its place."""
        return "texts have no intervals; their probabilities per token are the nll."

    def estimates(self, evidence: Evidence, forecast: Forecast) -> dict[str, Estimate]:
        """Nats per token: a ratio of means of texts."""
        losses = forecast.losses
        if losses is None or not bool(losses.isfinite().all()):
            return {}
        size = self._sizes(evidence)
        mean = mean_estimate(size, evidence.weight).value
        value = mean_estimate(losses * size, evidence.weight).value / mean
        return {"nll": Estimate(value, size * (losses - value) / mean)}

    def _sizes(self, evidence: Evidence) -> torch.Tensor:
        return evidence.predictive().raw[:, 2].double()

    def targets(self, evidence: Evidence) -> list[Any]:
        """None: texts are not numbers."""
        return []

    def words(self, evidence: Evidence, row: int) -> str | None:
        """The text."""
        rows: Any = evidence.job.rows
        return None if rows.targets is None else str(rows.targets.texts[row])

    def response(self, evidence: Evidence) -> None:
        """None: no number that columns have effects on."""
        return None

    def respond(self, outcome: Any, predictive: Predictive, response: Any) -> NDArray[np.float64]:
        """None is asked for."""
        return np.zeros((len(predictive.raw), 0))


class AnswerReport(TranslationReport):
    """The contribution of answers that are found."""

    _chapter = Chapter(41, "answers", f"{_HERE}:answer_section")

    def calibration(self, evidence: Evidence) -> str:
        """Says what stands in its place."""
        return "answers have no intervals; their probabilities are the nll."

    def _sizes(self, evidence: Evidence) -> torch.Tensor:
        return torch.ones(len(evidence.predictive().raw), dtype=torch.float64)

    def words(self, evidence: Evidence, row: int) -> str | None:
        """The answer."""
        rows: Any = evidence.job.rows
        return None if rows.answers is None else str(rows.answers[row][0])
