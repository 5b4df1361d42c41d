"""The common part of all estimators, by the conventions of scikit-learn."""

import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ansatz import outcomes
from ansatz.data import DataWarning, row_keys
from ansatz.errors import UsageError
from ansatz.estimators.arguments import DEFAULTS, Arguments, share_arguments
from ansatz.estimators.predictor import Predictor
from ansatz.estimators.validation import join_validation, mark_validation
from ansatz.fitting.choice import LikelihoodChoice
from ansatz.fitting.contracts.outcome import Outcome
from ansatz.fitting.fit_model import fit_model, update_model
from ansatz.fitting.job import Job, make_job, read_column
from ansatz.fitting.model import Model
from ansatz.fitting.problem import structure_of_rows
from ansatz.fitting.saved import save_model
from ansatz.fitting.split import are_duplicates, warn_of_training_rows
from ansatz.fitting.summaries import describe_model, summarize
from ansatz.fitting.task import Settings, Task
from ansatz.likelihoods import Likelihood
from ansatz.linear.terms import grouping_columns, read_terms


class Estimator(Predictor):
    """The common part of all estimators; not used by itself.

    A subclass names its outcome; its constructor takes arguments of its own and
    ``**options: Unpack[Arguments]``, except those that the class is made ``without``.

    Args:
        likelihood: by name (``ansatz list likelihoods``), or an instance.
    """

    outcome: str  # by name; a subclass has one for all
    random_state: int | np.random.RandomState | None
    warm_start: bool

    _shared: ClassVar[tuple[str, ...]] = tuple(DEFAULTS)  # names of arguments

    def __init_subclass__(cls, *, without: Collection[str] = (), **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._shared = tuple(name for name in cls._shared if name not in without)
        share_arguments(cls, cls._shared)

    def __init__(
        self, likelihood: str | Likelihood = "normal", **options: Unpack[Arguments]
    ) -> None:
        self.likelihood = likelihood
        for name in options:
            if name not in self._shared:
                kind = type(self).__name__
                raise TypeError(f"{kind}.__init__() got an unexpected keyword argument '{name}'")
        for name in self._shared:
            setattr(self, name, options.get(name, DEFAULTS[name]))

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The arguments that differ from the defaults, and the likelihood that the rows chose."""
        text = super().__repr__(N_CHAR_MAX)
        chosen = getattr(self, "likelihood_choice_", None)
        return text if chosen is None else f"{text}: likelihood {chosen.likelihood}"

    # Settings.

    def set_params(self, **params: Any) -> Self:
        """Sets arguments; ``network_options__widths`` sets one entry of a mapping."""
        plain = {name: value for name, value in params.items() if "__" not in name}
        super().set_params(**plain)
        for name, value in params.items():
            owner, found, key = name.partition("__")
            if not found:
                continue
            before = self.get_params(deep=False).get(owner)
            if owner not in self._get_param_names() or not isinstance(before, Mapping | None):
                raise ValueError(f"Invalid parameter {owner!r} for estimator {self}.")
            setattr(self, owner, {**(before or {}), key: value})
        return self

    def settings(self) -> Settings:
        """Gives the arguments as settings of a fit."""
        given = {**self.get_params(deep=False), "random_state": self._seed()}
        return Settings.of_arguments(given)

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        try:
            return int(check_random_state(self.random_state).randint(2**31 - 1))
        except ValueError:
            raise UsageError(
                f"random_state must be a whole number, a RandomState or None, "
                f"got {self.random_state!r}."
            ) from None

    def task(self, X: Any, outcome: Outcome | None = None) -> Task:
        """Makes the task of a fit of such rows."""
        structure = structure_of_rows(X, getattr(self, "x", "auto"))
        return Task.of(structure, outcome or outcomes.create(self.outcome), self.settings())

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
        validation_data: tuple[Any, ...] | None = None,
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
            validation_data: ``(X, y)`` or ``(X, y, sample_weight)``, rows that stop the training,
                in place of a share of the rows.
        """
        if validation_data is None:
            return self._fit(*self._begin(X, y, sample_weight, offset, precision, groups=groups))
        others = {"offset": offset, "precision": precision, "groups": groups}
        return self._fit_validated(X, y, sample_weight, validation_data, others)

    def _fit_validated(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        validation_data: Any,
        others: dict[str, Any],
        roles: Mapping[str, str] | None = None,
    ) -> Self:
        """Fits, stopping by rows that were given for it."""
        X, y, weight, count = join_validation(X, y, sample_weight, validation_data, others)
        task, job = self._begin(X, y, weight, roles=roles)
        return self._fit(task, mark_validation(task, job, count))

    def _fit(self, task: Task, job: Job) -> Self:
        previous = getattr(self, "model_", None) if self.warm_start else None
        choice, task = self._choose(task, job)
        model = fit_model(task, job, previous=previous)
        if choice is not None:
            model.evidence["choice"] = choice.plain()
        model.row_keys = np.unique(job.keys())
        self.adopt(model)
        return self

    def _choose(self, task: Task, job: Job) -> tuple[LikelihoodChoice | None, Task]:
        """Lets the rows choose a likelihood, where that was left to them."""
        return None, task

    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
    ) -> Self:
        """Makes one pass over the rows, from where the last call left weights and optimiser.

        The first call fixes what comes from the data: scaling, levels, the likelihood's unit. The
            rate is
        constant (``learning_rate``, 1e-3 if not given) and nothing is held out.
        """
        return self._partial_fit(*self._continue(X, y, sample_weight, offset))

    def _continue(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        outcome: Outcome | None = None,
    ) -> tuple[Task, Job]:
        before = getattr(self, "model_", None)
        if before is None:
            return self._begin(X, y, sample_weight, offset, outcome=outcome)
        settings = self.settings()
        if settings.likelihood == "auto":
            settings = settings.change(likelihood=before.task.settings.likelihood)
        task = before.task._replace(settings=settings)
        return task, self._job(task, X, y, sample_weight, offset, reset=False)

    def _partial_fit(self, task: Task, job: Job) -> Self:
        before: Model | None = getattr(self, "model_", None)
        if before is None:
            _, task = self._choose(task, job)
        model = update_model(task, job, before)
        if before is None:
            model.row_keys = np.unique(job.keys())
        elif before.row_keys is not None:
            model.row_keys = np.union1d(before.row_keys, job.keys())
        self.adopt(model)
        return self

    def adopt(self, model: Model) -> None:
        """Takes over a fitted model."""
        self.model_ = model
        if not hasattr(type(self), "outcome"):  # one for any outcome
            self.outcome = model.outcome.name
        self.n_features_in_ = int(model.features["count"])
        names = model.features["names"]
        if names is None:
            self.__dict__.pop("feature_names_in_", None)
        else:
            self.feature_names_in_ = np.array(names, dtype=object)

    # Reading.

    def read(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        precision: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Job:
        """Reads the rows of a fit as its pipeline sees them."""
        return self._begin(X, y, sample_weight, offset, precision, groups=groups)[1]

    def read_again(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> Job:
        """Rows with outcomes, read as those of the fit were."""
        check_is_fitted(self)
        task = self.model_.task
        return self._job(task, X, y, sample_weight, offset, reset=False, fitting=False)

    def _begin(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        precision: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        outcome: Outcome | None = None,
        roles: Mapping[str, str] | None = None,
    ) -> tuple[Task, Job]:
        """The task of a fit, and its rows, whose names and classes are remembered."""
        task = self.task(X, outcome)
        varying = grouping_columns(read_terms(getattr(self, "random", None)))
        roles = {**(roles or {}), **dict.fromkeys(varying, "group")} or None
        common: dict[str, Any] = {"groups": groups, "reset": True, "roles": roles}
        job = self._job(task, X, y, sample_weight, offset, precision, **common)
        self._require_same(task)
        return task, job

    def _require_same(self, task: Task) -> None:
        """Refuses to go on with other classes than those of the last fit."""
        before: Model | None = getattr(self, "model_", None)
        now = task.outcome.labels
        if not self.warm_start or before is None or now is None:
            return
        labels = before.labels
        if not np.array_equal(labels, now):
            what = "classes" if hasattr(self, "classes_") else "items"
            raise ValueError(
                f"warm_start goes on with the {what} {labels.tolist()}, got {now.tolist()}."
            )

    def _job(
        self,
        task: Task,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        precision: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        reset: bool,
        fitting: bool = True,
        roles: Mapping[str, str] | None = None,
    ) -> Job:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        if X is None:
            X = pd.DataFrame(index=range(len(y)))
        rows: Any = task.structure.from_python(X, estimator=self, reset=reset, roles=roles)
        if not reset:
            y = self._completed(X, y)
        return make_job(
            *(task, rows, y, sample_weight, offset, precision, groups), reset=reset, fitting=fitting
        )

    # Evaluation.

    def log_score(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
    ) -> float:
        """Computes the mean log-likelihood of outcomes: higher is better.

        Args:
            X: rows as in ``fit``.
            y: their outcomes.
            sample_weight: frequency weights.
            offset: as in ``fit``.
        """
        nll = self.evaluate(X, y, sample_weight, offset=offset, warn=False).get("nll")
        if nll is None:
            raise UsageError(f"{self.model_.likelihood.name} is a loss: it has no density.")
        return -nll

    def evaluate(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
        warn: bool = True,
    ) -> dict[str, float | None]:
        """Computes every metric that applies: nll, crps, rmse, ...; None where undefined.

        Args:
            X: rows as in ``fit``; of a model of ``ansatz.fit`` a table with the target will do.
            y: their outcomes.
            sample_weight: frequency weights.
            offset: as in ``fit``.
            warn: whether to warn where the model was trained on some of the rows.
        """
        if y is None:
            X, y, sample_weight, offset, _ = self._from_table(X, outcomes=True)
        if X is None:  # rows without features
            X = pd.DataFrame(index=range(len(y)))
        rows = self._given(X, offset)
        served = self.model_.predictive(rows.rows, rows.offset)
        y = self.model_.outcome.beside(y, rows.rows)
        weight = read_column("sample_weight", sample_weight, len(served.raw))
        found: dict[str, float | None] = self.model_.outcome.evaluate(
            served,
            self._outcomes(self._completed(X, y), len(served.raw)),
            None if weight is None else torch.from_numpy(weight),
        )
        found |= self.model_.outcome.measure(self.model_.posterior, self._given(X, offset).rows)
        if warn and self.model_.row_keys is not None:
            mask = are_duplicates(self.model_.row_keys, self._keys_of(X, y))
            for sentence in warn_of_training_rows(int(mask.sum()), len(mask)):
                warnings.warn(sentence, DataWarning, stacklevel=2)
        return found

    def duplicates(self, table: Any) -> NDArray[np.bool_]:
        """Finds the rows of a table with the target that are duplicates of training rows.

        Args:
            table: as for ``evaluate``; a model of ``ansatz.fit`` keeps a hash of each row.
        """
        check_is_fitted(self)
        learned = self.model_.row_keys
        learned = np.empty(0, dtype=np.uint64) if learned is None else learned
        found = are_duplicates(learned, self._keys(table))
        for number, part in self.model_.structure.cuts(self.model_, table):
            found[number] |= are_duplicates(learned, self._keys(part)).any()
        return found

    def _keys(self, table: Any) -> NDArray[np.uint64]:
        """A hash of each row's features and outcome."""
        X, y, *_ = self._from_table(table, outcomes=True)
        return self._keys_of(X, y)

    def _keys_of(self, X: Any, y: Any) -> NDArray[np.uint64]:
        rows = self.model_.structure.from_python(X, estimator=self, reset=False)
        y = self._completed(X, y)
        codes, _ = self.model_.outcome.encode(y, self.model_.task.settings, reset=False)
        found: NDArray[np.uint64] = row_keys(rows, np.asarray(codes, dtype=np.float64), seed=0)
        return found

    def summary(
        self,
        X: Any = None,
        y: Any = None,
        *,
        training: tuple[Any, Any] | None = None,
        refits: int = 20,
    ) -> Any:
        """Summarizes the fit as R does: a linear model's table, or a network's effects.

        Args:
            X: held-out rows, for a network's effects.
            y: their outcomes, for the deviance that it explains.
            training: the rows of the fit, for intervals of the effects.
            refits: bootstrap refits of a network.
        """
        check_is_fitted(self)
        return summarize(self, X, y, training=training, refits=refits)

    def describe(self) -> dict[str, Any]:
        """Describes the fitted model as plain data."""
        check_is_fitted(self)
        return {"estimator": type(self).__name__, **describe_model(self.model_)}

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Writes the model as a folder, whole or not at all; :func:`ansatz.load` reads it.

        Args:
            folder: to write.
            overwrite: replace what is there.
        """
        check_is_fitted(self)
        return save_model(self.model_, folder, overwrite=overwrite)

    def plot(self, X: Any = None, y: Any = None, what: str | None = None) -> Any:
        """Draws the model: a matplotlib figure (``.savefig("model.png")``).

        Args:
            X: held-out rows as in ``fit``; without rows only the training is drawn.
            y: their outcomes.
            what: ``"training"`` (learning curves), ``"observed"`` (predicted against observed
                numbers) or ``"calibration"`` (the probability integral transform of numbers, the
                reliability of classes); None draws all that apply.
        """
        check_is_fitted(self)
        from ansatz.report.plots import plot_model  # draws: imported when it is asked for

        return plot_model(self, X, y, what)

    def report(self, X: Any, y: Any = None, path: str | Path | None = None, **options: Any) -> Any:
        """Writes the evidence of the model on given rows, as one page of HTML.

        The page states whether the model was trained on any of them.

        Args:
            X: rows as in ``fit``, or a table with the target for a model of ``ansatz.fit``.
            y: their outcomes.
            path: the file to write; None writes none.
            options: of :func:`ansatz.report.report_model`.
        """
        check_is_fitted(self)
        from ansatz.report import report_model  # draws: imported when it is asked for

        return report_model(self, X, y, path, **options)


share_arguments(Estimator, DEFAULTS)
