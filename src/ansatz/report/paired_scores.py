"""Scores two models row by row in a common measure."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.errors import DataError
from ansatz.fitting.contracts.inference import Predictive
from ansatz.fitting.contracts.outcome import Metrics
from ansatz.fitting.job import Job
from ansatz.fitting.model import Model
from ansatz.likelihoods import Distribution, Likelihood, Quantiles
from ansatz.registry import load

if TYPE_CHECKING:
    from ansatz.report.outcome_report import OutcomeReport


class Evaluated(NamedTuple):
    """A model with its predictive distribution for some rows."""

    name: str
    model: Model
    job: Job
    likelihood: Likelihood
    raw: Tensor  # as served
    distribution: Distribution | None  # None for a loss of numbers
    value: Tensor  # what the distribution is evaluated by

    @property
    def predictive(self) -> Predictive:
        """The likelihood with its numbers, as served."""
        return Predictive(self.likelihood, self.raw)

    @property
    def outcome_report(self) -> "OutcomeReport":
        """How such outcomes are compared."""
        found: OutcomeReport = load(self.model.outcome.report)()
        return found

    @property
    def log_scores(self) -> Tensor:
        """The log score of each row, ``(N,)``; of several targets their mean, as in ``nll``."""
        return -self.model.outcome.row_losses(self.predictive, self.job.y)

    @property
    def likelihood_name(self) -> str:
        """The name as in options: a censored Weibull distribution is weibull."""
        return str(getattr(self.likelihood, "likelihood", self.likelihood).name)

    def metrics(self) -> Metrics:
        """Every metric that applies, as the fit reports them."""
        return self.model.evaluate(self.job)


def evaluate_rows(name: str, model: Model, job: Job) -> Evaluated:
    """Predicts the rows of a job."""
    served = model.predictive(job.rows, job.offset, notes=[])
    return Evaluated(name, model, job, *served, *model.outcome.distribution(served, job.y))


class ScorePair(NamedTuple):
    """One score of each row by each of two models."""

    name: str  # of the score
    a: NDArray[np.float64]  # ``(N,)`` of the one model
    b: NDArray[np.float64]  # ``(N,)`` of the other
    higher: bool  # whether larger is better
    note: str | None = None  # a remark for the reader

    @property
    def gain(self) -> NDArray[np.float64]:
        """By how much a is better, row by row; 0 where both are minus infinity."""
        better, worse = (self.a, self.b) if self.higher else (self.b, self.a)
        return np.subtract(better, worse, out=np.zeros(len(better)), where=better != worse)


Array = NDArray[np.float64]


class VariableChange(NamedTuple):
    r"""A change of variable b = g(a), verified on every row, with log |g'(a)| of each.

    Densities transform by :math:`p_a(a) = p_b(g(a))\, |g'(a)|`.
    """

    name: str
    log_slope: Array


class _Candidate(NamedTuple):
    name: str
    value: Callable[[Array], Array]
    log_slope: Callable[[Array], Array]


_CANDIDATES = (
    _Candidate("log", np.log, lambda a: -np.log(a)),
    _Candidate("log1p", np.log1p, lambda a: -np.log1p(a)),
    _Candidate("log10", np.log10, lambda a: -np.log(a) - np.log(np.log(10))),
    _Candidate("log2", np.log2, lambda a: -np.log(a) - np.log(np.log(2))),
    _Candidate("sqrt", np.sqrt, lambda a: -0.5 * np.log(a) - np.log(2)),
    _Candidate("cube root", np.cbrt, lambda a: -2 / 3 * np.log(np.abs(a)) - np.log(3)),
    _Candidate("inverse", lambda a: 1 / a, lambda a: -2 * np.log(np.abs(a))),
    _Candidate("exp", np.exp, lambda a: a),
    _Candidate("expm1", np.expm1, lambda a: a),
    _Candidate("power of 10", lambda a: 10**a, lambda a: a * np.log(10) + np.log(np.log(10))),
    _Candidate("power of 2", lambda a: 2**a, lambda a: a * np.log(2) + np.log(np.log(2))),
    _Candidate("cube", lambda a: a**3, lambda a: np.log(3) + 2 * np.log(np.abs(a))),
)


def find_change(a: Array, b: Array) -> VariableChange | None:
    """Finds the known function that maps every a to its b, if there is one.

    Tried are a change of units (b = c + s a), logarithms, roots, the inverse, and their
    inverses; the square where no a is negative.
    """
    if a.shape != b.shape or a.ndim != 1 or len(np.unique(a)) < 2:
        return None
    units = _units(a, b)
    if units is not None:
        return units
    candidates = list(_CANDIDATES)
    if (a >= 0).all():
        candidates.append(_Candidate("square", np.square, lambda x: np.log(2 * np.abs(x))))
    with np.errstate(all="ignore"):
        for candidate in candidates:
            value = candidate.value(a)
            if np.isfinite(value).all() and np.allclose(value, b, rtol=1e-6, atol=1e-9):
                slope = candidate.log_slope(a)
                return VariableChange(candidate.name, slope) if np.isfinite(slope).all() else None
    return None


def _units(a: Array, b: Array) -> VariableChange | None:
    low, high = int(a.argmin()), int(a.argmax())
    slope = float((b[high] - b[low]) / (a[high] - a[low]))
    # Rounding to the last digit of a file moves both ends a little.
    straight, span = b[low] + slope * (a - a[low]), float(np.ptp(b))
    if slope == 0 or span == 0 or len(np.unique(a)) < 3:
        return None
    if not np.abs(straight - b).max() <= 1e-6 * span:
        return None
    return VariableChange("units", np.full(len(a), np.log(abs(slope))))


def require_same_kind(a: Evaluated, b: Evaluated) -> None:
    """Rejects a comparison of classes with numbers, or of models of different classes."""
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


def change_between(a: Evaluated, b: Evaluated) -> VariableChange | None:
    """Finds the change of variable between two models' outcomes; None if they are equal."""
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


def require_same_measure(a: Evaluated, b: Evaluated, change: VariableChange | None) -> None:
    """Rejects densities against probabilities, also at an atom that occurs in the rows."""
    first, second = a.distribution, b.distribution
    assert first is not None and second is not None
    if first.discrete != second.discrete:
        density, mass = (a, b) if second.discrete else (b, a)
        raise DataError(
            f"{density.likelihood_name} has a density and {mass.likelihood_name} probabilities: "
            "their log scores are not comparable. Fit both with likelihoods of counts, or both "
            "with continuous likelihoods."
        )
    if first.discrete:
        if change is not None:
            raise DataError(
                f"{a.name} and {b.name} count different outcomes: give both the same target."
            )
        return
    if (a.likelihood_name == "dirichlet") != (b.likelihood_name == "dirichlet"):
        raise DataError(
            "dirichlet has its density on the simplex: it is comparable with dirichlet only."
        )
    if hasattr(first, "cdf") and hasattr(second, "cdf") and not a.likelihood.event_ndim:
        _require_same_atoms(a, b)


def _require_same_atoms(a: Evaluated, b: Evaluated) -> None:
    """Rejects values with a probability in one likelihood and a density in the other."""
    assert a.distribution is not None and b.distribution is not None
    first, second = atoms(a.distribution), atoms(b.distribution)
    for evaluated, values in ((a, first - second), (b, second - first)):
        other = b if evaluated is a else a
        for value in sorted(values):
            count = int((evaluated.value == value).sum())
            if count:
                raise DataError(
                    f"{evaluated.likelihood_name} gives {value:g} a probability and "
                    f"{other.likelihood_name} a density, and {count} rows have it: their log "
                    "scores are not comparable."
                )


def atoms(distribution: Distribution) -> set[float]:
    """Finds the ends of the support with positive probability, such as 0 for tweedie."""
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
    """Rejects rows whose classes, orders or times differ; numbers may change scale."""
    if not a.outcome_report.same_outcomes(a, b):
        raise DataError(f"{a.name} and {b.name} have different outcomes in the same rows.")


def score_pair(a: Evaluated, b: Evaluated) -> ScorePair:
    """Computes the log scores of two models in a common measure, or raises with the reason.

    Survival models without a common likelihood (Cox's is partial, that of discrete hazards is of
    intervals) are compared by the integrated Brier score, losses by themselves, masks by the Dice
    coefficient of each image.
    """
    require_same_kind(a, b)
    return a.outcome_report.score_pair(a, b)


def number_pair(a: Evaluated, b: Evaluated) -> ScorePair:
    """Computes the log scores of two models of numbers; losses are compared by themselves."""
    if a.distribution is None or b.distribution is None:
        return loss_pair(a, b)
    change = change_between(a, b)
    require_same_measure(a, b, change)
    if change is None:
        return log_score_pair(a, b)
    note = (
        f"the target of {b.name} is that of {a.name} on another scale ({change.name}): its density "
        "was transformed."
    )
    scores = b.log_scores.numpy() + change.log_slope
    return ScorePair("log score", a.log_scores.numpy(), scores, True, note)


def log_score_pair(a: Evaluated, b: Evaluated) -> ScorePair:
    """Computes the log scores of two models with a common measure."""
    return ScorePair("log score", a.log_scores.numpy(), b.log_scores.numpy(), higher=True)


def number_beside(a: Evaluated, b: Evaluated) -> ScorePair | None:
    """Computes CRPS or energy score; None for losses and targets on different scales."""
    if a.distribution is None or b.distribution is None or change_between(a, b) is not None:
        return None
    for name in ("energy_score", "crps"):
        if all(hasattr(evaluated.distribution, name) for evaluated in (a, b)):
            first, second = (_by_method(evaluated, name) for evaluated in (a, b))
            if np.isfinite(first).all() and np.isfinite(second).all():
                return ScorePair(name, first, second, higher=False)
            return None
    return None


def _by_method(evaluated: Evaluated, name: str) -> NDArray[np.float64]:
    with torch.no_grad():
        terms: Tensor = getattr(evaluated.distribution, name)(evaluated.value)
    return terms.double().reshape(len(terms), -1).mean(1).numpy()


def loss_pair(a: Evaluated, b: Evaluated) -> ScorePair:
    """Computes the loss of the first model that has one; the other enters by the matching point.

    That is its mean for squared error, its median for absolute error, its quantiles for pinball.
    """
    owner = a if a.distribution is None else b
    if change_between(a, b) is not None:
        raise DataError(
            f"{a.name} and {b.name} predict one quantity on two scales: a loss cannot be "
            "transformed. Give both the same target."
        )
    scores = [_loss_of(owner, evaluated) for evaluated in (a, b)]
    note = f"{owner.likelihood_name} is a loss, not a likelihood: the models are compared by it."
    return ScorePair(owner.likelihood_name, scores[0], scores[1], higher=False, note=note)


def _loss_of(owner: Evaluated, evaluated: Evaluated) -> NDArray[np.float64]:
    y, likelihood = owner.job.y, owner.likelihood
    with torch.no_grad():
        if (
            evaluated.likelihood.name == likelihood.name
            and evaluated.likelihood.options == likelihood.options
        ):
            terms = likelihood.loss(evaluated.raw, y)
        elif isinstance(likelihood, Quantiles):
            terms = _pinball(likelihood, evaluated, y)
        elif not likelihood.has_distribution and likelihood.support == "real":
            if likelihood.name == "mae" and evaluated.distribution is not None:
                point = evaluated.distribution.median
            else:
                point = evaluated.likelihood.point(evaluated.raw)
            terms = likelihood.loss(point.unsqueeze(-1), y)
        else:
            raise DataError(
                f"{owner.name} has the loss {likelihood.name}, by which {evaluated.name} "
                f"({evaluated.likelihood_name}) cannot be evaluated."
            )
    return terms.double().reshape(len(terms), -1).mean(1).numpy()


def _pinball(likelihood: Quantiles, evaluated: Evaluated, y: Tensor) -> Tensor:
    if evaluated.distribution is None:
        raise DataError(
            f"{evaluated.likelihood_name} predicts a point: it has no quantiles to compare by."
        )
    levels = torch.tensor(likelihood.levels, dtype=torch.float64)
    like = evaluated.distribution.mean
    at = torch.stack(
        [evaluated.distribution.icdf(torch.full_like(like, q)) for q in likelihood.levels], -1
    )
    error = y.unsqueeze(-1) - at
    return torch.maximum(levels * error, (levels - 1) * error).sum(-1)
