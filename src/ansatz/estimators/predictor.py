"""A fitted estimator: its attributes, and predictions for rows."""

import copy
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from ansatz import linear
from ansatz.errors import DataError, UsageError
from ansatz.estimators.posterior_methods import PosteriorMethods
from ansatz.fitting.choice import LikelihoodChoice
from ansatz.fitting.components import components_of
from ansatz.fitting.contracts.rows import Rows
from ansatz.fitting.intervals import Method, conformal_scores, distribution_of, interval_of
from ansatz.fitting.job import read_column
from ansatz.fitting.linear_inference import margins_of, mean_interval_of
from ansatz.fitting.model import Given, Model
from ansatz.fitting.recipe_choice import RecipeChoice
from ansatz.likelihoods import Distribution

ResidualKind = Literal["response", "pearson", "deviance", "quantile"]


class FittedAttribute:
    """An attribute that a fitted model has under another name; absent where it has none."""

    def __init__(self, read: Callable[[Model], Any]) -> None:
        self.read = read

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        if estimator is None:
            return self
        model = estimator.__dict__.get("model_")
        found = None if model is None else self.read(model)
        if found is None:
            raise AttributeError(f"{type(estimator).__name__} has no attribute {self.name!r}")
        return found


def _linear(model: Model) -> Any:
    """One exact linear fit, or a list of one for each target."""
    several = len(model.linear) > 1 or bool(model.linear and model.several)
    return model.linear if several else next(iter(model.linear), None)


def _choice(model: Model) -> LikelihoodChoice | None:
    """How the likelihood was chosen, where it was left to the rows."""
    record = model.evidence.get("choice")
    return None if record is None else LikelihoodChoice.of(record)


def _network(model: Model) -> nn.Module | None:
    """The trained network; of several, the first; None of a model that has none."""
    return model.network if model.posterior.networks else None


class Predictor(PosteriorMethods, BaseEstimator):
    """The predictions of a fitted model: points, distributions, intervals, samples, tables."""

    model_: Model

    columns_ = FittedAttribute(lambda model: model.columns)
    conformal_scores_ = FittedAttribute(lambda model: model.conformal_scores)
    evidence_ = FittedAttribute(lambda model: model.evidence)
    has_offset_ = FittedAttribute(lambda model: model.has_offset)
    history_ = FittedAttribute(lambda model: model.history)
    likelihood_ = FittedAttribute(lambda model: model.likelihood)
    likelihood_choice_ = FittedAttribute(_choice)
    linear_ = FittedAttribute(_linear)
    network_ = FittedAttribute(_network)
    n_iter_ = FittedAttribute(lambda model: model.iterations)
    notes_ = FittedAttribute(lambda model: [*model.outcome.notes(model), *model.notes])
    recalibration_ = FittedAttribute(lambda model: model.recalibration)
    recipe_ = FittedAttribute(lambda model: model.recipe)
    recipe_choice_ = FittedAttribute(RecipeChoice.of)
    row_keys_ = FittedAttribute(lambda model: model.row_keys)
    saved_summary_ = FittedAttribute(lambda model: model.summary)
    target_names_ = FittedAttribute(lambda model: model.outcome.names)
    column_roles_ = FittedAttribute(lambda model: model.column_roles)

    def _given(
        self, X: Any, offset: ArrayLike | None = None, trials: ArrayLike | None = None
    ) -> Given:
        """Rows to predict, checked against those of the fit."""
        check_is_fitted(self)
        self.model_.require_converged()
        rows: Any = self.model_.structure.from_python(X, estimator=self, reset=False)
        extra = read_column("offset", offset, len(rows))
        if extra is None and self.model_.has_offset:
            raise UsageError(
                "this model was fitted with an offset and predicts with one: pass offset=, zeros "
                "for an exposure of 1."
            )
        counts = read_column("trials", trials, len(rows))
        return Given(rows, None if extra is None else torch.from_numpy(extra), counts)

    def rows(self, table: Any) -> Rows:
        """Reads a table, or X as in ``fit``, as the rows that the model's encoder takes.

        Args:
            table: as for ``predict_frame``.
        """
        X = table
        if self.model_.column_roles is not None:
            X = self._from_table(table, outcomes=False).X
        found: Rows = self.model_.structure.from_python(X, estimator=self, reset=False)
        return found

    def _served(self, X: Any, offset: ArrayLike | None = None) -> Any:
        rows = self._given(X, offset)
        return self.model_.predictive(rows.rows, rows.offset)

    def _from_table(self, table: Any, *, outcomes: bool) -> Any:
        """Features, outcomes, weights and offsets of a table, found by the names of the fit."""
        check_is_fitted(self)
        if self.model_.column_roles is None:
            raise UsageError("this model was fitted to X and y: evaluate(X, y) needs both.")
        return self.model_.structure.from_table(self.model_, table, outcomes=outcomes)

    def _completed(self, X: Any, y: Any) -> Any:
        """Outcomes with what the columns of their rows say of them: nothing, in general."""
        return y

    def _outcomes(self, y: Any, count: int) -> Tensor:
        codes, _ = self.model_.outcome.encode(y, self.model_.task.settings, reset=False)
        if len(codes) != count:
            raise DataError(f"y must have one outcome per row: {count} rows, {len(codes)} in y.")
        return torch.from_numpy(np.array(codes))  # a copy: the given one may be read-only

    def predict(self, X: Any, *, offset: ArrayLike | None = None) -> NDArray[Any]:
        """Predicts one number or label for each row: the point prediction of the likelihood.

        Args:
            X: rows as in ``fit``.
            offset: as in ``fit``.
        """
        rows = self._given(X, offset)
        own = self.model_.posterior.predictive(rows.rows, rows.offset)
        found: NDArray[Any] = self.model_.outcome.point(own)
        return found

    def predict_dist(
        self,
        X: Any,
        *,
        offset: ArrayLike | None = None,
        trials: ArrayLike | None = None,
        recalibrated: bool = True,
    ) -> Distribution:
        """Predicts the distribution of each row: density, cdf, quantiles, moments, samples.

        Args:
            X: rows as in ``fit``.
            offset: as in ``fit``.
            trials: how many tries each row's successes are counted of.
            recalibrated: False gives the mixture of an ensemble as its members made it.
        """
        if not recalibrated:
            return self._without_recalibration().predict_dist(X, offset=offset, trials=trials)
        rows = self._given(X, offset, trials)
        found = distribution_of(self.model_.predictive(rows.rows, rows.offset), rows.trials)
        if found.members is None:
            parts = self.model_.posterior.components
            found.members = lambda: [
                (weight, distribution_of(part, rows.trials))
                for weight, part in parts(rows.rows, rows.offset)
            ]
        return found

    def _without_recalibration(self) -> Self:
        """This model with the predictive that it had before recalibration."""
        plain, model = copy.copy(self), copy.copy(self.model_)
        model.posterior = model.posterior.without_recalibration()
        plain.model_ = model
        return plain

    def interval(
        self,
        X: Any,
        level: float = 0.9,
        *,
        of: Literal["outcome", "mean"] = "outcome",
        method: Method = "predictive",
        offset: ArrayLike | None = None,
        trials: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Predicts an equal-tailed interval for each row, ``(N, 2)``; ``(N, K, 2)`` for K targets.

        Args:
            X: rows as in ``fit``.
            level: the share of outcomes that it should hold; of means, the confidence.
            of: ``"outcome"``: where y will be; ``"mean"``: the confidence interval of the mean of
                y given x, of a linear model (of classes, of their probabilities).
            method: ``"predictive"`` takes the quantiles of the predictive distribution;
                ``"conformal"`` the bounds that held this share of rows held out (``calibration=``).
            offset: as in ``fit``.
            trials: how many tries each row's successes are counted of.
        """
        check_is_fitted(self)
        if of not in ("outcome", "mean"):
            raise UsageError(f"of must be 'outcome' or 'mean', got {of!r}.")
        if of == "mean":
            return mean_interval_of(self.model_, self._given(X, offset), level)
        self._require_numbers()
        rows = self._given(X, offset, trials)
        served = self.model_.predictive(rows.rows, rows.offset)
        return interval_of(self.model_, served, level, method=method, trials=rows.trials)

    def margins(
        self,
        X: Any,
        column: str,
        values: Sequence[Any] | None = None,
        *,
        level: float = 0.95,
        offset: ArrayLike | None = None,
    ) -> pd.DataFrame:
        """Computes marginal means of a linear model and their contrasts, by the delta method.

        Every row gets each value of the column in turn; the predicted means are averaged over rows.

        Args:
            X: rows as in ``fit``, to average over.
            column: whose values are compared.
            values: to compare; by default the levels of a category, or the quartiles of a number.
            level: of the intervals.
            offset: as in ``fit``.
        """
        check_is_fitted(self)
        return margins_of(self.model_, self._given(X, offset), column, values, level)

    def _require_numbers(self) -> None:
        if self.model_.outcome.labels is not None:
            raise UsageError(
                "classes have no intervals: predict_proba gives the probability of each."
            )

    def calibrate(self, X: Any, y: Any, *, offset: ArrayLike | None = None) -> Self:
        """Measures on held-out rows how far out outcomes lie, for conformal intervals.

        Args:
            X: rows that nothing of the fit has seen.
            y: their outcomes.
            offset: as in ``fit``.
        """
        check_is_fitted(self)
        self._require_numbers()
        likelihood, raw = self._served(X, offset)
        self.model_.conformal_scores = conformal_scores(
            likelihood, raw, self._outcomes(self._completed(X, y), len(raw))
        )
        return self

    def sample(
        self,
        X: Any,
        count: int = 1,
        *,
        offset: ArrayLike | None = None,
        trials: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> NDArray[Any]:
        """Draws from the predictive distribution, ``(count, N)``, ``(count, N, K)`` of vectors.

        Args:
            X: rows as in ``fit``.
            count: draws of each row.
            offset: as in ``fit``.
            trials: how many tries each row's successes are counted of.
            random_state: of the draws.
        """
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        generator = torch.Generator().manual_seed(seed)
        distribution = self.predict_dist(X, offset=offset, trials=trials)
        draws: NDArray[Any] = distribution.sample((count,), generator=generator).numpy()
        labels = self.model_.outcome.labels
        return draws if labels is None else labels[draws.astype(np.intp)]

    def predict_frame(self, X: Any, interval: float | None = None, **options: Any) -> pd.DataFrame:
        """Predicts a table: ``prediction``, ``lower``, ``upper``, ``p_<class>``, ...

        Args:
            X: rows as in ``fit``; of a model of ``ansatz.fit`` its table.
            interval: adds the bounds that hold this share of the probability.
            options: ``offset``, ``trials``, ``method``, ``times`` of survival models, and
                ``components=True`` for ``sd``, ``sd_within`` and ``sd_between`` (of classes
                entropies): what more rows would not remove, and what they would.
        """
        check_is_fitted(self)
        index = X.index if isinstance(X, pd.DataFrame) else None
        offset, trials = options.pop("offset", None), options.pop("trials", None)
        components = options.pop("components", False)
        column_roles = self.model_.column_roles
        if column_roles is not None:
            X, _, _, offset, trials = self._from_table(X, outcomes=False)
            if column_roles.trials is not None and trials is None and interval is not None:
                raise DataError(
                    f"the table has no column '{column_roles.trials}': an interval of successes "
                    "needs their trials."
                )
        rows = self._given(X, offset)._replace(trials=trials)
        columns = self.model_.outcome.frame(self.model_, rows, interval=interval, **options)
        if components:
            columns = {**columns, **components_of(self.model_, rows)}
        if index is not None and len(index) != len(rows.rows):  # of a long table
            index = None
        return pd.DataFrame(columns, index=index)

    def recommend(self, source: Any, *, relation: str | None = None, top: int = 10) -> pd.DataFrame:
        """Lists the best partners of one thing, without those that it is known to have.

        Of models of ratings, links and triples.

        Args:
            source: its name: a user, a node, an entity.
            relation: of triples; ``"^NAME"`` reads a relation backwards.
            top: partners at most.
        """
        check_is_fitted(self)
        structure = self.model_.structure
        return structure.recommend(self.model_, str(source), relation=relation, top=top)

    def residuals(
        self,
        X: Any,
        y: Any,
        kind: ResidualKind = "quantile",
        *,
        offset: ArrayLike | None = None,
        random_state: int = 0,
    ) -> NDArray[np.float64]:
        """Compares outcomes with predictions, one number per row.

        Args:
            X: rows as in ``fit``.
            y: their outcomes.
            kind: ``"response"``, ``"pearson"``, ``"deviance"`` or ``"quantile"``.
            offset: as in ``fit``.
            random_state: of the randomised quantile residuals of counts.
        """
        likelihood, raw = self._served(X, offset)
        outcomes = self._outcomes(self._completed(X, y), len(raw))
        generator = torch.Generator().manual_seed(random_state)
        with torch.no_grad():
            found = linear.residuals(likelihood, raw, outcomes, kind=kind, generator=generator)
        return found.numpy()
