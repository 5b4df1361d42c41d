"""The linear model of a table: a GLM for each target, put where a network would be."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from ansatz import networks, structures
from ansatz.data import Preprocessor
from ansatz.errors import UsageError
from ansatz.fitting.contracts.structure import LinearBaseline, LinearDesign
from ansatz.fitting.job import Job
from ansatz.fitting.linear_posterior import LinearPosterior
from ansatz.fitting.model import PointPosterior, Trained
from ansatz.fitting.out_of_fold import choose_folds
from ansatz.likelihoods import Likelihood
from ansatz.likelihoods.registry import Dispersion
from ansatz.linear import LinearFit, fit_linear, impute, join_targets
from ansatz.linear.linked import Linked
from ansatz.linear.penalised import fit_penalised
from ansatz.linear.pooled_fit import pool_fits
from ansatz.linear.predictive import EstimationError
from ansatz.structures.vector.formula_preprocessor import learn_preprocessor
from ansatz.structures.vector.rows import TableEncoder, TableRows
from ansatz.training import Penalty, Supervised

FOLDS = 5  # that choose the strength of a penalty


def fit_linear_model(
    likelihood: Likelihood,
    job: Job,
    *,
    dispersion: Dispersion | None = None,
    class_names: Sequence[str] | None = None,
    null: bool = True,
    penalty: Penalty | None = None,
) -> LinearBaseline:
    """The maximum-likelihood linear model of each target, as one model of the table.

    Args:
        likelihood: of each target.
        job: the rows.
        dispersion: the same for all rows, or linear in x as well. Default: the latter only where
            the likelihood was made with an explicit ``dispersion="predicted"``.
        class_names: names of the classes.
        null: whether the model without x is fitted too, for the summary.
        penalty: on the coefficients; None fits by maximum likelihood.
    """
    if job.impute is not None:
        if penalty is not None:
            raise UsageError("imputed tables are pooled by Rubin's rules, which need no penalty.")
        how: dict[str, Any] = {"dispersion": dispersion, "class_names": class_names, "null": null}
        return fit_imputed_model(likelihood, job, **how)
    if dispersion is None:
        chosen = getattr(likelihood, "likelihood", likelihood).options.get("dispersion")
        dispersion = "predicted" if chosen == "predicted" else "constant"
    rows: TableRows = job.rows  # type: ignore[assignment]
    weight = job.weight.numpy()
    preprocessor = learn_preprocessor(rows, weight, purpose="linear")
    (design,) = preprocessor.transform(rows.values)
    names = _feature_names(preprocessor, rows)
    if job.link is not None and (job.offset is not None or job.target.shape):
        raise UsageError("a link goes with one target and without an offset.")
    if job.link is not None and job.link != likelihood.link_name:
        likelihood = Linked(likelihood, job.link)
    groups = None
    if job.errors is not None and job.group is not None:  # without errors nobody reads them
        groups = torch.from_numpy(np.unique(job.group.astype(str), return_inverse=True)[1])
    common: dict[str, Any] = {
        "weight": job.weight,
        "precision": job.precision,
        "offset": job.offset,
        "feature_names": names,
        "dispersion": dispersion,
        "class_names": class_names,
    }
    targets = job.y.unbind(1) if job.target.shape else [job.y]
    fits: list[LinearFit]
    if penalty is not None:
        if job.link is not None:
            raise UsageError("a penalised linear model has the likelihood's own link: drop --link.")
        name, strength = penalty
        folds = choose_folds(job, FOLDS, seed=0)
        fits = [
            fit_penalised(
                likelihood, design, y, penalty=name, strength=strength, folds=folds, **common
            )
            for y in targets
        ]
    else:
        errors: Any = "model" if job.errors in (None, "classical") else job.errors
        common |= {"null": null, "covariance": errors, "groups": groups}
        fits = [fit_linear(likelihood, design, y, **common) for y in targets]
    return linear_baseline(preprocessor, fits, several=bool(job.target.shape))


def fit_imputed_model(likelihood: Likelihood, job: Job, **options: Any) -> LinearBaseline:
    """The linear model of completed tables, pooled by Rubin's rules; once where nothing is missing.

    The preprocessing is that of the first completed table: a gap in a new row is read as the mean.
    """
    assert job.impute is not None
    (count, seed), job = job.impute, job._replace(impute=None)
    rows: TableRows = job.rows  # type: ignore[assignment]
    frame = rows.named
    if not frame.isna().to_numpy().any():
        found = fit_linear_model(likelihood, job, **options)
        note = "there are no missing values: nothing was imputed."
        fits = [replace(fit, messages=(*fit.messages, note)) for fit in found.fits]
        return found._replace(fits=fits)
    roles = {column.name: column.role for column in rows.columns or ()}
    words = [n for n in frame if roles.get(str(n), "numeric") in ("categorical", "ordered")]
    outcome = job.y.numpy().astype(np.float64)
    if job.target.classes > 2 and outcome.ndim == 1:
        outcome = np.eye(job.target.classes)[job.y.numpy().astype(int)][:, 1:]
    completed = impute(frame, words, outcome=outcome, imputations=count, seed=seed)
    found_each = [
        fit_linear_model(likelihood, job._replace(rows=rows.like(each)), **options)
        for each in completed
    ]
    fits = [pool_fits(each) for each in zip(*(found.fits for found in found_each), strict=True)]
    encoder: TableEncoder = found_each[0].posterior.encoder  # type: ignore[assignment]
    return linear_baseline(encoder.preprocessor, fits, several=bool(job.target.shape))


def linear_baseline(
    preprocessor: Preprocessor, fits: Sequence[LinearFit], *, several: bool
) -> LinearBaseline:
    """Fits of the targets as one model of the table."""
    if several:
        solved, objective = join_targets(fits)
    else:
        solved, objective = fits[0].to_network(), Supervised(fits[0].likelihood)
    options: dict[str, Any] = {}
    error = EstimationError.of(fits, several)
    likelihood = fits[0].likelihood
    if isinstance(likelihood, Linked):  # the network has the link, and raw numbers are as ever
        options = {"link": likelihood.link_name, "own_link": likelihood.base.link_name}
        objective, error = Supervised(likelihood.base), None
    network = networks.create(
        "linear", inputs=preprocessor.spec, outputs=solved.out_features, **options
    )
    network.output = solved
    return LinearBaseline(
        linear_posterior(preprocessor, network, objective, error, options), list(fits)
    )


def linear_posterior(
    preprocessor: Preprocessor,
    network: nn.Module,
    objective: Supervised,
    error: EstimationError | None = None,
    options: dict[str, Any] | None = None,
) -> PointPosterior:
    """A solved linear map with its preprocessing, its likelihood and its estimation error."""
    structure, encoder = structures.create("vector"), TableEncoder(preprocessor)
    trained = Trained(network, objective, "linear", options or {})
    if error is None:
        return PointPosterior(structure, encoder, trained)
    return LinearPosterior(structure, encoder, trained, error)


def linear_design(job: Job) -> LinearDesign:
    """The columns of the linear model of a table."""
    rows: TableRows = job.rows  # type: ignore[assignment]
    preprocessor = learn_preprocessor(rows, job.weight.numpy(), purpose="linear")
    (x,) = preprocessor.transform(rows.values)
    names = _feature_names(preprocessor, rows)
    return LinearDesign(TableEncoder(preprocessor), x.double(), tuple(names))


def _feature_names(preprocessor: Preprocessor, rows: TableRows) -> list[str]:
    """The columns' own names, also of an array that has some."""
    names = list(preprocessor.feature_names)
    if rows.columns is None and rows.names is not None and rows.formula is None:
        names = [_named(name, rows.names) for name in names]
    return names


def _named(feature: str, names: Sequence[str]) -> str:
    """x2[missing] -> age[missing], the second column being age."""
    return re.sub(r"^x(\d+)", lambda found: str(names[int(found[1]) - 1]), feature)
