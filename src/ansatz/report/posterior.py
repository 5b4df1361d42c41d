"""Report section: the posterior, its priors, and whether its draws are to be believed."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ansatz.figures.section import Figure, Section, Table, Text
from ansatz.figures.style import figure, to_svg
from ansatz.inference.convergence import ess_bulk, ess_tail
from ansatz.inference.named_draws import NamedDraws
from ansatz.report.evidence import Evidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
SHOWN, GROUPS, BINS = 4, 40, 20  # parameters with ranks and traces; groups; bins of ranks
_REMEDY = "Draws that have failed are shown for their diagnosis: do not read estimates off them."


def section(evidence: Evidence) -> Section | None:
    """The verdict, the priors, ranks and traces of the worst parameters, and the groups."""
    posterior: Any = evidence.model.posterior
    state = getattr(posterior, "state", None) or {}
    verdict = state.get("verdict")
    if verdict is None and not isinstance(posterior, NamedDraws):
        return None
    parts: list[Text | Table | Figure] = []
    if evidence.model.has_failed:
        parts.append(Text(_REMEDY, "warning"))
    describe = getattr(posterior, "answers", None)
    if describe is not None:
        parts += [Text(each) for each in describe(evidence.job.rows)]
    if isinstance(posterior, NamedDraws):
        parts += _of_names(posterior, state)
    prior = state.get("prior")
    if prior:
        parts.append(Table(["scale", "prior"], [[name, str(law)] for name, law in prior.items()]))
    return Section("Posterior", _lead(posterior, verdict), parts)


def _lead(posterior: Any, verdict: Any) -> str:
    if verdict is None:
        return f"A normal approximation by {posterior.name}: independent draws around the mode."
    reasons = " ".join(verdict["reasons"])
    return f"The draws: {verdict['status']}.{' ' if reasons else ''}{reasons}"


def _of_names(posterior: Any, state: Any) -> list[Text | Table | Figure]:
    table = posterior.summary("").table.dropna(axis=1, how="all")
    rows = [[name, *map(float, row)] for name, row in zip(table.index, table.values, strict=True)]
    caption = "Estimates, their errors and 95 % intervals, and the worth of the draws."
    parts: list[Text | Table | Figure] = [Table(["", *table.columns], rows[:60], caption)]
    low = "The prior of each parameter."
    if state.get("prior_range") is not None:
        least, most, what = state["prior_range"]
        low += f" Before the data, 90 % of {what} lie between {least:.4g} and {most:.4g}."
    parts.append(Table(["parameter", "prior"], [list(each) for each in state["priors"][:60]], low))
    x = posterior.numbers.numpy()
    if state.get("verdict") is not None and x.shape[1] >= 4:
        parts.append(_chains(x, posterior.names))
    groups = getattr(posterior, "effects", [])
    if groups:
        parts.append(_groups(posterior))
    return parts


def ranks(x: Array, bins: int = BINS) -> Array:
    """Counts of the ranks of each chain's draws among all, ``(C, bins)``; flat where chains agree.

    Args:
        x: ``(C, N)``.
        bins: of the ranks.
    """
    order = x.reshape(-1).argsort().argsort().reshape(x.shape)
    edges = np.linspace(0, x.size, bins + 1)
    return np.stack([np.histogram(each, edges)[0] for each in order]).astype(float)


def _chains(x: Array, names: list[str]) -> Figure:
    worst = np.argsort(np.fmin(ess_bulk(x), ess_tail(x)))[:SHOWN]
    with figure(6.4, 1.5 * len(worst)) as paper:
        axes = paper.subplots(len(worst), 2, squeeze=False)
        for (left, right), k in zip(axes, worst, strict=True):
            counts = ranks(x[:, :, k])
            for chain, row in enumerate(counts):
                left.step(np.arange(len(row)), row, where="mid", linewidth=0.9)
                thin = max(1, x.shape[1] // 200)
                right.plot(np.arange(x.shape[1])[::thin], x[chain, ::thin, k], linewidth=0.5)
            left.axhline(x.shape[1] / BINS, color="0.5", linewidth=0.7, linestyle=":")
            left.set_ylim(bottom=0)
            left.set_title(names[k], fontsize=8, loc="left")
            _small(left)
            _small(right)
        axes[-1][0].set_xlabel(f"rank among all draws, in {BINS} bins", fontsize=8)
        axes[-1][1].set_xlabel("draw", fontsize=8)
        svg = to_svg(paper)
    return Figure(
        svg,
        "Ranks of each chain's draws (flat where chains agree) and their traces, of the parameters "
        "with the fewest effective draws.",
        "Rank histograms and traces of chains.",
    )


def _small(axes: "Axes") -> None:
    axes.tick_params(labelsize=7)


def _groups(posterior: Any) -> Figure:
    effect, term = posterior.effects[0].numpy(), posterior.terms[0]  # (S, G, k)
    low, high = np.quantile(effect, [0.05, 0.95], axis=0)
    mean = effect.mean(0)
    order = np.argsort(mean[:, 0])
    order = order[np.unique(np.linspace(0, len(order) - 1, GROUPS).round().astype(int))]
    names = [str(term.levels[k])[:24] for k in order]
    with figure(6.4, 1.0 + 0.16 * len(order)) as paper:
        axes = paper.subplots(1, effect.shape[2], squeeze=False, sharey=True)[0]
        place = np.arange(len(order))
        for j, panel in enumerate(axes):
            panel.hlines(place, low[order, j], high[order, j], linewidth=0.9)
            panel.plot(mean[order, j], place, "o", markersize=2.5)
            panel.axvline(0, color="0.5", linewidth=0.7, linestyle=":")
            panel.set_title(term.term.columns[j], fontsize=8, loc="left")
            panel.set_yticks(place, names)
            _small(panel)
        svg = to_svg(paper)
    shown = "" if len(order) == len(mean) else f" {len(order)} of {len(mean)} are shown."
    return Figure(
        svg,
        f"Deviations of the groups of {term.term.label} from the population, with 90 % intervals."
        + shown,
        "Group effects with intervals.",
    )
