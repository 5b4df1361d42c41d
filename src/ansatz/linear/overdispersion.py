"""Tests whether counts vary more than their likelihood says."""

import torch
from scipy import stats

from ansatz.likelihoods.likelihood import Likelihood
from ansatz.linear.design import DesignRows
from ansatz.linear.family import pearson_statistic

COUNTS = ("poisson", "binomial")
LARGE = 1.2  # X2 / df from which a note is worth its line


def pearson_ratio(
    likelihood: Likelihood, raw: torch.Tensor, rows: DesignRows, rank: int
) -> tuple[float, float] | None:
    r"""Pearson's :math:`X^2 / (n - p)` of counts and its degrees of freedom; None for others.

    .. math:: X^2 = \sum_i w_i \frac{(y_i - \mu_i)^2}{V(\mu_i)}

    It is near 1 where the variance is the likelihood's. A single trial has no variance beyond that
    of its probability: rows of one trial are not counted.

    References:
        McCullagh and Nelder (1989), Generalized Linear Models, section 4.5.
    """
    if likelihood.name not in COUNTS:
        return None
    weight = rows.weight
    with torch.no_grad():
        if likelihood.name == "binomial":
            successes, trials = rows.y.double().unbind(1)
            if not bool((trials > 1).any()):
                return None
            share = torch.sigmoid(raw[:, 0])
            terms = (successes - trials * share) ** 2 / (trials * share * (1 - share))
            x2 = float(weight @ torch.where(trials > 0, terms, 0.0))
        else:
            ones = torch.ones_like(weight)
            x2 = float(pearson_statistic(likelihood, raw, rows.y, weight, ones))
    df = float(weight.sum()) - rank
    return (x2 / df, df) if df > 0 else None


def explain_overdispersion(
    likelihood: Likelihood, raw: torch.Tensor, rows: DesignRows, rank: int, kind: str
) -> list[str]:
    """A note where counts vary more than the likelihood allows, with what to do."""
    found = pearson_ratio(likelihood, raw, rows, rank) if rows.precision is None else None
    if found is None:
        return []
    ratio, df = found
    if not ratio > LARGE or float(stats.chi2.sf(ratio * df, df)) > 0.001:
        return []
    other = {"poisson": "negative_binomial", "binomial": "beta_binomial"}[likelihood.name]
    text = (
        f"overdispersion: Pearson's X2 / df is {ratio:.3g}, so the outcomes vary more than "
        f"{likelihood.name} says. Take {other}"
    )
    if kind != "model":
        return [f"{text}; the {kind} standard errors allow for it, predicted intervals do not."]
    return [
        f"{text}, or errors='HC3': these standard errors are too small by a factor of about "
        f"{ratio**0.5:.3g}."
    ]
