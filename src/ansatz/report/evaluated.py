"""A fitted model's say about rows with outcomes: what scores are made of."""

from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from ansatz.fitting.contracts.inference import Predictive
from ansatz.fitting.contracts.outcome import Metrics
from ansatz.fitting.job import Job
from ansatz.fitting.model import Model
from ansatz.likelihoods import Distribution, Likelihood
from ansatz.registry import load

if TYPE_CHECKING:
    from ansatz.report.outcome_report import OutcomeReport


class Evaluated(NamedTuple):
    """A model and the predictive distribution that it serves for each of some rows."""

    name: str
    model: Model
    job: Job
    likelihood: Likelihood
    raw: Tensor  # as served
    distribution: Distribution | None  # None for a loss of numbers
    value: Tensor  # what the distribution is evaluated by

    @property
    def predictive(self) -> Predictive:
        """The likelihood with its numbers, as served."""
        return Predictive(self.likelihood, self.raw)

    @property
    def outcome_report(self) -> "OutcomeReport":
        """How such outcomes are compared."""
        found: OutcomeReport = load(self.model.outcome.report)()
        return found

    @property
    def log_scores(self) -> Tensor:
        """The log score of each row, ``(N,)``; of several targets their mean, as in ``nll``."""
        return -self.model.outcome.row_losses(self.predictive, self.job.y)

    @property
    def likelihood_name(self) -> str:
        """As the user would say it: a censored Weibull distribution is weibull."""
        return str(getattr(self.likelihood, "likelihood", self.likelihood).name)

    def metrics(self) -> Metrics:
        """Every metric that applies, as the fit reports them."""
        return self.model.evaluate(self.job)


def evaluate_rows(name: str, model: Model, job: Job) -> Evaluated:
    """What a model predicts for the rows of a job.

    Args:
        name: what messages call the model.
        model: fitted.
        job: rows with outcomes, as the pipeline reads them.
    """
    served = model.predictive(job.rows, job.offset, notes=[])
    return Evaluated(name, model, job, *served, *model.outcome.distribution(served, job.y))
