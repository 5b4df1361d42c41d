"""Two models of censored times, scored row by row."""

import torch

from ansatz.errors import DataError
from ansatz.likelihoods import Cox, DiscreteHazard
from ansatz.metrics.survival import brier_rows
from ansatz.outcomes.survival_metrics import log_survival_at
from ansatz.outcomes.survival_times import times_and_causes
from ansatz.report.evaluated import Evaluated
from ansatz.report.paired_scores import ScorePair


def by_brier(a: Evaluated, b: Evaluated) -> bool:
    """Whether the two have no likelihood in common, and the Brier score must serve."""
    measures = [_measure(evaluated) for evaluated in (a, b)]
    if "intervals" in measures and measures[0] == measures[1]:
        assert isinstance(a.likelihood, DiscreteHazard) and isinstance(b.likelihood, DiscreteHazard)
        return not (
            a.likelihood.cuts.shape == b.likelihood.cuts.shape
            and torch.equal(a.likelihood.cuts, b.likelihood.cuts)
        )
    return measures[0] != measures[1]


def _measure(evaluated: Evaluated) -> str:
    if isinstance(evaluated.likelihood, Cox):
        return "partial"
    if isinstance(evaluated.likelihood, DiscreteHazard):
        return "intervals"
    assert evaluated.distribution is not None
    return "counts" if evaluated.distribution.discrete else "density"


def survival_pair(a: Evaluated, b: Evaluated) -> ScorePair:
    """By the likelihood that both have, else by the integrated Brier score."""
    if not by_brier(a, b):
        name = "partial log score" if isinstance(a.likelihood, Cox) else "log score"
        note = (
            "each row's share of the partial likelihood." if isinstance(a.likelihood, Cox) else None
        )
        return ScorePair(name, a.log_scores.numpy(), b.log_scores.numpy(), True, note)
    found = integrated_brier_pair(a, b)
    if found is None:
        raise DataError(
            f"{a.likelihood_name} and {b.likelihood_name} have no likelihood in common, and these rows have no "
            "integrated Brier score: there is nothing to compare by."
        )
    note = f"{a.likelihood_name} and {b.likelihood_name} have no likelihood in common."
    return found._replace(note=note)


def integrated_brier_pair(a: Evaluated, b: Evaluated) -> ScorePair | None:
    """Each row's part of the integrated Brier score; None where it is not defined."""
    followed = a.model.of_times.followed
    known = times_and_causes(a.likelihood, a.job.y.numpy())
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
    for evaluated in (a, b):
        with torch.no_grad():
            distribution = evaluated.likelihood.distribution(evaluated.raw)
            curves = log_survival_at(distribution, grid.tolist()).exp()
        terms = brier_rows(
            *(curves, grid, time, event, followed.time, followed.event),
            weight=a.job.weight,
            train_weight=followed.weight,
        )
        parts.append((torch.trapezoid(terms, grid, dim=1) / (grid[-1] - grid[0])).numpy())
    return ScorePair("integrated_brier", parts[0], parts[1], higher=False)


def _has_causes(evaluated: Evaluated) -> bool:
    return int(getattr(evaluated.likelihood, "causes", 1)) > 1
