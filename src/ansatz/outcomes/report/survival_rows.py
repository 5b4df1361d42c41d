"""Held-out survival outcomes, as metrics take them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ansatz.outcomes.survival_times import times_and_causes
from ansatz.report.evidence import Evidence

Numbers = NDArray[np.float64]


class SurvivalRows(NamedTuple):
    """Held-out survival outcomes.

    Args:
        time: ``(N,)``.
        cause: ``(N,)``, 0 for censored.
        weight: ``(N,)``.
        entry: ``(N,)``, or None where all were watched from the beginning.
    """

    time: Numbers
    cause: Numbers
    weight: Numbers
    entry: Numbers | None


def survival_rows(evidence: Evidence) -> SurvivalRows | None:
    """Times, causes and entries; None where an event is known as an interval only."""
    known = times_and_causes(evidence.likelihood, evidence.outcome.numpy())
    if known is None:
        return None
    time, cause = (np.ascontiguousarray(part) for part in known)
    entry = np.ascontiguousarray(evidence.outcome.numpy()[:, 2])
    late = bool((entry > min(0.0, float(time.min()))).any())
    return SurvivalRows(time, cause, evidence.weight.numpy(), entry if late else None)
