"""Predictive distributions and intervals of a fitted model."""

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.fitting.conformal import conformal_interval, conformal_quantile
from ansatz.fitting.contracts.inference import Predictive
from ansatz.likelihoods import Distribution, Quantiles

if TYPE_CHECKING:
    from ansatz.fitting.model import Model

Method = Literal["predictive", "conformal"]


def distribution_of(served: Predictive, trials: NDArray[np.float64] | None = None) -> Distribution:
    """The predictive distribution of each row; a loss that is not a likelihood is refused."""
    likelihood, raw = served
    if not likelihood.has_distribution:
        raise UsageError(
            f"{likelihood.name} is a loss, not a likelihood: it predicts a point, no distribution. For "
            "intervals take a likelihood, like student_t, or quantiles."
        )
    given: dict[str, Any] = {} if trials is None else {"trials": torch.from_numpy(trials)}
    if given and "trials" not in inspect.signature(likelihood.distribution).parameters:
        raise UsageError(f"{likelihood.name} counts no successes: it takes no trials.")
    with torch.no_grad():  # a learned dispersion is not a variable here
        return likelihood.distribution(raw, **given)


def interval_of(
    model: "Model",
    served: Predictive,
    level: float = 0.9,
    *,
    method: Method = "predictive",
    trials: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """The equal-tailed predictive interval, ``(N, 2)``, or ``(N, K, 2)`` for K targets."""
    if not 0 < level < 1:
        raise UsageError(f"level must be in (0, 1), got {level}.")
    if method not in ("predictive", "conformal"):
        raise UsageError(f"method must be 'predictive' or 'conformal', got {method!r}.")
    likelihood, raw = served
    if method == "conformal":
        cut = conformal_quantile(require_scores(model), level)
        lower, upper = conformal_interval(likelihood, raw, cut)
    elif isinstance(likelihood, Quantiles):
        lower, upper = likelihood.interval(raw, level)
    else:
        lower, upper = distribution_of(served, trials).interval(level)
    return (torch.stack([lower, upper], -1) + 0.0).numpy()  # a count is not -0


def require_scores(model: "Model") -> Tensor:
    """The conformal scores of the rows held out for them; an error that says how to get some."""
    if model.conformal_scores is None:
        raise UsageError(
            "conformal intervals need rows held out: fit with calibration=0.2, or give some that "
            "nothing has seen, model.calibrate(X, y)."
        )
    return model.conformal_scores


def refuse_others(options: Mapping[str, Any]) -> None:
    """Refuses options of predictions that an outcome does not have."""
    if options:
        raise UsageError(f"such predictions take no {', '.join(options)}.")
