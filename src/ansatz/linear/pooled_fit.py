"""The linear model of a table with gaps: fits to completed tables, pooled by Rubin's rules."""

import copy
from collections.abc import Sequence
from dataclasses import replace

import torch

from ansatz.errors import UsageError
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.linear.imputation import pool
from ansatz.linear.linear_fit import LinearFit, Pooling


def pool_fits(fits: Sequence[LinearFit]) -> LinearFit:
    """Pools the linear fits of completed tables into one.

    Coefficients and their covariance are pooled by :func:`ansatz.linear.pool`; log-likelihoods,
    deviances, dispersions and scales are means over the tables.

    Args:
        fits: of the same columns.
    """
    first = fits[0]
    if any(f.names != first.names or f.entries != first.entries for f in fits):
        raise UsageError(
            "the completed tables have different columns: a level or a spline has too few rows."
        )
    rows, columns = torch.tensor(first.entries, dtype=torch.int64).reshape(-1, 2).unbind(1)
    values = torch.stack([fit.coefficients[rows, columns] for fit in fits])
    df = first.df_residual if first.df_statistics is None else first.df_statistics
    complete = df if first.uses_t and df > 0 else float("inf")
    found = pool(values, torch.stack([fit.covariance for fit in fits]), complete)
    coefficients = torch.stack([fit.coefficients for fit in fits]).mean(0)
    by_entry = []
    for numbers in (found.df, found.missing_information):
        table = torch.full_like(coefficients, torch.nan)
        table[rows, columns] = numbers
        by_entry.append(table)
    shares = found.missing_information
    message = (
        f"multiple imputation: {found.imputations} completed tables, pooled by Rubin's rules; "
        f"fraction of missing information (FMI) {float(shares.min()):.2g} to "
        f"{float(shares.max()):.2g}. Deviance and AIC are means over the tables."
    )
    messages = dict.fromkeys(message for fit in fits for message in fit.messages)
    return replace(
        first,
        likelihood=_mean_likelihood(fits),
        coefficients=coefficients,
        covariance=found.covariance,
        log_likelihood=_mean([f.log_likelihood for f in fits]),
        conventional={},
        null_log_likelihood=_mean([f.null_log_likelihood for f in fits]),
        residual_deviance=_mean_or_none([f.residual_deviance for f in fits]),
        null_deviance=_mean_or_none([f.null_deviance for f in fits]),
        dispersion=_mean_or_none([f.dispersion for f in fits]),
        dispersion_ml=_mean_or_none([f.dispersion_ml for f in fits]),
        scales={name: _mean([f.scales[name] for f in fits]) for name in first.scales},
        converged=all(fit.converged for fit in fits),
        uses_t=True,
        messages=(*messages, message),
        pooled=Pooling(found.imputations, by_entry[0], by_entry[1]),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _mean_or_none(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return _mean(known) if len(known) == len(values) else None


def _mean_likelihood(fits: Sequence[LinearFit]) -> Likelihood:
    """The first likelihood with its learned constants at their means."""
    likelihood = copy.deepcopy(fits[0].likelihood)
    states = [fit.likelihood.state_dict() for fit in fits]
    mean = {
        name: torch.stack([state[name] for state in states]).mean(0)
        if value.is_floating_point()
        else value
        for name, value in states[0].items()
    }
    likelihood.load_state_dict(mean)
    return likelihood
