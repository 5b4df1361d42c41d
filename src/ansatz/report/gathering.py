"""Gathers the evidence of a report from given rows or from the test rows of a saved fit."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from ansatz.errors import DataError
from ansatz.fitting.job import Job, take
from ansatz.fitting.model import Model, estimator_of
from ansatz.fitting.split import are_duplicates
from ansatz.report.evidence import Evidence, TrainingRows, contribution

if TYPE_CHECKING:
    from ansatz.fitting.replay import Replay


def gather(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None = None,
    *,
    offset: ArrayLike | None = None,
    group: NDArray[Any] | None = None,
    time: NDArray[Any] | None = None,
    training: tuple[Any, ...] | None = None,
    **known: Any,
) -> Evidence:
    """Gathers the evidence of a fitted model on rows with outcomes.

    Args:
        model: a fitted estimator, or its :class:`~ansatz.fitting.model.Model`.
        X: features, as in ``fit``.
        y: outcomes, as in ``fit``.
        sample_weight: frequency weights.
        offset: known parts of the linear predictor.
        group: group labels of the rows.
        time: times of the rows.
        training: the training rows: (X, y), with weights and offsets if there were any.
        known: more fields of :class:`Evidence`: seed, name, origin, settings, fit.

    Example:
        >>> import numpy as np
        >>> from ansatz import Classifier
        >>> from ansatz.report import gather
        >>> x = np.linspace(0, 1, 40).reshape(-1, 1)
        >>> model = Classifier(network="linear").fit(x, np.arange(40) % 2)
        >>> gather(model, x, np.arange(40) % 2).distribution.mean.shape
        torch.Size([40])
    """
    estimator = estimator_of(model) if isinstance(model, Model) else model
    job = _test_job(estimator, X, y, sample_weight, offset)
    seen = job.index.numpy()
    job = job._replace(
        group=None if group is None else np.asarray(group)[seen],
        time=None if time is None else np.asarray(time)[seen],
    )
    learn = None
    if training is not None:
        learned = estimator.read_again(*training)
        learn = (learned, _pick(training[1], learned.index.numpy()))
    known = {"trained_on": _trained_on(estimator.model_, job), **known}
    return _evidence(estimator.model_, job, _pick(y, seen), learn, rows=seen + 1, **known)


def _trained_on(model: Model, job: Job) -> int | None:
    """Counts the rows that the model was trained on, by their keys; None without keys."""
    if model.row_keys is None:
        return None
    return int(are_duplicates(model.row_keys, job.keys()).sum())


def _test_job(estimator: Any, X: Any, y: Any, sample_weight: ArrayLike | None, offset: Any) -> Job:
    """Reads rows as the fit did, with frequency weights but without class weights."""
    if not len(y):
        raise DataError("a report needs held-out rows, got none.")
    job: Job = estimator.read_again(X, y, sample_weight, offset)
    given = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    return job._replace(weight=torch.from_numpy(given[job.index.numpy()]))


def replayed(found: "Replay", **known: Any) -> Evidence:
    """Gathers the evidence of a saved model on the test rows of its fit.

    Args:
        found: the rows of the fit, from :func:`ansatz.fitting.replay.replay`.
        known: more fields of :class:`Evidence`: seed, name, settings.

    Example:
        >>> import ansatz
        >>> from ansatz.fitting.replay import replay
        >>> from ansatz.report.gathering import replayed
        >>> table = {"x": range(50), "y": range(50)}
        >>> fit = ansatz.fit(table, target="y", likelihood="normal", network="linear")
        >>> len(replayed(replay(fit)).X)
        10
    """
    if not len(found.parts.test):
        raise DataError(
            f"{found.name} was fitted without test rows: a report needs held-out rows. Fit with "
            "--test 0.2."
        )
    test = found.test
    learn = found.learn._replace(valid=found.parts.valid)  # they stop the baselines as well
    outcomes = None
    if found.problem is not None:
        frame, column_roles = found.problem.seen, found.problem.column_roles
        outcomes, weight = column_roles.outcomes(frame), column_roles.weight(frame)
        plain = np.ones(len(frame)) if weight is None else weight  # without class weights
        test = test._replace(weight=torch.from_numpy(plain[found.parts.test]))
        known = {"origin": found.problem.origin, **known}
    return _evidence(
        found.model,
        test,
        test.y.numpy() if outcomes is None else _pick(outcomes, found.parts.test),
        (learn, learn.y.numpy() if outcomes is None else _pick(outcomes, found.parts.learn))
        if len(learn.y)
        else None,
        rows=test.index.numpy(),
        **{"name": found.name, **known},
    )


def _evidence(
    model: Model,
    job: Job,
    y: Any,
    learn: tuple[Job, Any] | None,
    *,
    rows: NDArray[Any],
    **known: Any,
) -> Evidence:
    if not len(job.y):
        raise DataError("a report needs held-out rows, got none.")
    structure = contribution(model.structure)
    chosen = structure.sample(model, job, seed=known.get("seed", 0))
    if chosen is not None:
        known = {**known, "total": len(job.y)}
        job, y, rows = take(job, chosen), _pick(y, chosen), rows[chosen]
    features = structure.features(job.rows)
    served = model.predictive(job.rows, job.offset, notes=[])
    distribution, value = model.outcome.distribution(served, job.y)
    learned = None
    if learn is not None:
        part, outcomes = learn
        learned = TrainingRows(
            structure.features(part.rows),
            outcomes,
            part.weight.numpy(),
            None if part.offset is None else part.offset.numpy(),
            part,
        )
    return Evidence(
        model=model,
        X=features,
        y=y,
        outcome=job.y,
        value=value,
        weight=job.weight.double(),
        offset=None if job.offset is None else job.offset.numpy(),
        group=job.group,
        time=job.time,
        likelihood=served.likelihood,
        distribution=distribution,
        point=model.outcome.estimate(served, job.y).numpy(),
        rows=rows,
        job=job,
        training=learned,
        columns=structure.columns(model, features),
        kept={"raw": served.raw},
        **{"fit": _fit(model), **known},
    )


def _fit(model: Model) -> dict[str, Any]:
    """What is recorded of the fit; of an estimator's, how its likelihood was chosen."""
    choice = model.evidence.get("choice")
    known = {} if choice is None else {"candidates": choice["table"]}
    return {**known, **model.evidence.get("fit", {})}


def _pick(outcomes: Any, rows: NDArray[Any]) -> Any:
    if hasattr(outcomes, "content_keys"):  # examples themselves, as masks are
        return outcomes[rows]
    if isinstance(outcomes, list) and outcomes and isinstance(outcomes[0], list | tuple):
        return [outcomes[row] for row in rows.tolist()]  # of sequences, which differ in length
    return outcomes.iloc[rows] if hasattr(outcomes, "iloc") else np.asarray(outcomes)[rows]
