"""Two models scored row by row in one measure, or refused where there is none."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.report.judged import Judged
from ansatz.report.loss_pair import loss_pair
from ansatz.report.measure import change_between, require_same_kind, require_same_measure
from ansatz.report.paired_scores import ScorePair
from ansatz.report.survival_pair import by_brier, integrated_brier_pair, survival_pair


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
        >>> job = made[0]._read(x, y)
        >>> score_pair(*(judge_rows(model.likelihood, model, job) for model in made))
        Traceback (most recent call last):
        ...
        ansatz.errors.DataError: normal has a density and poisson probabilities: ...
    """
    require_same_kind(a, b)
    if a.kind == "survival":
        return survival_pair(a, b)
    if a.elements is not None:
        return a.elements.score_pair(a, b)
    if a.distribution is None or b.distribution is None:
        return loss_pair(a, b)
    change = change_between(a, b) if a.kind == "number" else None
    if a.kind == "number":
        require_same_measure(a, b, change)
    scores = b.log_scores.numpy()
    if change is None:
        return ScorePair("log score", a.log_scores.numpy(), scores, higher=True)
    note = (
        f"the target of {b.name} is that of {a.name} on another scale ({change.name}): its density "
        "was translated."
    )
    return ScorePair("log score", a.log_scores.numpy(), scores + change.log_slope, True, note)


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
        >>> judged = judge_rows("line", model, model._read(x, x[:, 0] % 3))
        >>> score_beside(judged, judged).name
        'crps'
    """
    if a.kind == "survival":
        return None if by_brier(a, b) else integrated_brier_pair(a, b)
    if a.elements is not None:
        return a.elements.score_beside(a, b)
    if a.kind == "ranking" or a.distribution is None or b.distribution is None:
        return None
    if a.kind == "class":
        return ScorePair("brier", _brier(a), _brier(b), higher=False)
    if change_between(a, b) is not None:
        return None
    for name in ("energy_score", "crps"):
        if all(hasattr(judged.distribution, name) for judged in (a, b)):
            first, second = (_by_method(judged, name) for judged in (a, b))
            if np.isfinite(first).all() and np.isfinite(second).all():
                return ScorePair(name, first, second, higher=False)
            return None
    return None


def _by_method(judged: Judged, name: str) -> NDArray[np.float64]:
    with torch.no_grad():
        terms: Tensor = getattr(judged.distribution, name)(judged.value)
    return terms.double().reshape(len(terms), -1).mean(1).numpy()


def _brier(judged: Judged) -> NDArray[np.float64]:
    """(p - y)^2 of two classes, the sum over the classes of more."""
    probability = judged.distribution.probs.double()  # type: ignore[union-attr]
    y = judged.job.y.long()
    if probability.ndim == 1:
        return ((probability - y) ** 2).numpy()
    hit = torch.nn.functional.one_hot(y, probability.shape[-1])
    both = ((probability - hit) ** 2).sum(-1)
    return (both / 2 if probability.shape[-1] == 2 else both).numpy()
