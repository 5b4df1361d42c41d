"""The forecasts that a model is judged beside, on the same rows."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ansatz.errors import AnsatzError
from ansatz.estimators.predictions import judge_raw
from ansatz.fitting.baselines import constant_raw
from ansatz.likelihoods import Distribution, Likelihood
from ansatz.report.evidence import Evidence
from ansatz.report.predictive import predictive, row_losses, served_point

Metrics = dict[str, float | None]


class Forecast(NamedTuple):
    """What one model says about the test rows.

    Example:
        >>> from ansatz.report.rivals import Forecast
        >>> Forecast._fields[:3]
        ('name', 'distribution', 'point')
    """

    name: str
    distribution: Distribution | None
    point: Tensor
    losses: Tensor | None  # (N,), of its law; None where they have no common measure
    judge: Callable[[Tensor], Metrics]  # weights of the rows -> every metric that applies


class Rivals(NamedTuple):
    """The model first, then those beside it, and why one is missing.

    Example:
        >>> from ansatz.report.rivals import Rivals
        >>> Rivals([], []).notes
        []
    """

    forecasts: list[Forecast]
    notes: list[str]

    def find(self, name: str) -> Forecast | None:
        """The forecast of that name."""
        return next((found for found in self.forecasts if found.name == name), None)


def rivals(evidence: Evidence) -> Rivals:
    """The model, the linear and the constant model of its law, and what the structure adds.

    The rivals learn from the rows that the model learned from; without these there are none.

    Example:
        >>> import ansatz
        >>> from ansatz.fitting.replay import replay
        >>> from ansatz.report import replayed
        >>> from ansatz.report.rivals import rivals
        >>> table = {"x": range(60), "y": [k % 7 for k in range(60)]}
        >>> fit = ansatz.fit(table, target="y", likelihood="normal", network="linear")
        >>> [found.name for found in rivals(replayed(replay(fit))).forecasts]
        ['model', 'constant', 'boosted trees']
    """
    if "rivals" not in evidence.kept:
        evidence.kept["rivals"] = _compete(evidence)
    found: Rivals = evidence.kept["rivals"]
    return found


def _compete(evidence: Evidence) -> Rivals:
    forecasts = [_of_law(evidence, "model", evidence.law, evidence.raw())]
    notes: list[str] = []
    if evidence.learn is None:
        notes.append(
            "The rows that the model learned from were not given: there is nothing to fit the "
            "linear and the constant model to."
        )
        return Rivals(forecasts, notes)
    test, model = evidence.job, evidence.model
    learn = model._plain(evidence.learn.job)
    law = model._law_of(learn.target)
    if not evidence.contribution.has_features(evidence):
        notes.append("There are no features: the model is itself the constant model of its law.")
        return Rivals(forecasts, notes)
    if is_linear(evidence):
        notes.append("The model is itself the linear model of its law.")
    else:
        try:
            found = evidence.contribution.linear(law, learn, model._seed())
            if found is not None:
                linear, said = found
                raw = linear.raw(test.rows, test.offset, notes=[])
                forecasts.append(_of_law(evidence, "linear", linear.objective.likelihood, raw))
                notes += said
        except (AnsatzError, ValueError, RuntimeError) as error:
            notes.append(f"The linear model of {law.name} could not be fitted: {error}")
    constant = constant_raw if evidence.elements is None else evidence.elements.constant
    fitted, raw = constant(law, learn, test)
    forecasts.append(_of_law(evidence, "constant", fitted, raw))
    more, said = evidence.contribution.baselines(evidence)
    return Rivals(forecasts + more, notes + said)


def is_linear(evidence: Evidence) -> bool:
    """Whether the model is a linear one.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.report import gather
        >>> from ansatz.report.rivals import is_linear
        >>> x = np.arange(9.0).reshape(-1, 1)
        >>> is_linear(gather(Regressor(network="linear").fit(x, x[:, 0] ** 2), x, x[:, 0]))
        True
    """
    return evidence.model.model_.network_name in ("linear", "linear_grid", "linear_pixels")


def _of_law(evidence: Evidence, name: str, law: Likelihood, raw: Tensor) -> Forecast:
    model, y = evidence.model, evidence.outcome
    if evidence.elements is not None:
        codes = model._codes(raw)
        losses = evidence.elements.losses(law, raw, y) if law.is_law else None
        return Forecast(name, None, codes, losses, lambda w: model._judge(law, raw, y, w))
    distribution, value = predictive(model, law, raw, y)
    point = torch.as_tensor(served_point(law, raw, distribution, y, value))

    def judged(weight: Tensor) -> Metrics:
        judge: Any = getattr(model, "_judge", judge_raw)
        found: Metrics = judge(law, raw, y, weight)
        return found

    losses = None if not law.additive else row_losses(model, law, raw, y)
    return Forecast(name, distribution, point, losses, judged)
