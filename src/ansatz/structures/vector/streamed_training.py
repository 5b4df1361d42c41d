"""From a divided stream to a trained network."""

from typing import Any

import numpy as np
import torch

from ansatz import networks, optim
from ansatz.data import Batch, Preprocessor, TensorSource
from ansatz.data.batch import map_tensors
from ansatz.data.streams import BlockSource
from ansatz.data.streams.hash_split import TRAIN
from ansatz.errors import UsageError
from ansatz.estimators.table_estimator import TableEstimator
from ansatz.fitting.job import Job
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.rehearsal import require_outputs
from ansatz.fitting.split import take
from ansatz.fitting.training import Fitted, build_network, build_objective, build_step
from ansatz.likelihoods import Likelihood
from ansatz.seeds import derive
from ansatz.structures.vector.stream_parts import StreamParts
from ansatz.structures.vector.streamed_rows import StreamedRows
from ansatz.training import Trainer

WINDOW_BYTES = 24 * 2**20  # of encoded rows that are mixed; twice that while they are


def stream_recipe(estimator: TableEstimator, learn: Job, parts: StreamParts) -> Recipe:
    """The recipe of a table of that many rows.

    Args:
        estimator: with what the user set.
        learn: a sample of the training rows.
        parts: tells how many there are.

    Example:
        >>> import inspect
        >>> from ansatz.structures.vector.streamed_training import stream_recipe
        >>> list(inspect.signature(stream_recipe).parameters)
        ['estimator', 'learn', 'parts']
    """
    total = torch.tensor([float(parts.weight[:2].sum())], dtype=torch.float64)
    recipe = estimator._recipe(learn._replace(weight=total))
    rows = int(parts.rows[TRAIN].sum())
    if recipe.batch_size == 0:
        if estimator.batch_size == 0:
            raise UsageError(
                "batch_size=0 takes all rows at once, which a stream cannot: --no-stream."
            )
        recipe = recipe.model_copy(update={"batch_size": rows, "folds": 0})
    if estimator.epochs is not None:
        steps = max(1, round(estimator.epochs * -(-rows // recipe.batch_size)))  # whole passes
        recipe = recipe.model_copy(update={"steps": steps})
    return recipe


def stream_source(
    rows: StreamedRows,
    parts: StreamParts,
    preprocessor: Preprocessor,
    batch_size: int,
    *,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
    window: int | None = None,
    shuffle: bool = True,
) -> BlockSource:
    """The training rows of a stream as batches.

    Args:
        rows: the stream.
        parts: which of its rows train.
        preprocessor: turns rows into inputs.
        batch_size: rows per batch.
        dtype: of inputs, outcomes and weights.
        seed: of the order.
        window: blocks whose rows are mixed; None takes some 24 MB of them.
        shuffle: False keeps the table's own order.

    Example:
        >>> import inspect
        >>> from ansatz.structures.vector.streamed_training import stream_source
        >>> list(inspect.signature(stream_source).parameters)[:3]
        ['rows', 'parts', 'preprocessor']
    """
    counts = parts.rows[TRAIN]
    if window is None:
        width = len(preprocessor.feature_names) + 4 + len(preprocessor.spec.cardinalities)
        block = max(1.0, float(counts.mean())) * width * (8 if dtype == torch.float64 else 4)
        window = int(np.clip(WINDOW_BYTES / block, 2, 64))

    def read(block: int) -> Batch:
        frame = rows.seen(rows.posed.blocks.read(block))
        learn = parts.part_of(block) == TRAIN
        return as_batch(preprocessor, rows.job(frame[learn]), dtype)

    return BlockSource(read, counts.tolist(), batch_size, seed=seed, window=window, shuffle=shuffle)


def as_batch(preprocessor: Preprocessor, job: Job, dtype: torch.dtype) -> Batch:
    """The rows of a job as a network sees them.

    Example:
        >>> import numpy as np, torch
        >>> from ansatz import Regressor
        >>> from ansatz.data import Preprocessor
        >>> from ansatz.structures.vector.streamed_training import as_batch
        >>> job = Regressor()._read(np.arange(3.0).reshape(-1, 1), np.arange(3.0))
        >>> as_batch(Preprocessor.fit(job.rows), job, torch.float64).target.dtype
        torch.float64
    """
    batch = Batch(
        preprocessor.transform(job.rows, notes=[]), job.y, job.weight, job.offset, job.index
    )
    typed: Batch = map_tensors(lambda t: t.to(dtype) if t.is_floating_point() else t, batch)
    return typed


def train_stream(
    estimator: TableEstimator,
    law: Likelihood,
    rows: StreamedRows,
    parts: StreamParts,
    learn: Job,
    valid: Job | None,
    *,
    trainer_options: dict[str, Any],
    window: int | None = None,
) -> None:
    """Fits the estimator's network to the training rows of a stream, in batches from disk.

    What a law needs to start (its unit, its constant model) and an embedding its quantiles, they
    take from the sample.

    Args:
        estimator: is fitted.
        law: of the outcomes.
        rows: the stream.
        parts: its split and what training rows taught.
        learn: a sample of the training rows.
        valid: rows that decide when to stop; None for none.
        trainer_options: of :class:`~ansatz.training.Trainer`.
        window: blocks whose rows are mixed.

    Example:
        >>> import inspect
        >>> from ansatz.structures.vector.streamed_training import train_stream
        >>> list(inspect.signature(train_stream).parameters)[:3]
        ['estimator', 'law', 'rows']
    """
    seed = estimator._seed()
    recipe = stream_recipe(estimator, learn, parts)
    dtype = getattr(torch, recipe.dtype)
    preprocessor = parts.learner.preprocessor(learn.rows, learn.weight.numpy())
    sample = as_batch(preprocessor, learn, dtype)
    objective = build_objective(law, sample)
    objective.likelihood.loosen()
    assert objective.shift is not None
    plan = estimator._plan(recipe, seed)
    network = build_network(
        plan.network,
        plan.options,
        inputs=preprocessor.spec,
        outputs=objective.shift.numel(),
        dtype=dtype,
        seed=seed,
    )
    if isinstance(network, networks.MLP):
        network.observe(sample.inputs[0])
    require_outputs(network, sample.inputs, objective.shift.numel())
    del sample
    schedule = optim.create_schedule(recipe.schedule, steps=recipe.steps, warmup=0.05)
    step = build_step(network, objective, recipe, seed=seed, schedule=schedule)
    source = stream_source(
        rows,
        parts,
        preprocessor,
        recipe.batch_size,
        dtype=dtype,
        seed=derive(seed, "rows"),
        window=window,
    )
    held_out = None
    if valid is not None:
        held_out = TensorSource(as_batch(preprocessor, valid, dtype), 8_192, shuffle=False)
    trainer = Trainer(
        steps=recipe.steps,
        evaluate_every=max(1, recipe.steps // recipe.evaluations) if held_out else None,
        patience=recipe.patience if held_out else None,
        average=recipe.average,
        seed=seed,
        **{**plan.trainer_options, **trainer_options},
    )
    history = trainer.fit(step, source, held_out)
    fitted = Fitted(network, objective, step, history)
    estimator.columns_, estimator.has_offset_ = learn.columns, learn.offset is not None
    estimator.recipe_, estimator.history_, estimator.n_iter_ = recipe, history, history.steps
    estimator.model_ = plan.model(preprocessor, fitted)


def thinned(job: Job, most: int) -> Job:
    """At most so many rows of a job, evenly spaced.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.structures.vector.streamed_training import thinned
        >>> job = Regressor()._read(np.arange(9.0).reshape(-1, 1), np.arange(9.0))
        >>> len(thinned(job, 3).y)
        3
    """
    step = -(-len(job.y) // most)
    return job if step <= 1 else take(job, np.arange(0, len(job.y), step))
