"""The verdict of a report in two sentences."""

import math

import numpy as np
import torch
from scipy import stats

from ansatz.figures.number import number, percent
from ansatz.figures.printable import printable
from ansatz.report.evidence import Evidence
from ansatz.report.scores import verdict
from ansatz.report.shares import wilson
from ansatz.report.what_was_fitted import describe_network, law_name

LEVEL = 0.9  # of the intervals whose coverage is told


def headline(evidence: Evidence) -> list[str]:
    """What was fitted and whether it beats simpler models; whether it is calibrated.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.report import gather
        >>> from ansatz.report.headline import headline
        >>> x = np.arange(60.0).reshape(-1, 1)
        >>> model = Regressor("normal", network="linear").fit(x, np.cos(x[:, 0]))
        >>> headline(gather(model, x, np.cos(x[:, 0])))[1].startswith("Calibration:")
        True
    """
    count = len(evidence.weight)
    what = (
        f"{describe_network(evidence).capitalize()} of {printable(evidence.target, 80)} with the "
        f"{law_name(evidence)} {'law' if evidence.law.is_law else 'loss'}, judged on {count} "
        f"{evidence.unit.many} that it never saw:"
    )
    beats = verdict(evidence, "linear") or verdict(evidence, "constant")
    if not beats:
        beats = "there was no simpler model to compare it with."
    return [f"{what} {beats[0].lower()}{beats[1:]}", f"Calibration: {calibration(evidence)}"]


def calibration(evidence: Evidence) -> str:
    """Whether what is said to happen so often does, in a sentence.

    Numbers: the coverage of 90 % intervals with a Wilson interval. Classes: Spiegelhalter's test
    of the probabilities. Survival: whether as many rows had the event as the curves expected.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.report import gather
        >>> from ansatz.report.headline import calibration
        >>> x = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = Regressor("normal", network="linear").fit(x[:, :1], x[:, 1])
        >>> calibration(gather(model, x[:, :1], x[:, 1]))[:36]
        'its 90 % intervals cover 89 % of the'

    References:
        Spiegelhalter (1986), Probabilistic prediction in patient management and clinical trials.
        https://doi.org/10.1002/sim.4780050506
    """
    if evidence.elements is not None:
        return evidence.elements.calibration(evidence)
    law = evidence.distribution
    if law is None:
        return "a loss predicts a point, no distribution whose calibration could be judged."
    if evidence.is_survival:
        return _of_survival(evidence)
    if hasattr(law, "ranks"):
        return "orders have no intervals to be judged by."
    if evidence.classes is not None:
        return _of_classes(evidence)
    if evidence.law.event_ndim and evidence.value.ndim != 1:
        return "outcomes are vectors; the residuals below judge them part by part."
    return _of_intervals(evidence)


def _of_intervals(evidence: Evidence) -> str:
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


def _of_survival(evidence: Evidence) -> str:
    """Events against the sum of the cumulative hazards that the rows lived through."""
    from ansatz.outcomes.survival_law import times_and_causes

    known = times_and_causes(evidence.law, evidence.outcome.numpy())
    law = evidence.distribution
    if known is None or law is None:
        return "times are known as intervals; see the residuals below."
    time, event = (torch.from_numpy(np.array(part)) for part in known)
    entry = evidence.outcome[:, 2]
    with torch.no_grad():
        hazard = -law.log_survival(time)
        late = entry.isfinite() & (entry > 0)
        if bool(late.any()):
            before = -law.log_survival(torch.where(late, entry, time))
            hazard = hazard - torch.where(late, before, 0.0)
    seen = float((evidence.weight * (event > 0)).sum())
    expected = float((evidence.weight * hazard).sum())
    if not (math.isfinite(expected) and expected > 0 and seen > 0):
        return "see the curves at horizons below."
    ratio = seen / expected
    # A count of events has the variance of its expectation (a martingale's).
    spread = math.exp(1.96 / seen**0.5)
    low, high = ratio / spread, ratio * spread
    told = (
        f"{number(seen)} events where its curves expect {number(expected, 3)}, a ratio of "
        f"{ratio:.2f} (95 % interval {low:.2f} to {high:.2f})"
    )
    if low <= 1 <= high:
        return f"{told}; it is calibrated as far as these {evidence.unit.many} can tell."
    return f"{told}: its curves fall too {'slowly' if ratio > 1 else 'fast'}."


def spiegelhalter(event: torch.Tensor, forecast: torch.Tensor, weight: torch.Tensor) -> float:
    r"""Spiegelhalter's z: standard normal if each event has the probability that was forecast.

    .. math:: z = \frac{\sum_i w_i (y_i - p_i)(1 - 2 p_i)}
              {\sqrt{\sum_i w_i (1 - 2 p_i)^2 p_i (1 - p_i)}}

    Example:
        >>> import torch
        >>> from ansatz.report.headline import spiegelhalter
        >>> p = torch.tensor([0.2, 0.2, 0.2, 0.2, 0.2])
        >>> round(spiegelhalter(torch.tensor([1.0, 0, 0, 0, 0]), p, torch.ones(5)), 6)
        0.0
    """
    tilt = 1 - 2 * forecast
    variance = float((weight * tilt**2 * forecast * (1 - forecast)).sum())
    return float((weight * (event - forecast) * tilt).sum()) / variance**0.5 if variance else 0.0


def _of_classes(evidence: Evidence) -> str:
    probs = evidence.distribution.probs  # type: ignore[union-attr]
    if evidence.value.ndim != 1:
        return "see the reliability of each outcome below."
    if probs.ndim == 1:
        event, forecast = evidence.value.double(), probs.double()
        assert evidence.classes is not None
        what = f"the probability of '{printable(evidence.classes[1], 40)}'"
    else:
        forecast, code = probs.double().max(-1)
        event = (code == evidence.value).double()
        what = "the probability of the class that it predicts"
    total = float(evidence.weight.sum())
    said = float((forecast * evidence.weight).sum()) / total
    seen = float((event * evidence.weight).sum()) / total
    p = 2 * float(stats.norm.sf(abs(spiegelhalter(event, forecast, evidence.weight))))
    told = f"{what} averages {percent(said)} where {percent(seen)} came true"
    test = f"Spiegelhalter's test, p = {p:.2f}" if p >= 0.01 else "Spiegelhalter's test, p < 0.01"
    verdict_ = (
        f"it is calibrated as far as these {evidence.unit.many} can tell"
        if p >= 0.05
        else "it is not calibrated"
    )
    return f"{told}; {verdict_} ({test})."
