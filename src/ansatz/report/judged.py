"""A fitted model's say about rows with outcomes: what scores are made of."""

from typing import Literal, NamedTuple

from torch import Tensor

from ansatz.estimators.table_estimator import TableEstimator
from ansatz.fitting.job import Job, has_masks
from ansatz.fitting.scores import judge_model
from ansatz.likelihoods import Distribution, Likelihood
from ansatz.report.contribution import Elements, contribution
from ansatz.report.predictive import predictive, row_losses

Kind = Literal["number", "class", "survival", "ranking", "mask"]


class Judged(NamedTuple):
    """A model and the predictive law that it serves for each of some rows.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.report.judged import judge_rows
        >>> x = np.arange(20.0).reshape(-1, 1)
        >>> model = Regressor(network="linear").fit(x, x[:, 0] % 3)
        >>> found = judge_rows("line", model, model._read(x, x[:, 0] % 3))
        >>> found.kind, found.log_scores.shape
        ('number', torch.Size([20]))
    """

    name: str
    model: TableEstimator
    job: Job
    law: Likelihood
    raw: Tensor  # as served
    distribution: Distribution | None  # None for a loss of numbers
    value: Tensor  # what the distribution is judged by

    @property
    def kind(self) -> Kind:
        """What the outcomes are."""
        if has_masks(self.job):
            return "mask"
        if hasattr(self.model, "followed_"):
            return "survival"
        if hasattr(self.model, "items_"):
            return "ranking"
        return "class" if hasattr(self.model, "classes_") else "number"

    @property
    def elements(self) -> Elements | None:
        """Scores of outcomes on elements; None where there is one outcome per row."""
        if not has_masks(self.job):
            return None
        return contribution(self.model.model_.preprocessor.spec.structure).elements()

    @property
    def log_scores(self) -> Tensor:
        """The log score of each row, ``(N,)``; of several targets their mean, as in ``nll``."""
        if self.elements is not None:
            return -self.elements.losses(self.law, self.raw, self.job.y)
        return -row_losses(self.model, self.law, self.raw, self.job.y)

    @property
    def law_name(self) -> str:
        """As the user would say it: a censored Weibull law is weibull."""
        return str(getattr(self.law, "law", self.law).name)

    def metrics(self) -> dict[str, float | None]:
        """Every metric that applies, as the fit reports them."""
        return judge_model(self.model, self.job, [])


def judge_rows(name: str, model: TableEstimator, job: Job) -> Judged:
    """What a model predicts for the rows of a job.

    Args:
        name: what messages call the model.
        model: fitted.
        job: rows with outcomes, as the estimator reads them.

    Example:
        >>> import numpy as np
        >>> from ansatz import Classifier
        >>> from ansatz.report.judged import judge_rows
        >>> x = np.arange(20.0).reshape(-1, 1)
        >>> model = Classifier(network="linear").fit(x, np.arange(20) % 2)
        >>> judge_rows("logit", model, model._read(x, np.arange(20) % 2)).kind
        'class'
    """
    law = model.model_.objective.likelihood
    if has_masks(job):
        return Judged(name, model, job, law, model._raw(job.rows), None, job.y)
    raw = model._served_raw(model.model_.raw(job.rows, job.offset, notes=[]))
    distribution, value = predictive(model, law, raw, job.y)
    return Judged(name, model, job, law, raw, distribution, value)
