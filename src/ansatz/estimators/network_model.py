"""The network of a table: trained by a plan, in one piece with its preprocessing."""

from typing import Any

import numpy as np
import torch

from ansatz.data import Batch, Preprocessor
from ansatz.estimators.fitting import Fitted, fit_network, update_network
from ansatz.estimators.inner_split import stopping_folds, stopping_rows
from ansatz.estimators.job import Job
from ansatz.estimators.plan import Plan
from ansatz.estimators.table_model import TableModel
from ansatz.likelihoods import Likelihood
from ansatz.seeds import derive


def fit_network_model(
    plan: Plan, job: Job, law: Likelihood, previous: TableModel | None = None
) -> tuple[TableModel, Fitted]:
    """Trains a network on the rows that do not stop it.

    Args:
        plan: of the fit.
        job: the rows.
        law: of the outcomes.
        previous: begins at its weights, and sees the rows as it does.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.estimators.network_model import fit_network_model
        >>> from ansatz.estimators.plan import Plan
        >>> from ansatz.estimators.recipe import Recipe
        >>> from ansatz.likelihoods import Normal
        >>> job = Regressor()._read(np.arange(20.0).reshape(-1, 1), np.arange(20.0))
        >>> plan = Plan("mlp", {"widths": [4]}, Recipe(steps=3, evaluations=1), seed=0)
        >>> model, fitted = fit_network_model(plan, job, Normal())
        >>> fitted.history.steps
        3
    """
    recipe, seed = plan.recipe, plan.seed
    valid = stopping_rows(job, recipe, seed) if job.valid is None else job.valid
    train = np.setdiff1d(np.arange(len(job.y)), valid)
    if previous is None:
        seen = job.rows
        if len(valid):
            seen = seen[train] if isinstance(seen, np.ndarray) else seen.iloc[train]
        preprocessor = plan.preprocessor(seen, job.columns, job.weight.numpy()[train])
    else:
        preprocessor = previous.preprocessor
    fitted = fit_network(
        # A level that only rows held out have is no news for the user.
        _batch(preprocessor, job, notes=[]),
        train=torch.from_numpy(train),
        valid=torch.from_numpy(valid),
        inputs=preprocessor.spec,
        likelihood=law,
        network=plan.network,
        network_options=plan.options,
        recipe=recipe,
        seed=seed,
        trainer_options={**plan.trainer_options, **job.trainer_options},
        start=None if previous is None else (previous.network, previous.objective),
        folds=stopping_folds(job, train, recipe, seed),
    )
    return plan.model(preprocessor, fitted), fitted


def update_network_model(
    plan: Plan,
    job: Job,
    law: Likelihood,
    previous: TableModel | None = None,
    *,
    state: dict[str, Any] | None = None,
    steps: int = 0,
) -> tuple[TableModel, Fitted]:
    """One pass over the rows, from where the last left weights and optimiser.

    Args:
        plan: of all passes.
        job: the rows of this pass.
        law: of the outcomes.
        previous: the model so far; None for the first pass, which fixes scales and levels.
        state: of the optimiser so far.
        steps: taken so far.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.estimators.network_model import update_network_model
        >>> from ansatz.estimators.plan import Plan
        >>> from ansatz.estimators.recipe import STREAM
        >>> from ansatz.likelihoods import Normal
        >>> job = Regressor()._read(np.arange(64.0).reshape(-1, 1), np.arange(64.0))
        >>> plan = Plan("mlp", {"widths": [4]}, STREAM, seed=0)
        >>> model, fitted = update_network_model(plan, job, Normal())
        >>> fitted.history.steps
        2
    """
    if previous is None:
        preprocessor = plan.preprocessor(job.rows, job.columns, job.weight.numpy())
    else:
        preprocessor = previous.preprocessor
    fitted = update_network(
        _batch(preprocessor, job),
        inputs=preprocessor.spec,
        likelihood=law,
        network=plan.network,
        network_options=plan.options,
        recipe=plan.recipe,
        seed=derive(plan.seed, "partial", steps),
        start=None if previous is None else (previous.network, previous.objective),
        state=state,
        trainer_options=dict(plan.trainer_options),
    )
    return plan.model(preprocessor, fitted), fitted


def _batch(preprocessor: Preprocessor, job: Job, notes: list[str] | None = None) -> Batch:
    inputs = preprocessor.transform(job.rows, notes=notes)
    return Batch(inputs, job.y, job.weight, job.offset, job.index)
