"""Chooses whether the linear model of a table is penalised, by its out-of-fold loss."""

import math

import torch

from ansatz.errors import AnsatzError
from ansatz.fitting.job import Job, take
from ansatz.fitting.out_of_fold import Folds, choose_folds
from ansatz.likelihoods import Likelihood
from ansatz.linear.penalised_fit import NAMES
from ansatz.structures.vector.formula_preprocessor import learn_preprocessor
from ansatz.structures.vector.linear_model import FOLDS, fit_linear_model
from ansatz.structures.vector.rows import TableRows
from ansatz.training import Penalty

ENOUGH = 20  # rows per column, from which on a penalty gains next to nothing
MANY = 5_000_000  # numbers of the design, above which nothing is tried
SPARSE = 4  # rows per column, below which the lasso is tried, too


def choose_penalty(likelihood: Likelihood, job: Job, seed: int) -> Penalty | None:
    """Chooses the penalty of a linear model; None where maximum likelihood is as good.

    With 20 rows per column nothing is tried. With fewer, ridge, and below 4 rows per column the
    lasso, are compared with maximum likelihood by the loss of rows that were left out.
    """
    if job.precision is not None or job.target.shape:
        return None
    rows: TableRows = job.rows  # type: ignore[assignment]
    preprocessor = learn_preprocessor(rows, job.weight.numpy(), purpose="linear")
    columns, count = len(preprocessor.feature_names), len(job.y)
    if not columns or count >= ENOUGH * columns or count * columns > MANY:
        return None
    folds = choose_folds(job, FOLDS, seed)
    if len(folds) < 2:
        return None
    plain = _plain_loss if likelihood.additive else _unpenalised_loss
    best, least = None, plain(likelihood, job, folds)
    for name in ("l2", "l1") if count < SPARSE * columns else ("l2",):
        try:
            found = fit_linear_model(likelihood, job, null=False, penalty=Penalty(name))
        except (AnsatzError, RuntimeError, ValueError):
            continue
        (fit,) = found.fits
        loss = fit.measures.get("out_of_fold", math.inf)
        if loss < least:
            best, least = Penalty(name, fit.measures["strength"]), loss
    return best


def _plain_loss(likelihood: Likelihood, job: Job, folds: Folds) -> float:
    """The mean out-of-fold loss of the maximum-likelihood linear model."""
    total = weight = 0.0
    for learn, test in folds:
        part = take(job, test)
        try:
            found = fit_linear_model(likelihood, take(job, learn), null=False).posterior
            predictive = found.predictive(part.rows, part.offset, notes=[])
            with torch.no_grad():
                losses = predictive.likelihood.loss(predictive.raw, part.y)
        except (AnsatzError, RuntimeError, ValueError):
            return math.inf
        total += float(part.weight @ losses)
        weight += float(part.weight.sum())
    return total / weight if math.isfinite(total) else math.inf


def _unpenalised_loss(likelihood: Likelihood, job: Job, folds: Folds) -> float:
    """The out-of-fold loss of rows that are compared with each other: that of a penalty of 0."""
    try:
        found = fit_linear_model(likelihood, job, null=False, penalty=Penalty("l2", 0.0))
    except (AnsatzError, RuntimeError, ValueError):
        return math.inf
    loss = found.fits[0].measures.get("out_of_fold", math.inf)
    return loss if math.isfinite(loss) else math.inf


def said(penalty: Penalty) -> str:
    """Says a penalty in words."""
    return f"penalised ({NAMES[penalty.name]}, strength {penalty.strength:.3g})"
