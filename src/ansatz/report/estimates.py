"""The metrics of a forecast that are means of rows, or functions of such."""

from ansatz.metrics import (
    Estimate,
    angular_distance,
    mean_estimate,
    r2_estimate,
    rmse_estimate,
)
from ansatz.report.baselines import Forecast
from ansatz.report.evidence import Evidence


def estimate_metrics(evidence: Evidence, forecast: Forecast) -> dict[str, Estimate]:
    """The metrics that are means of rows, or functions of such, with each row's influence.

    Args:
        evidence: of a model on its test rows.
        forecast: of the model, or of a baseline.
    """
    return evidence.outcome_report.estimates(evidence, forecast)


def estimate_nll(evidence: Evidence, forecast: Forecast) -> dict[str, Estimate]:
    """The mean negative log-likelihood, where all forecasts have it in one measure."""
    # A loss of classes is evaluated by the probabilities that it is served as.
    has_nll = evidence.likelihood.has_distribution or evidence.classes is not None
    if forecast.losses is None or not has_nll:
        return {}
    return {"nll": mean_estimate(forecast.losses, evidence.weight)}


def estimates_of_numbers(evidence: Evidence, forecast: Forecast) -> dict[str, Estimate]:
    """Log score, CRPS or energy score, and errors of the point prediction."""
    y, weight = evidence.value, evidence.weight
    found = estimate_nll(evidence, forecast)
    likelihood, point = forecast.distribution, forecast.point
    if likelihood is not None and hasattr(likelihood, "energy_score"):
        found["energy_score"] = mean_estimate(likelihood.energy_score(y), weight)
    elif likelihood is not None:
        found["crps"] = mean_estimate(likelihood.crps(y).reshape(len(y), -1).mean(1), weight)
    if point.shape != y.shape:
        return found
    if getattr(likelihood, "circular", False):
        rows = angular_distance(y.double(), point.double()).reshape(len(y), -1).mean(1)
        return {**found, "mean_angular_error": mean_estimate(rows, weight)}
    found["mae"] = mean_estimate((y - point).abs().reshape(len(y), -1).mean(1), weight)
    found["rmse"] = rmse_estimate(y, point, weight)
    found["r2"] = r2_estimate(y, point, weight)
    return found
