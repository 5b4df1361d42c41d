"""The likelihood of y chosen by the rows: the best out-of-fold log score given x."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from ansatz.data.dates import as_dates
from ansatz.data.keys import mix
from ansatz.fitting.contracts.structure import LikelihoodScores
from ansatz.fitting.job import Job, take
from ansatz.fitting.out_of_fold import Folds, choose_folds
from ansatz.fitting.proposal import candidates as candidates
from ansatz.fitting.task import Task
from ansatz.likelihoods.likelihood import unit_and_floor
from ansatz.seeds import derive
from ansatz.training.machine import own_randomness, using_threads

Row = np.ndarray[Any, Any]  # one number per row

MOST_ROWS = 2_000  # that likelihoods are compared on
FEWEST_ROWS = 20  # below, a score means nothing
PERIODS = 30  # of time, whose sums are taken as independent
MIXED = {"tweedie", "zero_one_inflated_beta"}  # probability at a point, density elsewhere


class LikelihoodScore(NamedTuple):
    """One likelihood's out-of-fold log score, and how far it lies behind the best."""

    likelihood: str
    score: float  # mean over rows; higher is better
    worse: float  # the best likelihood's mean minus this one's
    error: float  # standard error of that difference, row by row
    models: str = ""  # that scored it: "linear models" or "small networks"


class LikelihoodChoice(NamedTuple):
    """The chosen likelihood with its evidence.

    ``str(choice)`` is the table, best likelihood first.
    """

    likelihood: str
    table: tuple[LikelihoodScore, ...]  # simplest likelihood first; empty if none was compared
    explanation: str
    notes: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        """The choice as plain JSON, from which ``of`` makes it again."""
        return {**self._asdict(), "table": self.to_dicts(), "notes": list(self.notes)}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "LikelihoodChoice":
        """The choice that ``plain`` wrote down."""
        table = tuple(LikelihoodScore(**row) for row in record["table"])
        return cls(record["likelihood"], table, record["explanation"], tuple(record["notes"]))

    def to_dicts(self) -> list[dict[str, Any]]:
        """The table as plain JSON, simplest likelihood first."""
        return [row._asdict() for row in self.table]

    def __str__(self) -> str:
        width = max([len(row.likelihood) for row in self.table], default=3)
        lines = [f"{'likelihood':{width}}   log score   worse by   +-"]
        for row in sorted(self.table, key=lambda row: row.worse):
            behind = f"   {row.worse:8.4f}   {row.error:6.4f}" if row.worse > 0 else ""
            lines.append(f"{row.likelihood:{width}}   {row.score:9.4f}{behind}")
        return "\n".join(lines)


def choose_likelihood(
    task: Task,
    candidates: Sequence[str],
    job: Job,
    progress: Callable[[int, int], None] | None = None,
) -> LikelihoodChoice:
    r"""Chooses among likelihoods by their out-of-fold log score given x.

    .. math:: \hat S(p) = \frac{1}{n} \sum_i w_i \log p(y_i \mid x_i,
              \text{fold of } i \text{ left out}), \qquad n = \sum_i w_i

    The best likelihood wins, unless a simpler one (earlier in ``candidates``) lies within one
    standard error of the paired difference of the row scores: then the simplest of these. The score
    given x is the point: y may be over-dispersed or skewed because x varies, without any likelihood
    being so given x. Scores are hedged (:func:`hedge`): a row counts against a likelihood by log n
    at most.

    Each likelihood is given to a small network, trained for some hundred steps on three folds of at
    most 2,000 rows; to its linear model where the model to be fitted is linear or the rows are
    fewer than 100, provided there are five rows per coefficient. Folds follow the hash of the
    content, the group or, forward, the time. Whole outcomes are evaluated by P(y - 1/2 < Y <= y +
    1/2) under a continuous distribution, and a likelihood with a point mass and its baselines by
    the probability of the step that y was rounded to (at least sqrt(12)/1000 of sd(y)), so that all
    have one measure.

    The standard error is that of the mean over rows, clustered by group, or by 30 periods of time.
    It is a difference between two ways to fit, each fitted once per fold to rows that the folds
    share: the variance is multiplied by 1 + the sum of (rows evaluated / training rows) over
    the folds, 2.5 for three of them (Nadeau and Bengio).

    References:
        Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
        Nadeau and Bengio (2003), Inference for the generalization error, section 4.
        Breiman et al. (1984), Classification and Regression Trees, section 3.4.3: one SE rule.
    """
    seed, total = task.settings.seed, float(job.weight.sum())
    simplest = "normal" if "normal" in candidates else candidates[0]
    if len(candidates) == 1:
        return LikelihoodChoice(
            candidates[0], (), f"likelihood {candidates[0]}: the only one that was proposed.", ()
        )
    sample = _sample(job, seed)
    scorer = task.structure.likelihood_scores(
        sample, total, linear=task.settings.is_linear, seed=seed
    )
    if scorer is None:
        others = ", ".join(candidates[1:])
        why = f"likelihood {candidates[0]}: the values would also allow {others} (--likelihood)."
        return LikelihoodChoice(candidates[0], (), why, ())
    folds = choose_folds(sample, scorer.count, seed) if len(job.y) >= FEWEST_ROWS else []
    if not folds:
        why = f"likelihood {simplest}: too few rows or groups to compare ({len(job.y)} rows)."
        return LikelihoodChoice(simplest, (), why, ())
    scores, notes = _all_scores(task, scorer, candidates, sample, total, folds, progress)
    if not scores:
        why = f"likelihood {simplest}: none of {', '.join(candidates)} could be compared."
        return LikelihoodChoice(simplest, (), why, tuple(notes))
    table = tuple(row._replace(models=scorer.models) for row in _compare(scores, sample, folds))
    likelihood, why = _decide(table)
    return LikelihoodChoice(likelihood, table, why, tuple(notes))


def _sample(job: Job, seed: int) -> Job:
    """Takes at most 2,000 rows by the hash of their content: duplicates come together."""
    if len(job.y) <= MOST_ROWS:
        return job
    keys = job.keys(seed)
    order = np.argsort(mix(keys ^ np.uint64(derive(seed, "choice"))), kind="stable")
    return take(job, np.sort(order[:MOST_ROWS]))


def _all_scores(
    task: Task,
    scorer: LikelihoodScores,
    candidates: Sequence[str],
    job: Job,
    total: float,
    folds: Folds,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[dict[str, Tensor], list[str]]:
    step = _step(job, candidates)
    scores: dict[str, Tensor] = {}
    notes = []
    with using_threads(1), own_randomness(task.settings.seed, torch.device("cpu")):
        scorer.begin(folds)
        for done, name in enumerate(candidates):
            if progress is not None:
                progress(done, len(candidates))
            likelihood = task.change(likelihood=name).likelihood(job.target, total)
            try:
                scores[name] = scorer.scores(likelihood, step)
            except (ArithmeticError, ValueError, RuntimeError) as error:
                reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
                notes.append(f"likelihood {name} was not compared: {reason}")
    return scores, notes


def _step(job: Job, candidates: Sequence[str]) -> Tensor | float:
    """The step of rounded outcomes where densities and probabilities are compared; else 0."""
    if job.target.event or not job.y.is_floating_point():
        return 0.0
    if bool((job.y == job.y.round()).all()):
        return 1.0
    if not MIXED.intersection(candidates):
        return 0.0
    _, floor = unit_and_floor(job.y, job.weight)
    return (
        floor * 12**0.5
    )  # a uniform distribution of this width has the least sd that a likelihood may claim


def _compare(scores: dict[str, Tensor], job: Job, folds: Folds) -> tuple[LikelihoodScore, ...]:
    evaluated = np.sort(np.concatenate([rows for _, rows in folds]))
    weight = job.weight.numpy()[evaluated]
    total = weight.sum()
    values = hedge({name: score.numpy()[evaluated] for name, score in scores.items()})
    means = {name: float(value @ weight / total) for name, value in values.items()}
    best = max(means, key=means.__getitem__)
    cluster = clusters(job, evaluated)
    overlap = (1 + sum(len(rows) / len(learn) for learn, rows in folds)) ** 0.5
    return tuple(
        LikelihoodScore(
            name,
            means[name],
            means[best] - means[name],
            overlap * standard_error(values[best] - value, weight, cluster),
        )
        for name, value in values.items()
    )


def hedge(scores: Mapping[str, Row]) -> dict[str, Row]:
    r"""Log scores of which no row can outweigh all the others.

    .. math:: s'_{i,\text{likelihood}} = \max(s_{i,\text{likelihood}},\; \max_m s_{i,m} - \log n)

    A row that a likelihood calls next to impossible, an outlier in x for which a network predicts
    anything at all, would decide alone, or make the standard error so large that everything is
    within it. So each likelihood gives each of the n rows at least 1/n of what the best one gives
    it.

    Args:
        scores: ``(n,)`` log scores of each likelihood.
    """
    floor = np.max(list(scores.values()), axis=0)
    floor = floor - np.log(len(floor))
    return {name: np.maximum(values, floor) for name, values in scores.items()}


def clusters(job: Job, evaluated: Row) -> Row | None:
    """Numbers of what is taken as independent; None for the rows themselves."""
    if job.group is not None:
        return np.unique(job.group[evaluated].astype(str), return_inverse=True)[1]
    if job.time is None:
        return None
    order = np.argsort(np.argsort(moments(job.time[evaluated]), kind="stable"), kind="stable")
    return order * PERIODS // len(order)


def moments(time: Row) -> Row:
    """Times as numbers or dates, which can be ordered."""
    if time.dtype.kind in "iufM":
        return time
    dates: Row = as_dates(pd.Series(time)).to_numpy()
    return dates


def standard_error(values: Row, weight: Row, cluster: Row | None) -> float:
    """The standard error of the weighted mean; rows, or sums over clusters, are independent."""
    total = weight.sum()
    away = values - values @ weight / total
    if cluster is None:  # a row of weight 2 is there twice
        return float((weight @ away**2 / total / max(total - 1, 1e-9)) ** 0.5)
    sums = np.bincount(cluster, weights=weight * away)
    count = len(np.unique(cluster))
    return float((sums @ sums * count / max(count - 1, 1)) ** 0.5 / total)


def _decide(table: Sequence[LikelihoodScore]) -> tuple[str, str]:
    best = min(table, key=lambda row: row.worse)
    chosen = next(row for row in table if row.worse <= row.error)  # the best itself has 0 <= 0
    if chosen is not best:
        return chosen.likelihood, (
            f"likelihood {chosen.likelihood}: the simplest within one standard error of the best "
            f"out-of-fold log score given x, {chosen.score:.4g} ({best.likelihood}, "
            f"{chosen.worse:.2g} +- {chosen.error:.2g} better)."
        )
    rest = [row for row in table if row is not best]
    why = f"likelihood {best.likelihood}: best out-of-fold log score given x, {best.score:.4g}"
    if rest:
        following = min(rest, key=lambda row: row.worse)
        why += (
            f" (next: {following.likelihood}, {following.worse:.2g} +- {following.error:.2g} worse)"
        )
    return best.likelihood, f"{why}."
