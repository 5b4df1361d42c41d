"""Predictive intervals: quantiles of the distribution, or conformal bounds."""

import inspect
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.fitting.contracts.inference import Predictive
from ansatz.likelihoods import Distribution, Likelihood, Quantiles
from ansatz.likelihoods.averaged import Averaged

if TYPE_CHECKING:
    from ansatz.fitting.model import Model


def conformal_scores(likelihood: Likelihood, raw: Tensor, y: Tensor) -> Tensor:
    r"""Scores how far out each outcome lies in its predictive distribution.

    .. math:: s_i = -\log \min\{P(Y \le y_i),\; P(Y \ge y_i)\}

    for a likelihood, which adapts the interval to the dispersion and the skewness at each x; for a
    loss without a dispersion the absolute error.

    Args:
        likelihood: the served likelihood.
        raw: ``(N, ...)``, of rows that the model was not trained on.
        y: ``(N,)``, or ``(N, K)`` for K targets.

    Example:
        >>> import torch
        >>> from ansatz.fitting.intervals import conformal_scores
        >>> from ansatz.likelihoods import Normal
        >>> y = torch.tensor([0.0, 2.0])
        >>> scores = conformal_scores(Normal(dispersion=1.0), torch.zeros(2, 1), y)
        >>> [round(tail, 4) for tail in (-scores).exp().tolist()]  # 1/2 and 1 - Phi(2)
        [0.5, 0.0228]

    References:
        Chernozhukov, Wuthrich and Zhu (2021), Distributional conformal prediction.
        https://arxiv.org/abs/1909.07889
    """
    with torch.no_grad():
        if not likelihood.has_distribution:
            return (y - likelihood.point(raw)).abs() / _width(likelihood, raw)
        distribution, outcome = likelihood.given(raw, y)
        return _scores(distribution, outcome)


def _width(likelihood: Likelihood, raw: Tensor) -> Tensor:
    """The distance of the outer quantiles where there are some, else 1."""
    if isinstance(likelihood, Quantiles) and len(likelihood.levels) > 1:
        q = likelihood.quantiles(raw)
        return q[..., -1] - q[..., 0]
    return torch.ones((), dtype=raw.dtype)


def _scores(distribution: Distribution, y: Tensor) -> Tensor:
    below = y - 1 if distribution.discrete else y  # P(Y >= y) = P(Y > y - 1)
    return -torch.minimum(distribution.log_cdf(y), distribution.log_survival(below))


def conformal_quantile(scores: Tensor, level: float) -> Tensor:
    r"""Finds the score that holds at least ``level`` of further outcomes, ``(K,)`` or ``()``.

    .. math:: \hat s = s_{(k)}, \qquad k = \lceil (n + 1)\, \text{level} \rceil

    the k-th smallest of n scores; infinite where k > n, since so few rows promise no such level.

    Args:
        scores: ``(n,)`` or ``(n, K)``.
        level: the coverage.

    Example:
        >>> import torch
        >>> from ansatz.fitting.intervals import conformal_quantile
        >>> conformal_quantile(torch.arange(1.0, 10.0), 0.8)
        tensor(8.)
        >>> conformal_quantile(torch.arange(1.0, 10.0), 0.95)
        tensor(inf)

    References:
        Vovk, Gammerman and Shafer (2005), Algorithmic Learning in a Random World.
        Lei et al. (2018), Distribution-free predictive inference for regression.
        https://doi.org/10.1080/01621459.2017.1307116
    """
    count = len(scores)
    # Rounding must not turn 0.9 * 10 into 9.000000000000002.
    place = math.ceil((count + 1) * level - 1e-9)
    if place > count:
        return torch.full(scores.shape[1:], math.inf, dtype=scores.dtype)
    return scores.sort(0).values[place - 1]


def conformal_interval(
    likelihood: Likelihood, raw: Tensor, quantile: Tensor
) -> tuple[Tensor, Tensor]:
    """Finds the interval of outcomes whose score is at most ``quantile``.

    Args:
        likelihood: the served likelihood.
        raw: ``(N, ...)``.
        quantile: from :func:`conformal_quantile`.

    Example:
        >>> import math, torch
        >>> from ansatz.fitting.intervals import conformal_interval
        >>> from ansatz.likelihoods import Normal
        >>> cut = torch.tensor(-math.log(0.025))
        >>> low, high = conformal_interval(Normal(dispersion=1.0), torch.zeros(1, 1), cut)
        >>> round(high.item(), 2)
        1.96
    """
    with torch.no_grad():
        if not likelihood.has_distribution:
            centre, reach = likelihood.point(raw), quantile * _width(likelihood, raw)
            return centre - reach, centre + reach
        distribution = likelihood.distribution(raw)
        # A hair less, so that an outcome at the cut itself is inside whatever the last digit.
        tail = (1 - 1e-6) * (-quantile.to(raw)).exp().expand(distribution.mean.shape)
        return distribution.icdf(tail), distribution.icdf(1 - tail)


Method = Literal["predictive", "conformal"]


def distribution_of(served: Predictive, trials: NDArray[np.float64] | None = None) -> Distribution:
    """The predictive distribution of each row; a loss that is not a likelihood is refused."""
    likelihood, raw = served
    if not likelihood.has_distribution:
        raise UsageError(
            f"{likelihood.name} is a loss, not a likelihood: it predicts a point. For "
            "intervals take a likelihood, like student_t, or quantiles."
        )
    given: dict[str, Any] = {} if trials is None else {"trials": torch.from_numpy(trials)}
    plain = likelihood.likelihood if isinstance(likelihood, Averaged) else likelihood
    if given and "trials" not in inspect.signature(plain.distribution).parameters:
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
    """The conformal scores of the rows held out for them; the error names how to get some."""
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
