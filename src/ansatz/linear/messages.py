"""Messages about a linear fit: what went wrong, in which variables, and what to do."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ansatz.linear.design import INTERCEPT, Design
from ansatz.linear.heads import CLASSES
from ansatz.linear.linear_likelihood import LinearLikelihood, Maximum
from ansatz.linear.naming import inner
from ansatz.linear.newton import Minimum

NO_ESTIMATE = (
    "the coefficients are the last iterate on their way to infinity and their standard errors are "
    "meaningless. Merge rare levels, drop the variable, or use a penalised network."
)
SEPARABLE = ("bernoulli", "binomial", "ordinal", *CLASSES)


def explain(
    model: LinearLikelihood, design: Design, found: Maximum, observations: float, errors: Tensor
) -> tuple[str, ...]:
    """Lists everything that makes a fit less than it seems; empty when all is well."""
    messages = [*explain_columns(design), *_too_few(model, design, observations)]
    notes = list(getattr(model.likelihood, "notes", ()))
    alone = notes and design.matrix.shape[1] == 1 and found.location.recession is not None
    messages += notes if alone else explain_minimum(model.likelihood.name, design, found.location)
    if found.dispersion is not None:
        messages += _dispersion(model, found.dispersion)
    if not bool(found.free.all()):
        which = ""
        if inner(model.likelihood).name == "student_t":
            which = " (nu at 2, the heaviest tails with a variance, or at 1000, nearly normal)"
        messages.append(
            f"a constant of {inner(model.likelihood).name} went to the end of its range and is "
            f"held there{which}. Standard errors take it as known."
        )
    if any(column >= model.outputs for column in model.redundancy.columns):
        messages.append(
            f"the rows do not identify a constant of {inner(model.likelihood).name}: every value "
            "of it fits as well, and the one shown is arbitrary. Use a simpler likelihood."
        )
    if getattr(model.likelihood, "prior", 0):
        messages.append(
            f"a prior of {model.likelihood.prior:g} comparisons per item was asked for: "
            "coefficients are its posterior mode; the log-likelihood is that of the rows alone."
        )
    if model.likelihood.name == "quantiles" and model.outputs > 1:
        messages.append(
            "quantiles at several levels have no standard errors together: "
            "ansatz.linear.quantile_regression fits one level with them."
        )
    elif found.location.recession is None and bool(torch.isnan(errors).any()):
        messages.append(
            "the information matrix is singular: standard errors are not available (nan). "
            "Drop columns that add nothing, or use a simpler likelihood."
        )
    return tuple(messages)


def explain_columns(design: Design) -> list[str]:
    """Names the columns that were dropped, and what determines them."""
    if not design.aliased:
        return []
    shown = [f"'{name}' (= {words})" for name, words in list(design.aliased.items())[:5]]
    more = f" and {len(design.aliased) - 5} more" if len(design.aliased) > 5 else ""
    return [
        f"{_plural(len(design.aliased), 'column')} determined by others "
        f"{'was' if len(design.aliased) == 1 else 'were'} dropped (coefficient NA): "
        f"{', '.join(shown)}{more}. Predictions do not depend on which one is dropped."
    ]


def _too_few(model: LinearLikelihood, design: Design, observations: float) -> list[str]:
    asked, rank = len(design.names) + 1, design.matrix.shape[1]
    if rank < observations:
        return []
    return [
        f"{asked} coefficients for {observations:g} rows: the fit is saturated, it reproduces its "
        "rows and does not generalise; dispersion and standard errors are not available. "
        "Use fewer columns, more rows or a penalised network."
    ]


def explain_minimum(likelihood: str, design: Design, found: Minimum) -> list[str]:
    """Explains why Newton's method stopped without an estimate, or that it needed help."""
    messages = []
    if found.recession is not None:
        names = _culprits(design, found.recession.table)
        rows = _plural(found.recession.rows, "row")
        if likelihood == "cox":
            messages.append(
                f"monotone likelihood: along {names} the partial likelihood rises for ever (of "
                "those at risk it is always the row with the largest value that has the event: a "
                "level without events, say); " + NO_ESTIMATE
            )
        elif likelihood in SEPARABLE:
            messages.append(
                f"separation: {names} can separate {rows} without error, so no maximum-"
                "likelihood estimate exists; " + NO_ESTIMATE
            )
        else:
            messages.append(
                f"no maximum-likelihood estimate exists: along {names} the likelihood of {rows} "
                "rises for ever (for counts: a level or range where all are zero); " + NO_ESTIMATE
            )
    elif not found.converged:
        messages.append(
            f"Newton's method and L-BFGS did not converge: the scaled gradient is "
            f"{found.gradient:.1e} after {found.iterations} iterations (1e-8 is asked for). "
            "Coefficients and standard errors are approximate; a simpler likelihood or fewer "
            "columns help."
        )
    elif found.damping > 1e-4:
        messages.append(
            f"the information matrix needed a ridge of {found.damping:.1e} to be inverted."
        )
    return messages


def _dispersion(model: LinearLikelihood, found: Minimum) -> list[str]:
    if found.recession is not None:
        return [
            f"the constant dispersion of {model.likelihood.name} went to its least value: the "
            "outcomes are reproduced up to their resolution, which sets log-likelihood and AIC."
        ]
    if not found.converged:
        return [f"the dispersion did not converge: scaled gradient {found.gradient:.1e}."]
    return []


def _culprits(design: Design, table: Tensor, limit: int = 5) -> str:
    """The variables with the largest share in a direction, in units of their sd."""
    size = table.abs().amax(1)
    order = size[1:].argsort(descending=True)
    names: list[str] = [
        f"'{design.names[int(design.kept[j])]}'"
        for j in order.tolist()
        if float(size[1 + j]) > 1e-3 * float(size.max())
    ]
    return _join(names, limit) if names else f"{INTERCEPT} alone (a class or value without rows)"


def _join(names: Sequence[str], limit: int) -> str:
    if len(names) > limit:
        return ", ".join(names[:limit]) + f" and {len(names) - limit} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
