"""Confidence intervals, marginal means and tests of the linear model that a fit holds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data.categorical import sort_levels, spelled
from ansatz.errors import UsageError
from ansatz.likelihoods import Likelihood
from ansatz.linear import Estimates, marginal_means, mean_interval
from ansatz.linear.linked import Linked
from ansatz.linear.margins import Setting

if TYPE_CHECKING:
    import pandas as pd

    from ansatz.fitting.model import Given, Model


def estimates_of(model: "Model") -> Estimates:
    """The estimates of the one linear model that a fit holds."""
    if not model.estimates:
        raise UsageError(
            "this needs the covariance of coefficients, which a linear model has: network='linear'."
        )
    if len(model.estimates) > 1:
        raise UsageError("this model has several targets: fit them one by one.")
    return model.estimates[0]


def mean_interval_of(model: "Model", given: "Given", level: float) -> NDArray[np.float64]:
    """The confidence interval of the mean of each row, ``(N, 2)``, ``(N, K, 2)`` for classes."""
    estimates = estimates_of(model)
    (x,) = model.encoder.inputs(given.rows, notes=[])
    likelihood, raw = _predictor(model, x, given.offset)
    found = mean_interval(estimates, likelihood, x, raw, level)
    ends: NDArray[np.float64] = torch.stack([found.lower, found.upper], -1).numpy()
    return ends


def _predictor(model: "Model", x: Tensor, offset: Tensor | None) -> tuple[Likelihood, Tensor]:
    """The linear predictor of each row, and the likelihood that takes it."""
    trained = model.posterior.networks[0]
    network: Any = trained.network
    if getattr(network, "link", None) is None:
        return trained.likelihood, trained((x,), offset)
    with torch.no_grad():
        return Linked(trained.likelihood, network.link), network.output(x)


def margins_of(
    model: "Model", given: "Given", column: str, values: Sequence[Any] | None, level: float
) -> "pd.DataFrame":
    """Marginal means and contrasts of the values of a column."""
    estimates = estimates_of(model)
    rows: Any = given.rows
    frame = rows.named
    if column not in frame.columns:
        known = ", ".join(map(str, frame.columns[:20]))
        raise UsageError(f"no column '{column}'. Columns: {known}.")
    chosen = _values(frame[column]) if values is None else list(values)
    if not chosen:
        raise UsageError(f"column '{column}' has no values to compare.")
    settings = []
    for value in chosen:
        moved = rows.like(frame.assign(**{column: value}))
        (x,) = model.encoder.inputs(moved, notes=[])
        likelihood, raw = _predictor(model, x, given.offset)
        name = f"{column} = {value:.4g}" if isinstance(value, float) else f"{column} = {value}"
        settings.append(Setting(name, x, raw))
    labels = model.outcome.labels
    names = None if labels is None else [str(label) for label in labels]
    return marginal_means(estimates, likelihood, settings, level=level, class_names=names)


def _values(cells: "pd.Series") -> list[Any]:
    """The levels of a category, or the quartiles of a number."""
    if cells.dtype.kind in "iuf" and cells.nunique() > 10:
        found: list[Any] = np.quantile(cells.dropna(), [0.25, 0.5, 0.75]).tolist()
        return found
    if cells.dtype.kind in "iuf":
        return sorted(cells.dropna().unique().tolist())
    return sort_levels(spelled(cells)[1])
