"""Whether two models give one quantity a score in one measure: densities, or probabilities."""

import numpy as np
import torch

from ansatz.errors import DataError
from ansatz.likelihoods import Distribution
from ansatz.report.change_of_variable import Change, find_change
from ansatz.report.evaluated import Evaluated


def require_same_kind(a: Evaluated, b: Evaluated) -> None:
    """Refuses to compare classes with numbers, or models that know different classes."""
    first, second = a.model.outcome, b.model.outcome
    if first.name != second.name:
        raise DataError(
            f"{a.name} predicts {first.plural} and {b.name} {second.plural}: their scores have no "
            "common measure. Fit both with likelihoods of one kind."
        )
    known = [
        set() if each.labels is None else set(map(str, each.labels)) for each in (first, second)
    ]
    if known[0] != known[1]:
        raise DataError(f"{a.name} and {b.name} know different {first.labels_are}.")


def change_between(a: Evaluated, b: Evaluated) -> Change | None:
    """How the other model's outcomes are made of the one's; None where they are the same."""
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


def require_same_measure(a: Evaluated, b: Evaluated, change: Change | None) -> None:
    """Refuses densities against probabilities, also where one likelihood has an atom that rows hit.

    Args:
        a: the one model of numbers.
        b: the other.
        change: between their outcomes, if they are not the same.
    """
    first, second = a.distribution, b.distribution
    assert first is not None and second is not None
    if first.discrete != second.discrete:
        density, mass = (a, b) if second.discrete else (b, a)
        raise DataError(
            f"{density.likelihood_name} has a density and {mass.likelihood_name} probabilities: their log scores "
            "have no common measure. Fit both with likelihoods of counts, or both with continuous distributions."
        )
    if first.discrete:
        if change is not None:
            raise DataError(
                f"{a.name} and {b.name} count different outcomes: give both the same target."
            )
        return
    if (a.likelihood_name == "dirichlet") != (b.likelihood_name == "dirichlet"):
        raise DataError(
            "dirichlet has its density on the simplex: it compares with dirichlet alone."
        )
    if hasattr(first, "cdf") and hasattr(second, "cdf") and not a.likelihood.event_ndim:
        _require_same_atoms(a, b)


def _require_same_atoms(a: Evaluated, b: Evaluated) -> None:
    """A value that one likelihood gives probability and the other a density has no common score."""
    assert a.distribution is not None and b.distribution is not None
    first, second = atoms(a.distribution), atoms(b.distribution)
    for evaluated, values in ((a, first - second), (b, second - first)):
        other = b if evaluated is a else a
        for value in sorted(values):
            count = int((evaluated.value == value).sum())
            if count:
                raise DataError(
                    f"{evaluated.likelihood_name} gives {value:g} a probability and {other.likelihood_name} a "
                    f"density, and {count} rows have it: there is no common measure."
                )


def atoms(distribution: Distribution) -> set[float]:
    """The ends of the support that have a probability of their own, as 0 has for tweedie."""
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


def require_same_outcomes(a: Evaluated, b: Evaluated) -> None:
    """Refuses rows whose classes, orders or times are not the same; numbers may change scale."""
    if not a.outcome_report.same_outcomes(a, b):
        raise DataError(f"{a.name} and {b.name} have other outcomes in the same rows.")
