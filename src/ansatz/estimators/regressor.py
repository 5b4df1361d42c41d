"""Numbers as outcomes: regression with any likelihood."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from ansatz.errors import UsageError
from ansatz.estimators.estimator import Estimator
from ansatz.fitting.choice import LikelihoodChoice, choose_likelihood
from ansatz.fitting.contracts.outcome import Outcome
from ansatz.fitting.job import Job
from ansatz.fitting.model import Model
from ansatz.fitting.proposal import propose_numbers
from ansatz.fitting.task import Task


class Regressor(RegressorMixin, Estimator):
    """A network, or a linear model, that predicts the distribution of a number.

    With no argument it chooses its recipe from the number of rows: below 100 rows a small
    penalised network in float64 that sees all rows at every step; above, two layers of 128 with
    early stopping on held-out rows; above 50,000 rows, two of 256. ``recipe_`` holds what was done.

    Args:
        likelihood: the likelihood of y by name (``ansatz list likelihoods``), or an instance.
            ``"auto"`` takes the best out-of-fold log score given x among those whose support holds
            y, as ``ansatz fit`` does; ``likelihood_choice_`` is the table of the choice.
        likelihood_options: options of a likelihood given by name, like
            ``{"components": 2}`` of ``"normal_mixture"``.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> x = np.linspace(0, 3, 60).reshape(-1, 1)
        >>> model = Regressor().fit(x, np.sin(x[:, 0]))
        >>> model.interval([[1.0]], level=0.9).shape
        (1, 2)

    References:
        Lakshminarayanan et al. (2017), Simple and scalable predictive uncertainty estimation,
        section 2.2.1, for the network that predicts mean and standard deviation.
    """

    outcome = "number"

    def task(self, X: Any, outcome: Outcome | None = None) -> Task:
        """Makes the task of a fit of such rows; the rows have yet to choose a likelihood."""
        task = super().task(X, outcome)
        if task.settings.likelihood != "auto":
            return task
        if task.settings.likelihood_options:
            raise UsageError("likelihood_options go with a likelihood by name, not with 'auto'.")
        before: Model | None = getattr(self, "model_", None) if self.warm_start else None
        return task.change(
            likelihood="normal" if before is None else before.task.settings.likelihood
        )

    def _choose(self, task: Task, job: Job) -> tuple[LikelihoodChoice | None, Task]:
        """Lets the rows choose among the likelihoods whose support holds their outcomes."""
        if self.likelihood != "auto" or (self.warm_start and hasattr(self, "model_")):
            return None, task
        y = pd.DataFrame(job.y.numpy().reshape(len(job.y), -1))
        names = propose_numbers(y, "y", exposure=job.offset is not None).candidates
        if names == ["bernoulli"] and not set(np.unique(y)) <= {0, 1}:
            names = ["normal"]  # two other numbers: classes are for a Classifier
        if names == ["dirichlet"]:
            raise UsageError(
                "the rows of y are parts of a whole: name Regressor('dirichlet') for them, or "
                "'normal' for each part by itself."
            )
        choice = choose_likelihood(task, names, job)
        return choice, task.change(likelihood=choice.likelihood)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags
