"""What every estimator of tables shares: rows in, a fitted law out, scikit-learn's conventions."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from torch import nn

from ansatz.data import Column, infer_columns, row_keys
from ansatz.errors import DataError, UsageError
from ansatz.estimators.grid_model import GridModel
from ansatz.estimators.inner_split import set_aside
from ansatz.estimators.job import Job, has_masks
from ansatz.estimators.linear_model import fit_linear_model
from ansatz.estimators.network_model import fit_network_model, update_network_model
from ansatz.estimators.predictions import Predictions
from ansatz.estimators.recipe import STREAM, Recipe
from ansatz.estimators.recipe_options import Augment
from ansatz.estimators.rows import read_column, read_groups, read_rows, read_weights
from ansatz.estimators.settings import Settings
from ansatz.estimators.table_model import TableModel
from ansatz.inference.conformal import conformal_scores
from ansatz.likelihoods import Likelihood
from ansatz.seeds import derive
from ansatz.spec import TargetSpec

if TYPE_CHECKING:
    from ansatz.estimators.ensemble import Ensembled

# What a fit leaves behind and the next one must not find.
_OF_ONE_FIT = (
    "linear_",
    "recipe_",
    "history_",
    "saved_summary_",
    "evidence_",
    "uses_",
    "row_keys_",
    "recalibration_",
    "conformal_scores_",
    "_judged",
    "_optimizer_state",
)


class TableEstimator(Predictions, Settings, BaseEstimator):
    """The common part of :class:`Regressor` and :class:`Classifier`; not used by itself.

    Example:
        >>> from ansatz.estimators import Regressor
        >>> from ansatz.estimators.table_estimator import TableEstimator
        >>> issubclass(Regressor, TableEstimator)
        True
    """

    _labels: ClassVar[str] = "classes_"  # the attribute that names what outcomes are codes of

    def __init__(
        self,
        likelihood: str | Likelihood = "normal",
        *,
        likelihood_options: Mapping[str, Any] | None = None,
        x: Literal["auto", "vector", "grid"] = "auto",
        network: str | nn.Module = "auto",
        inference: Literal["point", "ensemble"] = "point",
        members: int | None = None,
        calibration: float | None = None,
        widths: Sequence[int] | None = None,
        activation: str | None = None,
        dropout: float | None = None,
        network_options: Mapping[str, Any] | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        holdout: float | None = None,
        quantile: bool | Sequence[str] = False,
        bins: int | None = None,
        augment: Augment | None = None,
        pretrained: str | Path | None = None,
        freeze: str | int | Sequence[int] | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
        device: str = "auto",
        time_limit: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.likelihood = likelihood
        self.likelihood_options = likelihood_options
        self.x = x
        self.network = network
        self.inference = inference
        self.members = members
        self.calibration = calibration
        self.widths = widths
        self.activation = activation
        self.dropout = dropout
        self.network_options = network_options
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.holdout = holdout
        self.quantile = quantile
        self.bins = bins
        self.augment = augment
        self.pretrained = pretrained
        self.freeze = freeze
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.time_limit = time_limit
        self.verbose = verbose

    # What a subclass says about its outcomes.

    def _encode(self, y: Any, *, reset: bool) -> tuple[NDArray[Any], TargetSpec]:
        """Outcomes as numbers, and what they look like."""
        raise TypeError(f"{type(self).__name__} does not say what its outcomes are.")

    def _reweight(self, codes: NDArray[Any], weight: NDArray[Any]) -> NDArray[Any]:
        """The weights that the fit uses."""
        return weight

    def _plain(self, job: Job) -> Job:
        """The job without class weights, which are no rows: what is judged, and rivals learn."""
        return job

    # Fitting.

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
        precision: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fits the network, or the linear model, to the rows.

        Args:
            X: ``(N, D)`` array, or a data frame with columns of any type; nan is missing. None,
                or a frame without columns, fits the constant model.
            y: ``(N,)``, or ``(N, K)`` for K targets at once.
            sample_weight: ``(N,)`` frequency weights: a weight of 2 is the row twice.
            offset: ``(N,)``, a known part of the linear predictor (log exposure of a count).
            precision: ``(N,)``, R's prior weights: a row's variance is divided by it (a mean of
                4 measurements has precision 4). For linear models of exponential families.
            groups: ``(N,)``; rows alike in it (of one patient) stay on one side of every split
                within the fit: those that stop it, folds, members of an ensemble, calibration.
        """
        job = self._read(X, y, sample_weight, offset, precision, groups=groups)
        return self._fit_job(job)

    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
    ) -> Self:
        """One pass over the rows, from where the last call left weights and optimiser.

        The first call fixes what comes from the data: scaling, levels, the law's unit. The rate is
        constant (``learning_rate``, 1e-3 if not given) and nothing is held out.
        """
        first = not hasattr(self, "model_")
        job = self._read(X, y, sample_weight, offset, reset=first)
        return self._partial_fit_job(job, first=first)

    def _read(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        precision: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        reset: bool = True,
        columns: list[Column] | None = None,
    ) -> Job:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        if X is None:
            X = pd.DataFrame(index=range(len(y)))
        as_table = columns is not None or (not reset and self.columns_ is not None)
        rows = read_rows(self, X, reset=reset, as_table=as_table)
        if isinstance(rows, pd.DataFrame) and columns is None:
            columns = infer_columns(rows) if reset else self.columns_
        codes, target = self._encode(y, reset=reset)
        if len(codes) != len(rows):
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: "
                f"X has {len(rows)} rows and y has {len(codes)}."
            )
        weight = read_weights(sample_weight, rows)
        extra = read_column("offset", offset, len(rows))
        exact = read_column("precision", precision, len(rows))
        group = read_groups(groups, len(rows))
        seen = weight > 0  # a row of weight 0 is a row that is not there
        if not seen.all():
            rows, codes, weight = rows[seen], codes[seen], weight[seen]
            extra = None if extra is None else extra[seen]
            exact = None if exact is None else exact[seen]
            group = None if group is None else group[seen]
        return Job(
            rows,
            columns,
            torch.from_numpy(np.array(codes)),  # a copy: the given one may be read-only
            target,
            torch.from_numpy(self._reweight(codes, weight)),
            None if extra is None else torch.from_numpy(extra),
            torch.from_numpy(np.flatnonzero(seen)),
            None if exact is None else torch.from_numpy(exact),
            group,
            labels_cells=self.labels_cells,
        )

    def _fit_job(self, job: Job) -> Self:
        self._require_inference()
        law = self._law_of(job.target, float(job.weight.sum()))
        law.check(job.y.clamp(min=0) if has_masks(job) else job.y)  # -1: no label
        if job.precision is not None and self.network != "linear":
            raise UsageError("precision is for network='linear'; a network takes sample_weight.")
        previous = getattr(self, "model_", None) if self.warm_start else None
        for name in _OF_ONE_FIT:
            self.__dict__.pop(name, None)
        self.columns_, self.has_offset_ = job.columns, job.offset is not None
        aside = None
        if self.calibration:
            job, aside = self._set_aside(job, law)
        if job.grid is None and (self.network == "linear" or not self._has_features(job)):
            self._fit_linear(job, law)
        elif self.inference == "ensemble":
            self._fit_ensemble(job, law)
        else:
            self._fit_network(job, law, previous)
        if aside is not None:
            raw = self._served_raw(self.model_.raw(aside.rows, aside.offset, notes=[]))
            self.conformal_scores_ = conformal_scores(
                self.model_.objective.likelihood, raw, aside.y
            )
        return self

    def _set_aside(self, job: Job, law: Likelihood) -> tuple[Job, Job]:
        """Rows to learn from, and rows that nothing but conformal intervals will see."""
        share = self.calibration
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
            raise UsageError(f"calibration must be a share of the rows in (0, 1), got {share!r}.")
        if law.event_ndim or job.target.classes:
            raise UsageError(f"{law.name} has no intervals of numbers to calibrate.")
        keys = row_keys(job.rows, job.y.numpy(), seed=self._seed())
        return set_aside(job, float(share), keys, seed=derive(self._seed(), "calibration"))

    def _has_features(self, job: Job) -> bool:
        """Whether there is anything to predict from; without it the constant model is exact."""
        there = job.columns is None or len(job.columns) > 0
        if not there and isinstance(self.network, nn.Module):
            raise DataError("X has no columns that a network could use.")
        return there

    def _fit_linear(self, job: Job, law: Likelihood) -> None:
        self._refuse_of_grids()
        classes = getattr(self, "classes_", None)
        if classes is None and law.name in ("dirichlet", "multivariate_normal"):
            classes = self.target_names_  # of its numbers
        names = None if classes is None else [str(name) for name in classes]
        columns = getattr(self, "feature_names_in_", None)
        self.model_, fits = fit_linear_model(law, job, class_names=names, column_names=columns)
        self.linear_ = fits if job.target.shape else fits[0]
        self.n_iter_ = max(fit.iterations for fit in fits)

    def _fit_network(self, job: Job, law: Likelihood, previous: TableModel | None) -> None:
        seed = self._seed()
        plan = self._plan(self._recipe(job), seed, grid=job.grid, masks=has_masks(job))
        if job.grid is None:
            self.model_, fitted = fit_network_model(plan, job, law, previous)
        else:
            from ansatz.estimators.grid_fitting import fit_grid_model  # images need it alone

            began = previous if isinstance(previous, GridModel) else None
            self.model_, fitted = fit_grid_model(plan, job, law, began)
        self.recipe_, self.history_ = plan.recipe, fitted.history
        self.n_iter_ = fitted.history.steps

    def _fit_ensemble(self, job: Job, law: Likelihood) -> None:
        from ansatz.estimators.ensemble import fit_ensemble  # it knows linear models too

        if self.warm_start:
            raise UsageError("an ensemble has no warm_start: its members start anew.")
        seed, recipe = self._seed(), self._recipe(job)
        plan = self._plan(recipe, seed, grid=job.grid, masks=has_masks(job))
        if job.grid is not None:
            from ansatz.estimators.grid_ensemble import fit_grid_ensemble

            self._keep_ensemble(fit_grid_ensemble(plan, job, law), job, law, recipe)
            return
        fitted = fit_ensemble(
            job,
            preprocessor=plan.preprocessor(job.rows, job.columns, job.weight.numpy()),
            law=law,
            network=plan.network,
            network_name=plan.network_name,
            options=plan.options,
            recipe=recipe,
            # What exaggerates without dropout has it in all members, and so has what was asked for.
            mixed=law.additive and not job.target.classes and self.dropout is None,
            seed=seed,
            trainer_options={**plan.trainer_options, **job.trainer_options},
        )
        self._keep_ensemble(fitted, job, law, recipe)

    def _keep_ensemble(
        self, fitted: "Ensembled", job: Job, law: Likelihood, recipe: Recipe
    ) -> None:
        self.recipe_, self.history_ = recipe, fitted.history
        self.n_iter_, self.model_ = fitted.history.steps, fitted.model
        self._judged = fitted.judged
        if fitted.recalibration is not None:
            self.recalibration_ = fitted.recalibration
        if not law.event_ndim and not job.target.classes and fitted.judged.pieces:
            self.conformal_scores_ = torch.cat(
                [
                    conformal_scores(mixed, raw, job.y[rows])
                    for rows, mixed, raw in fitted.judged.served()
                ]
            )

    def _partial_fit_job(self, job: Job, *, first: bool) -> Self:
        if self.inference != "point":
            raise UsageError("partial_fit goes on with one network: inference='point'.")
        if job.grid is not None:
            raise UsageError("partial_fit is for tables; images go on from a fit by warm_start.")
        if self.network == "linear":
            raise UsageError("network='linear' is solved exactly and has no partial_fit: use fit.")
        seed = self._seed()
        recipe = self._recipe(job, STREAM)
        previous, options, state, steps = None, None, None, 0
        if first:
            self.columns_, self.has_offset_ = job.columns, job.offset is not None
        else:
            previous, steps = self.model_, self.n_iter_
            recipe = recipe.model_copy(update={"dtype": self.recipe_.dtype})
            options = dict(previous.network_options or {})
            state = getattr(self, "_optimizer_state", None)
        plan, law = self._plan(recipe, seed, options), self._law_of(job.target)
        self.model_, fitted = update_network_model(
            plan, job, law, previous, state=state, steps=steps
        )
        self.recipe_, self.history_ = recipe, fitted.history
        self.n_iter_ = steps + fitted.history.steps
        self._optimizer_state = fitted.step.state_dict()
        return self
