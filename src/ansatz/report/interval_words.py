"""Whether intervals hold what they promise, in a sentence."""

import math

import torch

from ansatz.figures.number import percent
from ansatz.report.evidence import Evidence
from ansatz.report.shares import wilson

LEVEL = 0.9  # of the intervals whose coverage is told


def of_intervals(evidence: Evidence) -> str:
    """The coverage of 90 % intervals with a Wilson interval."""
    assert evidence.distribution is not None
    with torch.no_grad():
        low, high = evidence.distribution.interval(LEVEL)
    inside = ((evidence.value >= low) & (evidence.value <= high)).double()
    if getattr(evidence.distribution, "circular", False):  # an arc may pass the cut
        turn = 2 * math.pi
        inside = (((evidence.value - low) % turn) <= ((high - low) % turn)).double()
    rows = inside.reshape(len(inside), -1).mean(1)
    total = float(evidence.weight.sum())
    share, least, most = wilson(float((rows * evidence.weight).sum()), total)
    range_ = (
        f"{percent(share)} of the {evidence.unit.many} (95 % interval {percent(least)} to "
        f"{percent(most)})"
    )
    said = f"its {LEVEL:.0%} intervals".replace("%", " %")
    if least <= LEVEL <= most:
        return f"{said} cover {range_}, as they should."
    if share > LEVEL:
        if evidence.distribution.discrete:
            return f"{said} cover {range_}; intervals of counts cover at least what they promise."
        return f"{said} cover {range_}: they are too wide."
    return f"{said} cover {range_}: they are too narrow."
