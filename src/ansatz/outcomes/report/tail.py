"""The report on triples: ranks of the answers, relations, queries that go wrong."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.figures.number_format import number, printable
from ansatz.figures.section import Cell, Chapter, Figure, Section, Table
from ansatz.figures.style import figure, to_svg
from ansatz.fitting.contracts.inference import Predictive
from ansatz.metrics import Estimate, answer_ranks
from ansatz.metrics.standard_error import influence_error, mean_estimate
from ansatz.report.baselines import Forecast
from ansatz.report.evidence import Evidence
from ansatz.report.outcome_report import OutcomeReport

WORST = 10  # rows of a table
_HERE = "ansatz.outcomes.report.tail"


def ranks_of(evidence: Evidence) -> torch.Tensor:
    """The filtered rank of the answer of each test query."""
    return answer_ranks(evidence.predictive().raw, evidence.value.long())


def section(evidence: Evidence) -> Section | None:
    """The distribution of ranks, the relations, and the answers that rank lowest."""
    rows: Any = evidence.job.rows
    if not len(rows):
        return None
    ranks = ranks_of(evidence)
    mean = mean_estimate(ranks.reciprocal(), evidence.weight)
    error = 1.96 * influence_error(mean.influence, evidence.weight)
    lead = (
        f"The mean reciprocal rank is {number(mean.value)} (95 % interval "
        f"{number(mean.value - error)} to {number(mean.value + error)}); the right entity comes "
        f"first in {100 * float((ranks <= 1).double().mean()):.1f} % of the queries and is among "
        f"the first ten in {100 * float((ranks <= 10).double().mean()):.1f} %. Other known answers "
        "are left out, ties count half."
    )
    return Section("Ranks", lead, [_drawn(ranks), _relations(rows, ranks), _worst(evidence, ranks)])


def _drawn(ranks: torch.Tensor) -> Figure:
    """The share of answers up to each rank."""
    order = ranks.sort().values.numpy()
    share = np.arange(1, len(order) + 1) / len(order)
    with figure() as paper:
        axes = paper.subplots()
        axes.step(order, share, where="post")
        axes.set_xscale("log")
        axes.set(xlabel="rank of the answer", ylabel="share of the queries", ylim=(0, 1.02))
        caption = "Hits among the first k entities, for each k."
        return Figure(to_svg(paper), caption, "share of the queries by the rank of their answer")


def _relations(rows: Any, ranks: torch.Tensor) -> Table:
    names, codes = np.unique(rows.relation, return_inverse=True)
    found: list[list[Cell]] = []
    for code, name in enumerate(names):
        for backwards, direction in ((False, "tail"), (True, "head")):
            own = ranks[torch.from_numpy((codes == code) & (rows.backwards == backwards))]
            if len(own):
                inverse = own.reciprocal()
                found.append([printable(name, 40), direction, len(own), float(inverse.mean())])
    found.sort(key=lambda row: (row[3], row[0]))
    caption = "The relations whose answers rank lowest."
    return Table(["relation", "asked for", "queries", "mrr"], found[:WORST], caption)


def _worst(evidence: Evidence, ranks: torch.Tensor) -> Table:
    rows: Any = evidence.job.rows
    best = evidence.model.labels[evidence.predictive().raw.argmax(-1).numpy()]
    found: list[list[Cell]] = []
    for row in ranks.argsort(descending=True, stable=True)[:WORST].tolist():
        arrow = "^" if rows.backwards[row] else ""
        words = (rows.entity[row], arrow + rows.relation[row], rows.answer[row], best[row])
        found.append([*(printable(word, 40) for word in words), float(ranks[row])])
    caption = "The answers that rank lowest; ^ marks a relation that is read backwards."
    return Table(["entity", "relation", "answer", "first", "rank"], found, caption)


class TailReport(OutcomeReport):
    """The contribution of entities that complete triples."""

    prediction = "log-probability"

    def chapters(self) -> list[Chapter]:
        """Lists the chapter on ranks."""
        return [Chapter(41, "ranks", f"{_HERE}:section")]

    def calibration(self, evidence: Evidence) -> str:
        """Says what stands in its place."""
        return "entities have no intervals; their probabilities are the nll."

    def estimates(self, evidence: Evidence, forecast: Forecast) -> dict[str, Estimate]:
        """Nats per query."""
        if forecast.losses is None:
            return {}
        return {"nll": mean_estimate(forecast.losses.double(), evidence.weight)}

    def targets(self, evidence: Evidence) -> list[Any]:
        """None: entities are not numbers."""
        return []

    def words(self, evidence: Evidence, row: int) -> str | None:
        """The answer."""
        rows: Any = evidence.job.rows
        return None if rows.answer is None else str(rows.answer[row])

    def response(self, evidence: Evidence) -> None:
        """None: no number that columns have effects on."""
        return None

    def respond(self, outcome: Any, predictive: Predictive, response: Any) -> NDArray[np.float64]:
        """None is asked for."""
        return np.zeros((len(predictive.raw), 0))
