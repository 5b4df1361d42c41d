"""Whether two models give one quantity a score in one measure: densities, or probabilities."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.errors import DataError
from ansatz.likelihoods import Distribution
from ansatz.outcomes.survival_law import times_and_causes
from ansatz.report.change_of_variable import Change, find_change
from ansatz.report.judged import Judged


def require_same_kind(a: Judged, b: Judged) -> None:
    """Refuses to compare classes with numbers, or models that know different classes.

    Example:
        >>> import numpy as np
        >>> from ansatz import Classifier, Regressor
        >>> from ansatz.report.judged import judge_rows
        >>> from ansatz.report.measure import require_same_kind
        >>> x, y = np.arange(20.0).reshape(-1, 1), np.arange(20) % 2
        >>> made = [kind(network="linear").fit(x, y) for kind in (Regressor, Classifier)]
        >>> require_same_kind(*(judge_rows("it", model, model._read(x, y)) for model in made))
        Traceback (most recent call last):
        ...
        ansatz.errors.DataError: it predicts numbers and it classes: ...
    """
    if a.kind != b.kind:
        words = {"number": "numbers", "class": "classes", "ranking": "rankings", "mask": "masks"}
        said = [words.get(judged.kind, "censored times") for judged in (a, b)]
        raise DataError(
            f"{a.name} predicts {said[0]} and {b.name} {said[1]}: their scores have no common "
            "measure. Fit both with laws of one kind."
        )
    for attribute in ("classes_", "items_"):
        labels = [getattr(judged.model, attribute, None) for judged in (a, b)]
        first, second = ([] if label is None else list(map(str, label)) for label in labels)
        if set(first) != set(second):
            raise DataError(f"{a.name} and {b.name} know different {attribute.rstrip('_')}.")


def change_between(a: Judged, b: Judged) -> Change | None:
    """How the other model's outcomes are made of the one's; None where they are the same.

    Example:
        >>> import inspect
        >>> from ansatz.report.measure import change_between
        >>> list(inspect.signature(change_between).parameters)
        ['a', 'b']
    """
    first, second = a.value.numpy(), b.value.numpy()
    if first.shape == second.shape and np.array_equal(first, second):
        return None
    change = None
    if first.ndim == 1 and second.ndim == 1:
        change = find_change(first.astype(np.float64), second.astype(np.float64))
    if change is None:
        raise DataError(
            f"{a.name} and {b.name} predict different outcomes, and neither is a known function of "
            "the other: their scores cannot be compared."
        )
    return change


def require_same_measure(a: Judged, b: Judged, change: Change | None) -> None:
    """Refuses densities against probabilities, also where one law has an atom that rows hit.

    Args:
        a: the one model of numbers.
        b: the other.
        change: between their outcomes, if they are not the same.

    Example:
        >>> import inspect
        >>> from ansatz.report.measure import require_same_measure
        >>> list(inspect.signature(require_same_measure).parameters)
        ['a', 'b', 'change']
    """
    first, second = a.distribution, b.distribution
    assert first is not None and second is not None
    if first.discrete != second.discrete:
        density, mass = (a, b) if second.discrete else (b, a)
        raise DataError(
            f"{density.law_name} has a density and {mass.law_name} probabilities: their log scores "
            "have no common measure. Fit both with laws of counts, or both with continuous laws."
        )
    if first.discrete:
        if change is not None:
            raise DataError(
                f"{a.name} and {b.name} count different outcomes: give both the same target."
            )
        return
    if (a.law_name == "dirichlet") != (b.law_name == "dirichlet"):
        raise DataError(
            "dirichlet has its density on the simplex: it compares with dirichlet alone."
        )
    if hasattr(first, "cdf") and hasattr(second, "cdf") and not a.law.event_ndim:
        _require_same_atoms(a, b)


def _require_same_atoms(a: Judged, b: Judged) -> None:
    """A value that one law gives probability and the other a density has no common score."""
    assert a.distribution is not None and b.distribution is not None
    first, second = atoms(a.distribution), atoms(b.distribution)
    for judged, values in ((a, first - second), (b, second - first)):
        other = b if judged is a else a
        for value in sorted(values):
            count = int((judged.value == value).sum())
            if count:
                raise DataError(
                    f"{judged.law_name} gives {value:g} a probability and {other.law_name} a "
                    f"density, and {count} rows have it: there is no common measure."
                )


def atoms(distribution: Distribution) -> set[float]:
    """The ends of the support that have a probability of their own, as 0 has for tweedie.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Gamma, Tweedie
        >>> from ansatz.report.measure import atoms
        >>> atoms(Tweedie().distribution(torch.zeros(1, 2)))
        {0.0}
        >>> atoms(Gamma().distribution(torch.zeros(1, 2)))
        set()
    """
    found: set[float] = set()
    with torch.no_grad():
        like = distribution.mean
        for end, inner in ((distribution.lower, 0.0), (distribution.upper, -np.inf)):
            if not isinstance(end, float | int) or not np.isfinite(end):
                continue
            at = torch.full_like(like, end)
            if inner == 0.0:
                mass = distribution.cdf(at) > 0
            else:
                mass = distribution.cdf(torch.nextafter(at, at - 1)) < 1 - 1e-9
            if bool(mass.any()):
                found.add(float(end))
    return found


def require_same_outcomes(a: Judged, b: Judged) -> None:
    """Refuses rows whose classes, orders or times are not the same; numbers may change scale.

    Example:
        >>> import inspect
        >>> from ansatz.report.measure import require_same_outcomes
        >>> list(inspect.signature(require_same_outcomes).parameters)
        ['a', 'b']
    """
    if a.kind == "number":
        change_between(a, b)
        return
    if a.kind == "mask":
        same = torch.equal(a.job.y, b.job.y)
    elif a.kind == "survival":
        known = [times_and_causes(judged.law, judged.job.y.numpy()) for judged in (a, b)]
        if known[0] is None or known[1] is None:
            same = torch.equal(a.job.y, b.job.y)
        else:
            (time, cause), (other_time, other_cause) = known[0], known[1]
            same = np.array_equal(time, other_time) and np.array_equal(
                np.minimum(cause, 1), np.minimum(other_cause, 1)
            )
            same = same and torch.equal(a.job.y[:, 2], b.job.y[:, 2])
    else:
        same = np.array_equal(_labels(a), _labels(b))
    if not same:
        raise DataError(f"{a.name} and {b.name} have other outcomes in the same rows.")


def _labels(judged: Judged) -> NDArray[Any]:
    """Outcomes as text; codes below 0 stand for what was not ranked."""
    names = getattr(judged.model, "classes_", getattr(judged.model, "items_", None))
    codes = judged.job.y.long().numpy()
    labels = np.append(np.asarray(names).astype(str), "")
    found: NDArray[Any] = labels[np.where(codes < 0, len(labels) - 1, codes)]
    return found
