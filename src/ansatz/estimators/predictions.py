"""What one asks of a fitted model of a table."""

import copy
import inspect
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ansatz import linear
from ansatz.data import as_frame
from ansatz.data.grids import Grids, GridTable
from ansatz.errors import DataError, UsageError
from ansatz.fitting.duplicates import content_keys, copied
from ansatz.fitting.description import describe_estimator
from ansatz.inference.ensemble_model import EnsembleModel
from ansatz.structures.vector.rows import read_column, read_rows
from ansatz.fitting.summaries import summarize
from ansatz.fitting.model import TableModel
from ansatz.inference.conformal import conformal_interval, conformal_quantile, conformal_scores
from ansatz.likelihoods import BetaBinomial, Binomial, Distribution, Likelihood, Quantiles
from ansatz.metrics import judge, pinball

ResidualKind = Literal["response", "pearson", "deviance", "quantile"]


class TableRows(NamedTuple):
    """Rows of a table, taken apart by the names of the fit.

    Example:
        >>> from ansatz.estimators.predictions import TableRows
        >>> TableRows._fields
        ('X', 'y', 'weight', 'offset', 'trials')
    """

    X: Any
    y: Any
    weight: NDArray[np.float64] | None
    offset: NDArray[np.float64] | None
    trials: NDArray[np.float64] | None


class Predictions:
    """The verbs of a fitted estimator: distribution, interval, sample, score, residuals.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> x = np.linspace(0, 1, 40).reshape(-1, 1)
        >>> model = Regressor().fit(x, x[:, 0])
        >>> model.predict_dist(x).mean.shape
        torch.Size([40])
    """

    model_: TableModel

    def _raw(self, X: Any, offset: ArrayLike | None = None) -> Tensor:
        check_is_fitted(self)
        as_table = getattr(self, "columns_", None) is not None
        rows = read_rows(self, X, reset=False, as_table=as_table)
        extra = read_column("offset", offset, len(rows))
        if extra is None and getattr(self, "has_offset_", False):
            raise UsageError(
                "this model was fitted with an offset and predicts with one: pass offset=, zeros "
                "for an exposure of 1."
            )
        return self.model_.raw(rows, None if extra is None else torch.from_numpy(extra))

    def _from_table(self, table: Any, *, outcomes: bool) -> TableRows:
        """Features, outcomes, weights and offsets of a table, found by the names of the fit."""
        uses = getattr(self, "uses_", None)
        if uses is None:
            raise UsageError("this model was fitted to X and y: evaluate(X, y) needs both.")
        if self.model_.preprocessor.spec.structure == "grid":
            grids = self._grid_table(table, outcomes=outcomes)
            return _from_grids(grids, uses, outcomes=outcomes)
        frame = as_frame(table)
        # scikit-learn gives a table without columns no names.
        names = [str(name) for name in getattr(self, "feature_names_in_", ())]
        absent = [name for name in names if name not in frame.columns]
        if absent:
            listed = ", ".join(f"'{name}'" for name in absent[:5])
            raise DataError(f"the table lacks {len(absent)} columns of the fit: {listed}.")
        y = uses.outcomes(frame) if outcomes else None
        return TableRows(
            frame[names], y, uses.weight(frame), uses.offsets(frame), uses.trial_counts(frame)
        )

    def _grid_table(self, table: Any, *, outcomes: bool) -> GridTable:
        """Examples as they are, or read from a folder, a file or arrays."""
        if isinstance(table, GridTable):
            return table
        from ansatz.fitting.posing import read_like  # it poses problems

        return read_like(self, table, outcomes=outcomes)

    def _outcomes(self, y: Any, count: int) -> Tensor:
        codes, _ = self._encode(y, reset=False)  # type: ignore[attr-defined]
        if len(codes) != count:
            raise DataError(f"y must have one outcome per row: {count} rows, {len(codes)} in y.")
        return torch.from_numpy(np.array(codes))  # a copy: the given one may be read-only

    def _require_numbers(self) -> None:
        """Refuses what classes do not have."""
        if getattr(self, "classes_", None) is not None:
            raise UsageError(
                "classes have no intervals: predict_proba gives the probability of each."
            )

    def _served_raw(self, raw: Tensor) -> Tensor:
        """The raw numbers that predictive distributions are made of."""
        return raw

    def _judge(
        self, likelihood: Likelihood, raw: Tensor, y: Tensor, weight: Tensor | None = None
    ) -> dict[str, float | None]:
        """Metrics of raw predictions of this estimator's kind of outcome."""
        return judge_raw(likelihood, raw, y, weight)

    def predict_dist(
        self,
        X: Any,
        *,
        offset: ArrayLike | None = None,
        trials: ArrayLike | None = None,
        recalibrated: bool = True,
    ) -> Distribution:
        """The predictive distribution of each row: density, cdf, quantiles, moments, samples.

        Args:
            X: rows as in ``fit``.
            offset: ``(N,)``, known parts of the linear predictor.
            trials: ``(N,)``, for laws that count successes of trials; one each by default.
            recalibrated: False gives the law as it was before its recalibration.
        """
        if not recalibrated:
            return self._without_recalibration().predict_dist(X, offset=offset, trials=trials)
        raw = self._served_raw(self._raw(X, offset))
        law = self.model_.objective.likelihood
        if not law.is_law:
            raise UsageError(
                f"{law.name} is a loss, not a law: it predicts a point, no distribution. For "
                "intervals take a law, like student_t, or quantiles."
            )
        counts = read_column("trials", trials, len(raw))
        given: dict[str, Any] = {} if counts is None else {"trials": torch.from_numpy(counts)}
        if given and "trials" not in inspect.signature(law.distribution).parameters:
            raise UsageError(f"{law.name} counts no successes: it takes no trials.")
        with torch.no_grad():  # a learned spread is no variable here
            return law.distribution(raw, **given)

    def _without_recalibration(self) -> Self:
        """This model with the predictive that its members gave."""
        plain = copy.copy(self)
        if isinstance(self.model_, EnsembleModel):
            plain.model_ = self.model_.without_recalibration()
        return plain

    def interval(
        self,
        X: Any,
        level: float = 0.9,
        *,
        method: Literal["law", "conformal"] = "law",
        offset: ArrayLike | None = None,
        trials: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """The equal-tailed predictive interval, ``(N, 2)``, or ``(N, K, 2)`` for K targets.

        Args:
            X: rows as in ``fit``.
            level: the probability inside.
            method: ``"law"`` takes the quantiles of the predictive distribution;
                ``"conformal"`` those that held this share of rows set aside (``calibration``,
                ``calibrate``), whether the law is right or not.
            offset: ``(N,)``, known parts of the linear predictor.
            trials: ``(N,)``, for laws that count successes of trials.
        """
        if not 0 < level < 1:
            raise UsageError(f"level must be in (0, 1), got {level}.")
        if method not in ("law", "conformal"):
            raise UsageError(f"method must be 'law' or 'conformal', got {method!r}.")
        check_is_fitted(self)
        self._require_numbers()
        law = self.model_.objective.likelihood
        if method == "conformal":
            cut = conformal_quantile(require_scores(self), level)
            lower, upper = conformal_interval(law, self._served_raw(self._raw(X, offset)), cut)
        elif isinstance(law, Quantiles):
            lower, upper = law.interval(self._raw(X, offset), level)
        else:
            lower, upper = self.predict_dist(X, offset=offset, trials=trials).interval(level)
        return (torch.stack([lower, upper], -1) + 0.0).numpy()  # a count is not -0

    def calibrate(self, X: Any, y: Any, *, offset: ArrayLike | None = None) -> Self:
        """Measures on rows set aside how far out outcomes lie, for conformal intervals.

        Args:
            X: rows that neither the fit nor any choice has seen.
            y: their outcomes.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        check_is_fitted(self)
        self._require_numbers()
        raw = self._served_raw(self._raw(X, offset))
        law = self.model_.objective.likelihood
        self.conformal_scores_ = conformal_scores(law, raw, self._outcomes(y, len(raw)))
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
            count: draws per row.
            offset: ``(N,)``, known parts of the linear predictor.
            trials: ``(N,)``, for laws that count successes of trials.
            random_state: seed of the draws.
        """
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        generator = torch.Generator().manual_seed(seed)
        law = self.predict_dist(X, offset=offset, trials=trials)
        draws = law.sample((count,), generator=generator).numpy()
        labels = getattr(self, self._labels, None)  # type: ignore[attr-defined]
        return draws if labels is None else labels[draws.astype(np.intp)]

    def log_score(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
    ) -> float:
        """The mean log-likelihood of outcomes: higher is better.

        Args:
            X: rows as in ``fit``.
            y: their outcomes.
            sample_weight: ``(N,)`` frequency weights.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        nll = self.evaluate(X, y, sample_weight, offset=offset).get("nll")
        if nll is None:
            raise UsageError(
                f"{self.model_.objective.likelihood.name} is a loss: it has no density."
            )
        return -nll

    def evaluate(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
    ) -> dict[str, float | None]:
        """Every metric that applies to the law: nll, crps, rmse, ... ; None where undefined.

        Args:
            X: rows as in ``fit``; for a model of ``ansatz.fit``, a table with the target in it.
            y: their outcomes; None takes them, weights and offsets from the table.
            sample_weight: ``(N,)`` frequency weights.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        if y is None:
            X, y, sample_weight, offset, _ = self._from_table(X, outcomes=True)
        if X is None:  # rows without features
            X = pd.DataFrame(index=range(len(y)))
        raw = self._served_raw(self._raw(X, offset))
        weight = read_column("sample_weight", sample_weight, len(raw))
        return self._judge(
            self.model_.objective.likelihood,
            raw,
            self._outcomes(y, len(raw)),
            None if weight is None else torch.from_numpy(weight),
        )

    def copies(self, table: Any) -> NDArray[np.bool_]:
        """Which rows of a table with the target are copies of rows that the model learned from.

        Args:
            table: as for ``evaluate``; a model of ``ansatz.fit`` remembers a hash of each row.
        """
        X, y, *_ = self._from_table(table, outcomes=True)
        rows = read_rows(self, X, reset=False, as_table=not isinstance(X, Grids))
        codes, _ = self._encode(y, reset=False)  # type: ignore[attr-defined]
        learned = getattr(self, "row_keys_", np.empty(0, dtype=np.uint64))
        return copied(learned, content_keys(rows, codes))

    def residuals(
        self,
        X: Any,
        y: Any,
        kind: ResidualKind = "quantile",
        *,
        offset: ArrayLike | None = None,
        random_state: int = 0,
    ) -> NDArray[np.float64]:
        """Outcomes against predictions, one number per row.

        Args:
            X: rows as in ``fit``.
            y: their outcomes.
            kind: ``"response"`` y - E[y]; ``"pearson"`` divided by the model's sd; ``"deviance"``
                signed root of the unit deviance; ``"quantile"`` Phi^{-1} of the (randomised) PIT,
                standard normal for the right model whatever the law.
            offset: ``(N,)``, known parts of the linear predictor.
            random_state: seed of the randomisation for discrete laws.
        """
        raw = self._served_raw(self._raw(X, offset))
        outcomes = self._outcomes(y, len(raw))
        generator = torch.Generator().manual_seed(random_state)
        likelihood = self.model_.objective.likelihood
        with torch.no_grad():
            found = linear.residuals(likelihood, raw, outcomes, kind=kind, generator=generator)
        return found.numpy()

    def summary(
        self,
        X: Any = None,
        y: Any = None,
        *,
        training: tuple[Any, Any] | None = None,
        refits: int = 20,
    ) -> Any:
        """What was fitted, printed as R prints it; see :func:`~ansatz.fitting.summaries`.

        Args:
            X: for a network, held-out rows to average effects over.
            y: their outcomes, for deviance explained and intervals.
            training: (X, y) that the network was fitted to; intervals come from refits to
                bootstrap samples of them.
            refits: how many; 0 for none.
        """
        check_is_fitted(self)
        return summarize(self, X, y, training=training, refits=refits)  # type: ignore[arg-type]

    def describe(self) -> dict[str, Any]:
        """What is known about the fitted model, as plain data."""
        check_is_fitted(self)
        return describe_estimator(self)  # type: ignore[arg-type]

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Writes the model as a folder, whole or not at all; :func:`ansatz.load` reads it.

        Args:
            folder: its name.
            overwrite: replace what is there.
        """
        from ansatz.fitting.saved import save  # saved.py knows every estimator

        check_is_fitted(self)
        return save(self, folder, overwrite=overwrite)  # type: ignore[arg-type]

    def predict_frame(self, X: Any, interval: float | None = None, **options: Any) -> pd.DataFrame:
        """Predictions as a table: ``prediction``, ``lower``, ``upper``, ``p_<class>``.

        A law of successes predicts their ``probability`` in one trial, and where the number of
        trials is known, ``prediction`` and bounds of the successes.

        Args:
            X: rows as in ``fit``; the frame's index is kept.
            interval: the level of ``lower`` and ``upper``; None leaves them out.
            options: ``offset``, ``trials``; ``method`` of the interval.
        """
        index = X.index if isinstance(X, pd.DataFrame) else None
        trials, method = options.pop("trials", None), options.pop("method", "law")
        uses = getattr(self, "uses_", None)
        if uses is not None:
            rows = self._from_table(X, outcomes=False)
            X, options = rows.X, {**options, "offset": rows.offset}
            trials = rows.trials
            if uses.trials is not None and trials is None and interval is not None:
                raise DataError(
                    f"the table has no column '{uses.trials}': an interval of successes needs "
                    "their trials."
                )
        classes = getattr(self, "classes_", None)
        if classes is not None:
            raw = self._raw(X, **options)  # once: images are dear
            chosen = self._decide(raw)  # type: ignore[attr-defined]
            probability = self._probabilities(self._served_raw(raw))  # type: ignore[attr-defined]
            named = {f"p_{name}": probability[:, k].numpy() for k, name in enumerate(classes)}
            return pd.DataFrame({"prediction": chosen, **named}, index=index)
        prediction = self.predict(X, **options)  # type: ignore[attr-defined]
        several = prediction.ndim == 2
        suffixes = [f"_{name}" for name in self.target_names_] if several else [""]  # type: ignore[attr-defined]
        columns: dict[str, Any] = {}
        bounds = None
        if interval is not None:
            bounds = self.interval(X, interval, method=method, trials=trials, **options)
        for k, suffix in enumerate(suffixes):
            pick = (slice(None), k) if several else slice(None)
            columns[f"prediction{suffix}"] = prediction[pick]
            if bounds is not None:
                columns[f"lower{suffix}"] = bounds.reshape(*prediction.shape, 2)[pick][..., 0]
                columns[f"upper{suffix}"] = bounds.reshape(*prediction.shape, 2)[pick][..., 1]
        if trials is not None:
            columns["prediction"] = prediction * np.asarray(trials)
        served = self.model_.objective.likelihood
        if isinstance(getattr(served, "law", served), Binomial | BetaBinomial):
            columns["probability"] = prediction
            if trials is None and bounds is None:
                del columns["prediction"]  # of how many?
        return pd.DataFrame(columns, index=index)

    def report(self, X: Any, y: Any = None, path: str | Path | None = None, **options: Any) -> Any:
        """The evidence of the model on rows it never saw, as one page of HTML.

        Args:
            X: rows as in ``fit``; for a model of ``ansatz.fit``, a table with the target in it.
            y: their outcomes; None takes them, weights and offsets from the table.
            path: the file to write; None gives the page without writing it.
            options: ``sample_weight``, ``offset``, ``group``, ``time``; ``training=(X, y)``, the
                rows learned from, for the models beside it; ``refits``, ``costs``, ``overwrite``.
        """
        from ansatz.report import report_model  # draws: imported when it is asked for

        check_is_fitted(self)
        return report_model(self, X, y, path, **options)  # type: ignore[arg-type]


def _from_grids(table: GridTable, uses: Any, *, outcomes: bool) -> TableRows:
    """The same of grids with the columns beside them."""
    frame = table.frame
    y = None
    if outcomes:
        y = table.masks if uses.target == ["mask"] else uses.outcomes(frame)
        if y is None:
            raise DataError(f"{table.origin}: no masks to judge by: --masks says where they are.")
    return TableRows(
        table.grids, y, uses.weight(frame), uses.offsets(frame), uses.trial_counts(frame)
    )


def require_scores(model: Any) -> Tensor:
    """The scores of the rows set aside; an error that says how to get some.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.estimators.predictions import require_scores
        >>> x = np.arange(9.0).reshape(-1, 1)
        >>> model = Regressor(network="linear").fit(x, x[:, 0]).calibrate(x, x[:, 0] + 1)
        >>> require_scores(model).shape
        torch.Size([9])
    """
    scores: Tensor | None = getattr(model, "conformal_scores_", None)
    if scores is None:
        raise UsageError(
            "conformal intervals need rows set aside: fit with calibration=0.2, or give some that "
            "nothing has seen, model.calibrate(X, y)."
        )
    return scores


def judge_raw(
    likelihood: Any, raw: Tensor, y: Tensor, weight: Tensor | None = None
) -> dict[str, float | None]:
    """Metrics of raw predictions: with the law's distribution, or a loss's point alone.

    Example:
        >>> import torch
        >>> from ansatz.estimators.predictions import judge_raw
        >>> from ansatz.likelihoods import Normal
        >>> metrics = judge_raw(Normal(dispersion=1.0), torch.zeros(2, 1), torch.zeros(2))
        >>> round(metrics["nll"], 4)
        0.9189
    """
    with torch.no_grad():
        if not likelihood.is_law:
            found = judge(y, point=likelihood.point(raw), weight=weight)
            if isinstance(likelihood, Quantiles):
                at = likelihood.quantiles(raw)
                found = {"pinball": float(pinball(y, at, likelihood.levels, weight)), **found}
            return found
        distribution, outcome = likelihood.given(raw, y)
        # The point that belongs to the outcome: a count of successes, not their share.
        point = likelihood.point(raw) if outcome is y else distribution.mean
        return judge(outcome, point=point, distribution=distribution, weight=weight)
