"""A comparison in one sentence."""

import math

import numpy as np

from ansatz.report.difference import Difference
from ansatz.report.methods import Methods
from ansatz.report.paired_scores import ScorePair


def fits_verdict(a: str, b: str, difference: Difference, pair: ScorePair) -> tuple[str, str | None]:
    """Which of two fitted models is better on their test rows; None where chance explains it.

    Args:
        a: name of the one.
        b: name of the other.
        difference: of their gains, positive where a is better.
        pair: their scores.
    """
    name = "loss" if pair.note and "is a loss" in pair.note else _called(pair.name)
    rows = f"on {difference.rows} test rows"
    if math.isnan(difference.mean):
        return f"Not comparable: each model gives some outcomes probability 0 {rows}.", None
    if math.isinf(difference.mean):
        winner, loser = (a, b) if difference.mean > 0 else (b, a)
        scores = pair.b if difference.mean > 0 else pair.a
        count = int((~np.isfinite(scores)).sum())
        outcomes = "1 outcome" if count == 1 else f"{count} outcomes"
        return f"{winner} is better: {loser} gives {outcomes} probability 0 {rows}.", winner
    size = f"{abs(difference.mean):.2g}"
    if difference.error is None:
        return f"Not distinguishable: too few {rows} to tell a standard error.", None
    if np.array_equal(pair.a, pair.b):
        return f"Not distinguishable: the models predict the same {rows}.", None
    error = f"{difference.error:.2g}"
    if not difference.is_clear:
        return (
            f"Not distinguishable: the {name} differs by {size} with a standard error of {error} "
            f"{rows}.",
            None,
        )
    winner = a if difference.mean > 0 else b
    direction = "higher" if pair.higher else "lower"
    return (
        f"{winner} is better: its {name} is {direction} by {size} (standard error {error}) {rows}.",
        winner,
    )


def methods_verdict(methods: Methods) -> tuple[str, str | None]:
    """Which method is better on average over refits; None where chance explains it."""
    first = methods.table[0]
    others = sorted(methods.table[1:], key=lambda method: -method.gain)
    baseline = others[0]
    name = _called(methods.score)
    refits = f"over {methods.folds * methods.repeats} refits"
    if baseline.error is None or not math.isfinite(baseline.gain):
        if math.isinf(baseline.gain):
            winner, loser = (baseline, first) if baseline.gain > 0 else (first, baseline)
            return (
                f"{winner.name} is the better method: {loser.name} gives some outcomes "
                f"probability 0 {refits}.",
                winner.name,
            )
        return f"Not comparable: the scores are not finite {refits}.", None
    size, error = f"{abs(baseline.gain):.2g}", f"{baseline.error:.2g}"
    if not baseline.is_clear:
        return (
            f"Not distinguishable as methods: {baseline.name} and {first.name} differ by {size} in "
            f"{name} with a corrected standard error of {error} {refits}.",
            None,
        )
    winner = baseline if baseline.gain > 0 else first
    direction = "higher" if methods.higher else "lower"
    return (
        f"{winner.name} is the better method: its {name} is {direction} by {size} (corrected "
        f"standard error {error}) {refits}.",
        winner.name,
    )


def _called(score: str) -> str:
    """A score as it is called in a sentence."""
    return {"integrated_brier": "integrated Brier score"}.get(score, score)
