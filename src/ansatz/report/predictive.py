"""What a fitted model serves at rows: the predictive, its losses and its point."""

from typing import TYPE_CHECKING, Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.likelihoods import CategoricalDistribution, Distribution, Likelihood

if TYPE_CHECKING:
    from ansatz.estimators.table_estimator import TableEstimator


def predictive(
    model: "TableEstimator", law: Likelihood, raw: Tensor, outcome: Tensor
) -> tuple[Distribution | None, Tensor]:
    """The predictive as served, and what it is judged by; None for a loss without a law.

    Example:
        >>> import torch
        >>> from ansatz import Regressor
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.report.predictive import predictive
        >>> law = Normal(dispersion=1.0)
        >>> predictive(Regressor(), law, torch.zeros(2, 1), torch.zeros(2))[0].mean
        tensor([0., 0.])
    """
    with torch.no_grad():
        if law.is_law:
            return law.given(raw, outcome)
        if hasattr(model, "_log_probabilities"):  # a loss of classes is served as probabilities
            return CategoricalDistribution(model._log_probabilities(law, raw)), outcome
    return None, outcome


def row_losses(model: "TableEstimator", law: Likelihood, raw: Tensor, outcome: Tensor) -> Tensor:
    """The loss of each row, ``(N,)``, the mean over its targets.

    For a law its negative log-likelihood as served; a loss of classes is judged by the
    probabilities that it is served as; a partial likelihood gives each row's share.

    Example:
        >>> import torch
        >>> from ansatz import Regressor
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.report.predictive import row_losses
        >>> law = Normal(dispersion=1.0)
        >>> row_losses(Regressor(), law, torch.zeros(2, 1), torch.zeros(2)).shape
        torch.Size([2])
    """
    with torch.no_grad():
        if not law.additive:
            losses = law.joint_loss(raw, outcome, torch.ones(len(raw), dtype=raw.dtype))
        elif not law.is_law and hasattr(model, "_log_probabilities"):
            served, _ = predictive(model, law, raw, outcome)
            assert served is not None
            losses = -served.log_prob(outcome)
        else:
            losses = law.loss(raw, outcome)
        return losses.double().reshape(len(raw), -1).mean(1)


def served_point(
    law: Likelihood,
    raw: Tensor,
    distribution: Distribution | None,
    outcome: Tensor,
    value: Tensor,
) -> NDArray[Any]:
    """What ``predict`` returns, in the unit of ``value``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.report.predictive import served_point
        >>> law, y = Normal(dispersion=1.0), torch.zeros(2)
        >>> served_point(law, torch.ones(2, 1), law.distribution(torch.ones(2, 1)), y, y).tolist()
        [1.0, 1.0]
    """
    with torch.no_grad():
        if distribution is not None and value is not outcome:  # successes, not their share
            return distribution.mean.numpy()
        if distribution is not None and law.event_ndim and hasattr(law, "law"):
            return distribution.median.numpy()  # a censored law
        return law.point(raw).numpy()
