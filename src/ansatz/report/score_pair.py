"""Two models scored row by row in one measure, or refused where there is none."""

from ansatz.report.judged import Judged
from ansatz.report.measure import require_same_kind
from ansatz.report.paired_scores import ScorePair


def score_pair(a: Judged, b: Judged) -> ScorePair:
    """The log scores of two models, in one measure; where there is none, the error says why.

    Laws of survival times that have no likelihood in common (Cox's is partial, that of discrete
    hazards one of intervals) are compared by the integrated Brier score. A loss that is no law is
    compared by itself, masks by Dice's coefficient of each image.

    Args:
        a: the one model on some rows.
        b: the other on the same rows.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.report.judged import judge_rows
        >>> from ansatz.report.score_pair import score_pair
        >>> x, y = np.arange(20.0).reshape(-1, 1), np.arange(20.0) % 3 + 1
        >>> made = [Regressor(law, network="linear").fit(x, y) for law in ("normal", "poisson")]
        >>> job = made[0].read_again(x, y)
        >>> score_pair(*(judge_rows(each.likelihood, each.model_, job) for each in made))
        Traceback (most recent call last):
        ...
        ansatz.errors.DataError: normal has a density and poisson probabilities: ...
    """
    require_same_kind(a, b)
    return a.outcome_report.score_pair(a, b)


def score_beside(a: Judged, b: Judged) -> ScorePair | None:
    """A second score: CRPS, energy score, Brier score or integrated Brier score; that of cells.

    None where there is none for both: rankings, losses, targets on different scales.

    Args:
        a: the one model.
        b: the other.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.report.judged import judge_rows
        >>> from ansatz.report.score_pair import score_beside
        >>> x = np.arange(20.0).reshape(-1, 1)
        >>> model = Regressor(network="linear").fit(x, x[:, 0] % 3)
        >>> judged = judge_rows("line", model.model_, model.read_again(x, x[:, 0] % 3))
        >>> score_beside(judged, judged).name
        'crps'
    """
    return a.outcome_report.score_beside(a, b)
