"""What outcomes of numbers have in common, whatever they are numbers of."""

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.utils import check_array
from torch import Tensor

from ansatz import likelihoods
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.contracts.inference import Predictive
from ansatz.fitting.contracts.outcome import Metrics, Outcome
from ansatz.fitting.intervals import interval_of, refuse_others
from ansatz.fitting.model import Given, Model
from ansatz.fitting.problem import numbers_of
from ansatz.fitting.scores import evaluate_predictive
from ansatz.fitting.task import Settings
from ansatz.likelihoods import BetaBinomial, Binomial, Likelihood, NormalMixture
from ansatz.spec import TargetSpec

ELSEWHERE = {  # likelihoods of other outcomes -> what to take instead
    **dict.fromkeys(
        ("censored", "cox", "discrete_hazard"),
        "is for outcomes that are known in part: take a SurvivalRegressor, whose fit has event=, "
        "entry= and upper=.",
    ),
    "plackett_luce": "is a likelihood of rankings: take a Ranker.",
    **dict.fromkeys(
        ("categorical", "ordinal", "cross_entropy", "focal"),
        "is a likelihood of classes: take a Classifier.",
    ),
}


class Quantity(Outcome):
    """A number, several numbers at once, or a vector of them: what outcomes of numbers share."""

    labels = None
    settings: ClassVar[frozenset[str]] = frozenset({"calibration"})

    def __init__(self) -> None:
        self.names: list[str] = []
        self.shape: tuple[int, ...] = ()
        self.is_column = False

    @classmethod
    def check_columns(
        cls,
        frame: pd.DataFrame,
        column_roles: ColumnRoles,
        likelihood: str,
        options: dict[str, Any],
        *,
        named: bool,
    ) -> None:
        if likelihoods.registry.get(likelihood).event_ndim:
            _check_vector(frame, column_roles, likelihood, options)
            return
        for name in column_roles.target:
            _check_column(frame, name, likelihood, options)

    def encode(self, y: Any, settings: Settings, *, reset: bool) -> tuple[NDArray[Any], TargetSpec]:
        likelihood = settings.likelihood_name
        if likelihood in ELSEWHERE:
            raise UsageError(f"{likelihood} {ELSEWHERE[likelihood]}")
        values = check_array(
            y, ensure_2d=False, dtype=np.float64, input_name="y", ensure_min_samples=1
        )
        if values.ndim > 2:
            raise ValueError(f"y must have shape (N,) or (N, K), got {values.shape}.")
        shape = values.shape[1:]
        axes = _event_axes(settings.likelihood)
        if axes and len(shape) != axes:
            raise ValueError(
                f"{likelihood} needs y of shape (N, K), one vector per row, got {values.shape}."
            )
        column = shape == (1,) and not axes
        if reset:
            self.names = _names(y, shape)
            self.is_column, self.shape = column, shape
        elif shape != self.shape:
            first = ", ".join(["N", *map(str, self.shape)])
            raise ValueError(f"y has shape {values.shape}, in fit it was of shape ({first}).")
        if axes:
            return values, TargetSpec(event=shape)
        if column:
            values, shape = values[:, 0], ()
        return values, TargetSpec(shape=shape)

    def likelihood(self, settings: Settings, target: TargetSpec, *, few: bool) -> Likelihood:
        return settings.make_likelihood(few=few)

    def evaluate(self, predictive: Predictive, y: Tensor, weight: Tensor | None = None) -> Metrics:
        return evaluate_predictive(predictive, y, weight)

    def point(self, predictive: Predictive) -> NDArray[np.float64]:
        """The likelihood's point prediction; a mean between two modes is warned of."""
        likelihood, raw = predictive
        found: NDArray[np.float64] = likelihood.point(raw).numpy()
        if isinstance(likelihood, NormalMixture):
            _warn_of_modes(likelihood, raw)
        return found[:, None] if self.is_column else found

    def answers(self, likelihood: Likelihood, raw: Tensor) -> dict[str, Tensor]:
        point = likelihood.point(raw)
        return {"prediction": point.unsqueeze(1) if self.is_column else point}

    def has_interval(self, likelihood: Likelihood) -> bool:
        return likelihood.has_distribution

    def frame(self, model: Model, rows: Given, **options: Any) -> dict[str, Any]:
        """``prediction``, ``lower``, ``upper``; of several targets with their names.

        A likelihood of successes predicts their ``probability`` in one trial, and where the number
        of trials is known, ``prediction`` and bounds of the successes.
        """
        interval, method = options.pop("interval", None), options.pop("method", "predictive")
        refuse_others(options)
        served = model.predictive(rows.rows, rows.offset)
        prediction = self.point(served)
        bounds = None
        if interval is not None:
            bounds = interval_of(model, served, interval, method=method, trials=rows.trials)
        several = prediction.ndim == 2
        columns: dict[str, Any] = {}
        for k, suffix in enumerate([f"_{name}" for name in self.names] if several else [""]):
            pick = (slice(None), k) if several else slice(None)
            columns[f"prediction{suffix}"] = prediction[pick]
            if bounds is not None:
                columns[f"lower{suffix}"] = bounds.reshape(*prediction.shape, 2)[pick][..., 0]
                columns[f"upper{suffix}"] = bounds.reshape(*prediction.shape, 2)[pick][..., 1]
        if rows.trials is not None:
            columns["prediction"] = prediction * np.asarray(rows.trials)
        likelihood = model.likelihood
        if isinstance(getattr(likelihood, "likelihood", likelihood), Binomial | BetaBinomial):
            columns["probability"] = prediction
            if rows.trials is None and bounds is None:
                del columns["prediction"]  # of how many?
        return columns

    def target(self, likelihood: Likelihood) -> TargetSpec:
        if likelihood.event_ndim:
            return TargetSpec(event=self.shape)
        return TargetSpec(shape=() if self.is_column else self.shape)

    def state(self) -> dict[str, Any]:
        return {"names": self.names, "shape": list(self.shape), "is_column": self.is_column}

    def load(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.names, self.shape = list(state["names"]), tuple(state["shape"])
        self.is_column = bool(state["is_column"])


def _event_axes(likelihood: str | Likelihood) -> int:
    """The number of axes of y that make up one outcome."""
    kind = likelihoods.registry.get(likelihood) if isinstance(likelihood, str) else likelihood
    found: int = kind.event_ndim
    return found


def _warn_of_modes(likelihood: NormalMixture, raw: Tensor) -> None:
    """A mean between two modes may be a value that hardly occurs."""
    several = int(likelihood.distribution(raw).is_multimodal.sum())
    if several:
        warnings.warn(
            f"{several} of {len(raw)} predicted distributions have several modes; predict gives "
            "their mean. See predict_dist(X).mode and .log_prob.",
            stacklevel=4,
        )


def _names(y: Any, shape: tuple[int, ...]) -> list[str]:
    if hasattr(y, "columns"):
        return [str(name) for name in y.columns]
    if getattr(y, "name", None) is not None:
        return [str(y.name)]
    return ["y"] if shape in ((), (1,)) else [f"y{k}" for k in range(shape[0])]


def _check_column(
    frame: pd.DataFrame, name: str, likelihood: str, options: Mapping[str, Any]
) -> None:
    values = torch.from_numpy(numbers_of(frame, name, likelihood))
    try:
        likelihoods.create(likelihood, **options).check(values)
    except DataError as error:
        raise DataError(f"column '{name}': {error}") from None


def _check_vector(
    frame: pd.DataFrame, column_roles: ColumnRoles, likelihood: str, options: Mapping[str, Any]
) -> None:
    names = [name for name in column_roles.outcome_columns if name]
    if likelihood in ("binomial", "beta_binomial") and column_roles.trials is None:
        raise UsageError(
            f"{likelihood} counts successes of trials: name their column with --trials."
        )
    if len(names) < 2:
        raise UsageError(
            f"{likelihood} is a likelihood of vectors: name their columns, --target A,B,..."
        )
    values = np.stack([numbers_of(frame, name, likelihood) for name in names], axis=1)
    likelihoods.create(likelihood, **options).check(torch.from_numpy(values))
