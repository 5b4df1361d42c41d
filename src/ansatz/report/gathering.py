"""How the evidence of a report is gathered: from rows at hand, or from those of a saved fit."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ansatz.errors import DataError
from ansatz.fitting.job import Job, has_masks, take
from ansatz.report.contribution import contribution
from ansatz.report.evidence import Evidence, Learned
from ansatz.report.predictive import predictive, served_point

if TYPE_CHECKING:
    from ansatz.estimators.table_estimator import TableEstimator
    from ansatz.fitting.replay import Replay


def gather(
    model: "TableEstimator",
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
    """The evidence of a fitted model on rows with their outcomes.

    Args:
        model: fitted.
        X: features, as in ``fit``.
        y: outcomes, as in ``fit``.
        sample_weight: frequency weights.
        offset: known parts of the linear predictor.
        group: rows alike in it belong together.
        time: orders the rows.
        training: the rows learned from: (X, y), with weights and offsets if there were any.
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
    job = _test_job(model, X, y, sample_weight, offset)
    seen = job.index.numpy()
    job = job._replace(
        group=None if group is None else np.asarray(group)[seen],
        time=None if time is None else np.asarray(time)[seen],
    )
    learn = None
    if training is not None:
        learned = model._read(*training, reset=False)
        learn = (learned, _pick(training[1], learned.index.numpy()))
    return _evidence(model, job, _pick(y, seen), learn, rows=seen + 1, **known)


def _test_job(
    model: "TableEstimator", X: Any, y: Any, sample_weight: ArrayLike | None, offset: Any
) -> Job:
    """Rows as the estimator reads them, with frequency weights alone: class weights are no rows."""
    import pandas as pd

    from ansatz.structures.vector.rows import read_column, read_rows

    if not len(y):
        raise DataError("a report needs rows that the model has not seen, got none.")
    table = pd.DataFrame(index=range(len(y))) if X is None else X
    as_table = getattr(model, "columns_", None) is not None
    rows = read_rows(model, table, reset=False, as_table=as_table)
    codes, target = model._encode(y, reset=False)
    if len(codes) != len(rows):
        raise DataError(f"y must have one outcome per row: {len(rows)} rows, {len(codes)} in y.")
    weight = read_column("sample_weight", sample_weight, len(rows))
    weight = np.ones(len(rows)) if weight is None else weight
    extra = read_column("offset", offset, len(rows))
    seen = np.flatnonzero(weight > 0)
    return Job(
        rows.iloc[seen] if isinstance(rows, pd.DataFrame) else rows[seen],
        model.columns_,
        torch.from_numpy(np.array(codes))[seen],
        target,
        torch.from_numpy(weight[seen]),
        None if extra is None else torch.from_numpy(extra[seen]),
        torch.from_numpy(seen),
        labels_cells=model.labels_cells,
    )


def replayed(found: "Replay", **known: Any) -> Evidence:
    """The evidence of a saved model, on the test rows of its fit.

    Args:
        found: the rows of the fit, as :func:`ansatz.fitting.replay.replay` gives them back.
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
            f"{found.name} was fitted without test rows: a report needs rows that the model has "
            "not seen. Fit with --test 0.2."
        )
    test, learn = found.test, found.learn
    outcomes = None
    if found.problem is not None:
        from ansatz.fitting.provenance import seen_rows

        frame, uses = seen_rows(found.problem), found.problem.uses
        outcomes, weight = uses.outcomes(frame), uses.weight(frame)
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
    model: "TableEstimator",
    job: Job,
    y: Any,
    learn: tuple[Job, Any] | None,
    *,
    rows: NDArray[Any],
    **known: Any,
) -> Evidence:
    if not len(job.y):
        raise DataError("a report needs rows that the model has not seen, got none.")
    structure = contribution(model.model_.preprocessor.spec.structure)
    chosen = structure.sample(model.model_, job, seed=known.get("seed", 0))
    if chosen is not None:
        known = {**known, "total": len(job.y)}
        job, y, rows = take(job, chosen), _pick(y, chosen), rows[chosen]
    law = model.model_.objective.likelihood
    features = structure.features(job.rows)
    raw = served_raw(model, job)
    distribution, value = None, job.y
    if not has_masks(job):
        distribution, value = predictive(model, law, raw, job.y)
    learned = None
    if learn is not None:
        part, outcomes = learn
        learned = Learned(
            structure.features(part.rows),
            outcomes,
            part.weight.numpy(),
            None if part.offset is None else part.offset.numpy(),
            part,
        )
    record = getattr(model, "evidence_", {}).get("fit", {})
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
        law=law,
        distribution=distribution,
        point=model._codes(raw).numpy()
        if has_masks(job)
        else served_point(law, raw, distribution, job.y, value),
        rows=rows,
        job=job,
        learn=learned,
        columns=structure.columns(model, features),
        kept={"raw": raw},
        **{"fit": record, **known},
    )


def served_raw(model: "TableEstimator", job: Job) -> Tensor:
    """The raw numbers that a model serves for the rows of a job.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.report.gathering import served_raw
        >>> x = np.arange(9.0).reshape(-1, 1)
        >>> model = Regressor(network="linear").fit(x, x[:, 0])
        >>> served_raw(model, model._read(x, x[:, 0])).shape
        torch.Size([9, 1])
    """
    if has_masks(job):
        return model._raw(job.rows)  # examples larger than those of the fit, tile by tile
    return model._served_raw(model.model_.raw(job.rows, job.offset, notes=[]))


def _pick(outcomes: Any, rows: NDArray[Any]) -> Any:
    if hasattr(outcomes, "content_keys"):  # examples themselves, as masks are
        return outcomes[rows]
    return outcomes.iloc[rows] if hasattr(outcomes, "iloc") else np.asarray(outcomes)[rows]
