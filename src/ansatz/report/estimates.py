"""The metrics of a forecast that are means of rows, or functions of such."""

import torch
from torch import Tensor

from ansatz.metrics import (
    Estimate,
    angular_distance,
    auc_estimate,
    mean_estimate,
    r2_estimate,
    rmse_estimate,
)
from ansatz.report.evidence import Evidence
from ansatz.report.rivals import Forecast


def estimate_metrics(evidence: Evidence, forecast: Forecast) -> dict[str, Estimate]:
    """The metrics that are means of rows, or functions of such, with each row's influence.

    Args:
        evidence: of a model on its test rows.
        forecast: of the model, or of a rival.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.report import gather
        >>> from ansatz.report.estimates import estimate_metrics
        >>> from ansatz.report.rivals import rivals
        >>> x = np.arange(60.0).reshape(-1, 1)
        >>> y = x[:, 0] + np.cos(x[:, 0])
        >>> evidence = gather(Regressor(network="linear").fit(x, y), x, y)
        >>> list(estimate_metrics(evidence, rivals(evidence).find("model")))
        ['nll', 'crps', 'mae', 'rmse', 'r2']
    """
    if evidence.elements is not None:
        return evidence.elements.estimates(evidence, forecast)
    y, weight = evidence.value, evidence.weight
    found: dict[str, Estimate] = {}
    if forecast.losses is not None and (evidence.law.is_law or evidence.classes is not None):
        found["nll"] = mean_estimate(forecast.losses, weight)
    if evidence.is_survival or hasattr(forecast.distribution, "ranks"):
        return found
    if evidence.classes is not None and forecast.distribution is not None:
        return {**found, **_of_classes(forecast, y, weight)}
    law, point = forecast.distribution, forecast.point
    if law is not None and hasattr(law, "energy_score"):
        found["energy_score"] = mean_estimate(law.energy_score(y), weight)
    elif law is not None:
        found["crps"] = mean_estimate(law.crps(y).reshape(len(y), -1).mean(1), weight)
    if point.shape != y.shape:
        return found
    if getattr(law, "circular", False):
        rows = angular_distance(y.double(), point.double()).reshape(len(y), -1).mean(1)
        return {**found, "mean_angular_error": mean_estimate(rows, weight)}
    found["mae"] = mean_estimate((y - point).abs().reshape(len(y), -1).mean(1), weight)
    found["rmse"] = rmse_estimate(y, point, weight)
    found["r2"] = r2_estimate(y, point, weight)
    return found


def _of_classes(forecast: Forecast, y: Tensor, weight: Tensor) -> dict[str, Estimate]:
    law = forecast.distribution
    assert law is not None
    probs = law.probs  # type: ignore[attr-defined]
    if probs.ndim == 1:
        hit = (probs > 0.5).long() == y
        score = getattr(law, "logits", probs)
        return {
            "accuracy": mean_estimate(hit.double(), weight),
            "brier": mean_estimate((probs - y) ** 2, weight),
            "auc": auc_estimate(y, score, weight),
        }
    target = torch.nn.functional.one_hot(y.long(), probs.shape[-1])
    areas = [
        auc_estimate(target[:, k], probs[:, k], weight)
        for k in range(probs.shape[-1])
        if 0 < float((weight * target[:, k]).sum()) < float(weight.sum())
    ]
    found = {
        "accuracy": mean_estimate((probs.argmax(-1) == y).double(), weight),
        "brier": mean_estimate(((probs - target) ** 2).sum(-1), weight),
    }
    if len(areas) > 1:
        value = sum(area.value for area in areas) / len(areas)
        influence = torch.stack([area.influence for area in areas]).mean(0)
        found["auc"] = Estimate(value, influence)
    return found
