"""Supplies what rankings add to a report and a comparison."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from torch import Tensor

from ansatz.figures.number_format import printable
from ansatz.figures.section import Chapter, Figure, Section, Table
from ansatz.figures.style import INK, MODEL, figure, to_svg
from ansatz.fitting.contracts.inference import Predictive
from ansatz.likelihoods import RankingDistribution
from ansatz.metrics import Estimate
from ansatz.outcomes.report.classes import labels_of
from ansatz.report.baselines import Forecast, estimate_nll
from ansatz.report.effect import EffectSize, ratio
from ansatz.report.evidence import Evidence
from ansatz.report.normal_scores import p_text
from ansatz.report.outcome_report import CURVES, OutcomeReport, Response
from ansatz.report.paired_scores import Evaluated, ScorePair, log_score_pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Numbers = NDArray[np.float64]
MOST = 12  # items shown


class FirstPlaces(NamedTuple):
    """Observed and expected first places of each item."""

    observed: Numbers  # ``(K,)`` first places
    expected: Numbers  # ``(K,)``, the sum of their predicted probabilities
    ratios: list[EffectSize]  # observed over expected, with intervals
    p_value: float  # of Pearson's chi-square over items


def first_places(
    distribution: RankingDistribution,
    y: Tensor,
    *,
    weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> FirstPlaces:
    r"""Counts observed and expected first places.

    Item k is expected to be first with probability :math:`e^{s_k} / \sum_j e^{s_j}`, the sum over
    all items, or over the ranked ones where unranked items are absent.
    """
    code = y.long()
    rows, items = len(code), distribution.items
    scores = distribution.scores.expand(rows, items).double()
    if distribution.unranked == "absent":
        there = torch.zeros(rows, items + 1, dtype=torch.bool)
        there = there.scatter(1, torch.where(code < 0, items, code), True)[:, :items]
        scores = scores.masked_fill(~there, -torch.inf)
    chance = torch.softmax(scores, 1).numpy()
    first = torch.nn.functional.one_hot(code[:, 0], items).double().numpy()
    w = np.ones(rows) if weight is None else np.asarray(weight, dtype=np.float64)
    observed, expected = w @ first, w @ chance
    ratios = [ratio(str(k), first[:, k], chance[:, k], weight=w, group=group) for k in range(items)]
    seen = expected > 0
    statistic = float(((observed - expected)[seen] ** 2 / expected[seen]).sum())
    p = float(stats.chi2.sf(statistic, max(int(seen.sum()) - 1, 1)))
    return FirstPlaces(observed, expected, ratios, p)


def draw_first_places(axes: "Axes", found: FirstPlaces, names: list[str]) -> None:
    """Draws observed and expected first places of the items with the most expected."""
    chosen = np.argsort(-found.expected, kind="stable")[:MOST][::-1]
    place = np.arange(len(chosen))
    ends = np.array([[found.ratios[k].low, found.ratios[k].high] for k in chosen])
    middle = found.observed[chosen]
    bars = np.clip(np.abs(ends * found.expected[chosen, None] - middle[:, None]).T, 0, None)
    axes.plot(found.expected[chosen], place, "|", color=INK, ms=11, mew=1.6, label="expected")
    axes.errorbar(middle, place, xerr=bars, fmt="o", color=MODEL, ms=4, lw=1.2, label="observed")
    axes.set_yticks(place, [printable(names[k], 24) for k in chosen])
    axes.set_xlim(0, None)
    axes.set_xlabel("first places")
    axes.legend(loc="lower right")


def section(evidence: Evidence) -> Section | None:
    """Reports observed and expected first places; None for other outcomes."""
    likelihood = evidence.distribution
    if not isinstance(likelihood, RankingDistribution):
        return None
    weight = evidence.weight.numpy()
    found = first_places(likelihood, evidence.value, weight=weight, group=evidence.group)
    names = [str(item) for item in evidence.model.labels]
    shown = min(likelihood.items, MOST)
    with figure(5.6, 0.9 + 0.24 * shown) as paper:
        draw_first_places(paper.subplots(), found, names)
        svg = to_svg(paper)
    off = sum(part.excludes_neutral for part in found.ratios if part.value == part.value)
    lead = (
        f"The expected number of first places is outside the 95 % interval for {off} of "
        f"{likelihood.items} items; p over all items {p_text(found.p_value)}."
    )
    chosen = np.argsort(-found.expected, kind="stable")[:MOST]
    rows: list[list[str | float]] = [
        [
            printable(names[k], 40),
            float(found.observed[k]),
            f"{found.expected[k]:.1f}",
            f"{found.ratios[k].value:.2f}",
            f"{found.ratios[k].low:.2f} to {found.ratios[k].high:.2f}",
        ]
        for k in chosen
    ]
    head = ["item", "first places", "expected", "ratio", "95 % interval"]
    caption = "Observed first places on the test rows with 95 % intervals, and expected ones."
    return Section(
        "Calibration of first places",
        lead,
        [Figure(svg, caption, lead), Table(head, rows, caption)],
    )


_FIRST = Chapter(33, "first places of rankings", "ansatz.outcomes.report.ranking:section")


class RankingReport(OutcomeReport):
    """The contribution of rankings: calibration of first places."""

    def chapters(self) -> list[Chapter]:
        """Lists the chapters of any likelihood, and one on first places."""
        return [*super().chapters(), _FIRST]

    def calibration(self, evidence: Evidence) -> str:
        """Refers to the section."""
        return "see the first places below."

    def estimates(self, evidence: Evidence, forecast: Forecast) -> dict[str, Estimate]:
        """Estimates the log score."""
        return estimate_nll(evidence, forecast)

    def response(self, evidence: Evidence) -> Response:
        """Chooses the probabilities of the first items to be ranked first."""
        items = [f"P({printable(item, 24)} first)" for item in evidence.model.labels]
        return Response(tuple(items[:CURVES]), tuple(range(min(CURVES, len(items)))))

    def respond(
        self, outcome: Any, predictive: Predictive, response: Response
    ) -> NDArray[np.float64]:
        """Computes probabilities of the first place."""
        with torch.no_grad():
            first: Any = predictive.distribution
            found: NDArray[np.float64] = first.probs[:, list(response.picks)].numpy()
        return found

    def same_outcomes(self, a: Evaluated, b: Evaluated) -> bool:
        """Tests whether the labels are equal."""
        return np.array_equal(labels_of(a), labels_of(b))

    def score_pair(self, a: Evaluated, b: Evaluated) -> ScorePair:
        """Computes the log score of each ranking."""
        return log_score_pair(a, b)

    def score_beside(self, a: Evaluated, b: Evaluated) -> None:
        """None: rankings have no second score."""
        return None
