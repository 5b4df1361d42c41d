"""Two models of censored times, scored row by row."""

import torch

from ansatz.errors import DataError
from ansatz.likelihoods import Cox, DiscreteHazard
from ansatz.metrics.survival import brier_rows
from ansatz.outcomes.survival_law import times_and_causes
from ansatz.outcomes.survival_metrics import log_survival_at
from ansatz.report.judged import Judged
from ansatz.report.paired_scores import ScorePair


def by_brier(a: Judged, b: Judged) -> bool:
    """Whether the two have no likelihood in common, and the Brier score must serve."""
    measures = [_measure(judged) for judged in (a, b)]
    if "intervals" in measures and measures[0] == measures[1]:
        assert isinstance(a.law, DiscreteHazard) and isinstance(b.law, DiscreteHazard)
        return not (a.law.cuts.shape == b.law.cuts.shape and torch.equal(a.law.cuts, b.law.cuts))
    return measures[0] != measures[1]


def _measure(judged: Judged) -> str:
    if isinstance(judged.law, Cox):
        return "partial"
    if isinstance(judged.law, DiscreteHazard):
        return "intervals"
    assert judged.distribution is not None
    return "counts" if judged.distribution.discrete else "density"


def survival_pair(a: Judged, b: Judged) -> ScorePair:
    """By the likelihood that both have, else by the integrated Brier score."""
    if not by_brier(a, b):
        name = "partial log score" if isinstance(a.law, Cox) else "log score"
        note = "each row's share of the partial likelihood." if isinstance(a.law, Cox) else None
        return ScorePair(name, a.log_scores.numpy(), b.log_scores.numpy(), True, note)
    found = integrated_brier_pair(a, b)
    if found is None:
        raise DataError(
            f"{a.law_name} and {b.law_name} have no likelihood in common, and these rows have no "
            "integrated Brier score: there is nothing to compare by."
        )
    note = f"{a.law_name} and {b.law_name} have no likelihood in common."
    return found._replace(note=note)


def integrated_brier_pair(a: Judged, b: Judged) -> ScorePair | None:
    """Each row's part of the integrated Brier score; None where it is not defined."""
    followed = a.model.of_times.followed
    known = times_and_causes(a.law, a.job.y.numpy())
    if known is None or not len(followed.time) or _has_causes(a) or _has_causes(b):
        return None
    time, event = (torch.from_numpy(part) for part in known)
    entry = a.job.y[:, 2]
    seen = time[event > 0]
    if len(seen) < 2 or bool((entry > min(0.0, float(time.min()))).any()):
        return None
    first, last = float(seen.min()), min(float(seen.max()), followed.horizon)
    if not first < last:
        return None
    grid = torch.linspace(first, last, 101, dtype=torch.float64)[:-1]
    parts = []
    for judged in (a, b):
        with torch.no_grad():
            law = judged.law.distribution(judged.raw)
            curves = log_survival_at(law, grid.tolist()).exp()
        terms = brier_rows(
            *(curves, grid, time, event, followed.time, followed.event),
            weight=a.job.weight,
            train_weight=followed.weight,
        )
        parts.append((torch.trapezoid(terms, grid, dim=1) / (grid[-1] - grid[0])).numpy())
    return ScorePair("integrated_brier", parts[0], parts[1], higher=False)


def _has_causes(judged: Judged) -> bool:
    return int(getattr(judged.law, "causes", 1)) > 1
