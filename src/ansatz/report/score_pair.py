"""Two models scored row by row in one measure, or refused where there is none."""

from ansatz.report.evaluated import Evaluated
from ansatz.report.measure import require_same_kind
from ansatz.report.paired_scores import ScorePair


def score_pair(a: Evaluated, b: Evaluated) -> ScorePair:
    """The log scores of two models, in one measure; where there is none, the error says why.

    Likelihoods of survival times that have no likelihood in common (Cox's is partial, that of
    discrete hazards one of intervals) are compared by the integrated Brier score. A loss that is no
    likelihood is compared by itself, masks by Dice's coefficient of each image.

    Args:
        a: the one model on some rows.
        b: the other on the same rows.
    """
    require_same_kind(a, b)
    return a.outcome_report.score_pair(a, b)


def score_beside(a: Evaluated, b: Evaluated) -> ScorePair | None:
    """A second score: CRPS, energy score, Brier score or integrated Brier score; that of cells.

    None where there is none for both: rankings, losses, targets on different scales.

    Args:
        a: the one model.
        b: the other.
    """
    return a.outcome_report.score_beside(a, b)
