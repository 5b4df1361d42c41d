"""The forecasts that a model is evaluated beside, on the same rows."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from ansatz.errors import AnsatzError
from ansatz.fitting.contracts.inference import Predictive
from ansatz.fitting.contracts.outcome import Metrics
from ansatz.fitting.scores import constant_predictive, is_linear
from ansatz.likelihoods import Distribution
from ansatz.report.evidence import Evidence


class Forecast(NamedTuple):
    """What one model says about the test rows."""

    name: str
    distribution: Distribution | None
    point: Tensor
    losses: Tensor | None  # (N,), of its likelihood; None where they have no common measure
    evaluate: Callable[[Tensor], Metrics]  # weights of the rows -> every metric that applies


class Baselines(NamedTuple):
    """The model first, then those beside it, and why one is missing."""

    forecasts: list[Forecast]
    notes: list[str]

    def find(self, name: str) -> Forecast | None:
        """The forecast of that name."""
        return next((found for found in self.forecasts if found.name == name), None)


def baselines(evidence: Evidence) -> Baselines:
    """The model, the linear and the constant model of its likelihood, and what the structure adds.

    The baselines learn from the rows that the model learned from; without these there are none.
    """
    if "rivals" not in evidence.kept:
        evidence.kept["rivals"] = _compete(evidence)
    found: Baselines = evidence.kept["rivals"]
    return found


def _compete(evidence: Evidence) -> Baselines:
    forecasts = [forecast_of(evidence, "model", evidence.predictive())]
    notes: list[str] = []
    if evidence.learn is None:
        notes.append(
            "The rows that the model learned from were not given: there is nothing to fit the "
            "linear and the constant model to."
        )
        return Baselines(forecasts, notes)
    test, model = evidence.job, evidence.model
    learn = model.outcome.plain(evidence.learn.job)
    likelihood = model.task.likelihood(learn.target)
    if not evidence.contribution.has_features(evidence):
        notes.append(
            "There are no features: the model is itself the constant model of its likelihood."
        )
        return Baselines(forecasts, notes)
    if is_linear(model):
        notes.append("The model is itself the linear model of its likelihood.")
    else:
        try:
            linear, said = model.structure.baseline(likelihood, learn, model.task.settings.seed)
            if linear is not None:
                found = linear.predictive(test.rows, test.offset, notes=[])
                forecasts.append(forecast_of(evidence, "linear", found))
            notes += said
        except (AnsatzError, ValueError, RuntimeError) as error:
            notes.append(f"The linear model of {likelihood.name} could not be fitted: {error}")
    constant = constant_predictive(likelihood, learn, test)
    forecasts.append(forecast_of(evidence, "constant", constant))
    more, said = evidence.contribution.baselines(evidence)
    return Baselines(forecasts + more, notes + said)


def forecast_of(evidence: Evidence, name: str, predictive: Predictive) -> Forecast:
    """What a model of the same outcomes says about the test rows.

    Args:
        evidence: gives the outcomes.
        name: of the model.
        predictive: of the test rows.
    """
    outcome, y, likelihood = evidence.model.outcome, evidence.outcome, predictive.likelihood
    distribution, _ = outcome.distribution(predictive, y)
    # A loss of elements has no value for each example.
    has_losses = likelihood.additive and (likelihood.has_distribution or evidence.axis == "row")
    return Forecast(
        name,
        distribution,
        outcome.estimate(predictive, y),
        outcome.row_losses(predictive, y) if has_losses else None,
        lambda weight: outcome.evaluate(predictive, y, weight),
    )
