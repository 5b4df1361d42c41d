"""How likelihoods of y are compared on a table: by small networks, or by linear models."""

import torch
from torch import Tensor

from ansatz.data import Preprocessor
from ansatz.fitting.job import Job, take
from ansatz.fitting.out_of_fold import Folds, log_scores, require_finite
from ansatz.fitting.recipe import SMALL
from ansatz.likelihoods import Likelihood
from ansatz.structures.vector.fold_networks import FoldNetworks
from ansatz.structures.vector.linear_model import fit_linear_model
from ansatz.structures.vector.rows import TableRows


class TableLikelihoodScores:
    """Out-of-fold log scores of likelihoods on the rows of a table.

    Linear models are compared where they will be fitted, or where rows are fewer than 100,
    provided there are five rows per coefficient; else small networks.

    Args:
        job: the rows.
        total: the sum of the weights of all rows, of which these may be a sample.
        linear: whether a linear model will be fitted.
        seed: of networks and folds.
    """

    def __init__(self, job: Job, total: float, *, linear: bool, seed: int) -> None:
        self.job, self.seed = job, seed
        self.is_linear = _suffices(job, total, linear)
        self.count = 5 if self.is_linear else 3  # of folds
        self.folds: Folds = []
        self.networks: FoldNetworks | None = None

    def begin(self, folds: Folds) -> None:
        """Trains what all likelihoods have in common."""
        self.folds = folds
        if not self.is_linear:
            self.networks = FoldNetworks(self.job, folds, seed=self.seed)

    def scores(self, likelihood: Likelihood, step: Tensor | float) -> Tensor:
        """Out-of-fold log scores of a likelihood, ``(N,)``; nan for rows that no fold holds out."""
        if self.networks is None:
            return linear_scores(likelihood, self.job, self.folds, step)
        return self.networks.scores(likelihood, step)


def _suffices(job: Job, total: float, linear: bool) -> bool:
    rows: TableRows = job.rows  # type: ignore[assignment]
    if rows.columns is not None and not any(column.used for column in rows.columns):
        return True
    if not linear and total >= SMALL:
        return False
    weight = job.weight.numpy()
    design = Preprocessor.fit(rows.values, rows.columns, weight=weight, purpose="linear")
    return 5 * len(design.feature_names) <= len(job.y)


def linear_scores(
    likelihood: Likelihood, job: Job, folds: Folds, step: Tensor | float = 0.0
) -> Tensor:
    """Out-of-fold log scores of the linear model of a likelihood.

    Args:
        likelihood: copied, never changed.
        job: the rows.
        folds: from :func:`choose_folds`.
        step: of the outcomes, see :func:`log_scores`.

    Returns:
        ``(N,)`` in float64, nan for rows that no fold evaluates.
    """
    scores = torch.full((len(job.y),), torch.nan, dtype=torch.float64)
    for learn, evaluated in folds:
        model = fit_linear_model(likelihood, take(job, learn), null=False).posterior
        part = take(job, evaluated)
        found = model.predictive(part.rows, part.offset, notes=[])
        scores[evaluated] = log_scores(*found, part.y, step)
    require_finite(scores, folds)
    return scores
