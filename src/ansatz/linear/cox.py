"""Cox's proportional hazards: a linear model of who has the event first."""

import copy
from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.likelihoods.cox import Cox
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.likelihoods.partial_likelihood import (
    RiskSets,
    Ties,
    on_one_axis,
    partial_likelihood,
    tie_term,
)
from ansatz.linear.covariance import invert
from ansatz.linear.criterion import Derivatives
from ansatz.linear.design import INTERCEPT, Design, DesignRows
from ansatz.linear.linear_fit import LinearFit
from ansatz.linear.messages import explain_columns, explain_minimum
from ansatz.linear.newton import Minimum, Recession, minimise
from ansatz.linear.proportional_hazards import ProportionalHazards, proportional_hazards
from ansatz.linear.robust import explain_groups, group_codes
from ansatz.metrics.concordance import harrell_c

PAIRS = 20_000  # rows with entries are compared pair by pair: beyond this number it takes too long


class PartialLikelihood:
    """Minus the log partial likelihood of the columns of a design, as Newton's method wants it."""

    def __init__(
        self,
        x: Tensor,
        y: Tensor,
        weight: Tensor,
        offset: Tensor | None = None,
        ties: Ties = "efron",
    ) -> None:
        self.x, self.weight, self.offset, self.ties = x, weight, offset, ties
        self.y = on_one_axis(y)  # strata have no risk set in common

    def derivatives(self, theta: Tensor, free: Tensor | None = None) -> Derivatives:
        """Value, gradient and Hessian."""
        time, event, entry = self.y.unbind(1)
        value, gradient, information = partial_likelihood(
            self.x, theta, time, event, entry, self.weight, self.ties, self.offset
        )
        return Derivatives(-value, -gradient, information, value.abs() + self.weight.sum())

    @cached_property
    def _centred(self) -> tuple[RiskSets, Tensor]:
        time, event, entry = self.y.unbind(1)
        sets = RiskSets.of(time, event, entry, self.weight)
        return sets, self.x - (self.weight / self.weight.sum()) @ self.x

    def value(self, theta: Tensor) -> Tensor:
        """Minus the log partial likelihood, without its derivatives."""
        sets, x = self._centred
        eta = x @ theta
        if self.offset is not None:
            eta = eta + self.offset
        others, dead = sets.log_sums(eta + self.weight.log())
        terms = sets.weight * dead + tie_term(sets.weight, others - dead, self.ties)
        return terms.sum() - self.weight[sets.events] @ eta[sets.events]

    def gradient(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Value and gradient."""
        found = self.derivatives(theta)
        return found.value, found.gradient

    def linear(self, theta: Tensor) -> Tensor:
        """The log-risks without the offset, ``(N, 1)``."""
        return self.x @ theta.unsqueeze(1)

    def recession(self, theta: Tensor, step: Tensor, unit: Tensor) -> Recession | None:
        """A direction along which the partial likelihood rises for ever, if Newton follows one.

        Along it every row that dies has the largest log-risk of all at risk then. The likelihood
        is concave, so this holds if it does not fall far out on the ray.
        """
        for candidate in (step, theta):
            small = candidate.abs() < 0.05 * candidate.abs().max()
            for direction in (candidate, torch.where(small, 0.0, candidate)):
                change = (self.x @ direction).abs()
                if not 0 < float(change.max()) < float("inf"):
                    continue
                direction = direction / change.max()
                slope = self.derivatives(theta + 1e4 * direction).gradient @ direction
                events = self.weight @ self.y[:, 1]
                if float(slope) <= 1e-9 * float(events):
                    moved = int((change > 1e-3 * change.max()).sum())
                    table = torch.cat([torch.zeros(1, dtype=theta.dtype), direction])
                    return Recession(table.unsqueeze(1), moved)
        return None


def fit_cox(likelihood: Cox, rows: DesignRows, design: Design, covariance: str) -> LinearFit:
    r"""Fits the linear Cox model: :math:`h(t \mid x) = h_0(t)\, e^{x^\top \beta}`.

    Newton's method on the partial likelihood, with the ties of the likelihood. There is no
    intercept: the baseline hazard :math:`h_0` has its place. The table's first row makes the
    log-risk of an average row 0, as R's ``predict`` does; it is not estimated.

    References:
        Cox (1972), Regression models and life-tables.
        Lin and Wei (1989), The robust inference for the Cox proportional hazards model.
    """
    if rows.precision is not None:
        raise UsageError("precision= has no meaning for cox. For repeated rows use weight=.")
    base = copy.deepcopy(likelihood).double()
    base.check(rows.y)
    base.start(rows.y, rows.weight)  # refuses rows without an event
    x = design.matrix[:, 1:]
    partial = PartialLikelihood(x, rows.y.double(), rows.weight, rows.offset, base.ties)
    zero = torch.zeros(x.shape[1], dtype=torch.float64)
    free, unit = torch.ones(x.shape[1], dtype=torch.bool), torch.ones(1)
    null = partial.value(zero)
    found = minimise(partial, zero, free, unit, recede=partial.recession)
    matrix = invert(found.derivatives.hessian)
    tested = _test_proportional(partial, found, matrix, rows.y)
    if covariance != "model":
        matrix = matrix @ _meat(score_residuals(partial, found.theta), rows, covariance) @ matrix
    scale = design.scale.unsqueeze(1) * design.scale
    table = design.restore(torch.cat([zero.new_zeros(1), found.theta]).unsqueeze(1))
    log_risk = partial.linear(found.theta)[:, 0]
    base.set_baseline(
        log_risk if rows.offset is None else log_risk + rows.offset, rows.y.double(), rows.weight
    )
    fit = cox_result(base, rows, design, found, -float(null), matrix / scale, table, covariance)
    return fit if tested is None else _with_test(fit, tested)


_FEWEST_EVENTS = 20  # for a test of proportional hazards
_DOUBTFUL = 0.01


def _test_proportional(
    partial: PartialLikelihood, found: Minimum, covariance: Tensor, y: Tensor
) -> ProportionalHazards | None:
    """Tests whether the coefficients change with time; None with few events or no maximum."""
    events = float(partial.weight @ (partial.y[:, 1] > 0).double())
    if not len(found.theta) or events < _FEWEST_EVENTS or not found.converged:
        return None
    if not bool(covariance.isfinite().all()):
        return None
    time, event, entry = partial.y.unbind(1)
    return proportional_hazards(
        *(partial.x, found.theta, covariance, time, event),
        entry=entry,
        weight=partial.weight,
        ties=partial.ties,
        offset=partial.offset,
        moments=y[:, 0].double() if y.shape[1] == 4 else None,
    )


def _with_test(fit: LinearFit, tested: ProportionalHazards) -> LinearFit:
    measures = {**fit.measures, "proportional_hazards_p": tested.global_p}
    messages = fit.messages
    if tested.global_p < _DOUBTFUL:
        worst = int(tested.p.argmin())
        name = fit.names[fit.entries[worst][0]]
        messages = (
            *messages,
            f"proportional hazards are doubtful (p = {tested.global_p:.2g}): the effect of "
            f"'{name}' changes most with time (p = {float(tested.p[worst]):.2g}). Stratify "
            "(--strata), or compare with discrete_hazard by integrated_brier.",
        )
    return replace(fit, measures=measures, messages=messages)


def _meat(residuals: Tensor, rows: DesignRows, kind: str) -> Tensor:
    """The middle of the sandwich: score residuals summed within groups where there are some."""
    if kind in ("HC2", "HC3"):
        raise UsageError(f"cox has no {kind} standard errors: take HC0, HC1 or cluster.")
    if kind == "cluster":
        assert rows.group is not None
        codes, count = group_codes(rows.group)
        residuals = residuals.new_zeros(count, residuals.shape[1]).index_add(0, codes, residuals)
    elif kind in ("HC0", "HC1"):  # weights count rows: a residual holds its weight once
        residuals = residuals / rows.weight.sqrt().unsqueeze(1)
    n, k = float(rows.weight.sum()), residuals.shape[1]
    return residuals.T @ residuals * (n / (n - k) if kind == "HC1" else 1.0)


def cox_result(
    likelihood: Likelihood,
    rows: DesignRows,
    design: Design,
    found: Minimum,
    null: float,
    covariance: Tensor,
    coefficients: Tensor,
    kind: str,
) -> LinearFit:
    """What follows from the maximum of the partial likelihood."""
    rank = len(found.theta)
    measures = {"events": float(rows.weight @ (rows.y[:, 1] > 0).double())}
    time, event, entry = rows.y.double()[:, :3].unbind(1)
    entered, strata = bool((entry > -torch.inf).any()), rows.y.shape[1] == 4
    if rank and not strata and not (entered and len(time) > PAIRS):
        log_risk = design.matrix[:, 1:] @ found.theta
        c = harrell_c(time, event, log_risk, rows.weight, entry if entered else None)
        measures["concordance"] = float(c)
    messages = [*explain_columns(design), *explain_minimum("cox", design, found)]
    messages += explain_groups(kind, rows.group)
    if not messages and bool(torch.isnan(covariance).any()):
        messages.append(
            "the information matrix is singular: standard errors are not available (nan)."
        )
    return LinearFit(
        likelihood=likelihood,
        names=(INTERCEPT, *design.names),
        outputs=("log-risk",),
        coefficients=coefficients,
        covariance=covariance,
        entries=tuple((int(row), 0) for row in design.rows[1:]),
        covariance_kind=kind,
        observations=float(rows.weight.sum()),
        rank=rank,
        locations=0,
        parameters=rank,
        log_likelihood=-float(found.derivatives.value),
        conventional={},
        null_log_likelihood=null,
        residual_deviance=None,
        null_deviance=None,
        dispersion=None,
        dispersion_ml=None,
        scales={},
        iterations=found.iterations,
        converged=found.converged,
        gradient=found.gradient,
        dropped=tuple(design.aliased),
        link=likelihood.link_name,
        uses_t=False,
        messages=tuple(messages),
        measures=measures,
    )


def score_residuals(partial: "PartialLikelihood", theta: Tensor) -> Tensor:
    r"""The score residuals :math:`w_i \int (x_i - \bar x(t))\, dM_i(t)`, ``(N, Q)``.

    They add up to the gradient of the log partial likelihood. With L tied deaths at a time,
    Efron's term takes the l-th of them from a risk set in which each of the dead counts
    :math:`1 - l/L`; L is the weight that dies there, rounded to a whole number.

    References:
        Therneau and Grambsch (2000), Modeling Survival Data, section 4.6 and appendix A.
    """
    x, weight = partial.x, partial.weight
    time, event, entry = partial.y.unbind(1)
    eta = partial.linear(theta)[:, 0]
    if partial.offset is not None:
        eta = eta + partial.offset
    sets = RiskSets.of(time, event, entry, weight)
    value = eta + weight.log()
    peak = value.max()
    others, dead = ((log_sum - peak).exp() for log_sum in sets.log_sums(value))  # (K,)
    mean_others, mean_dead = sets.means(value, x)  # (K, Q)
    steps = torch.ones(len(sets.times), dtype=torch.long)
    if partial.ties == "efron":
        steps = sets.weight.round().clamp(min=1).long()
    k = torch.arange(len(sets.times)).repeat_interleave(steps)  # one entry per death and time
    before = steps.cumsum(0) - steps
    share = (torch.arange(len(k)) - before[k]).double() / steps[k]  # l / L
    left = (1 - share) * dead[k]
    total = others[k] + left
    mean = (others[k].unsqueeze(1) * mean_others[k] + left.unsqueeze(1) * mean_dead[k]) / (
        total.unsqueeze(1)
    )
    hazard = sets.weight[k] / steps[k] / total  # at the peak's risk

    def by_time(terms: Tensor) -> Tensor:
        return terms.new_zeros(len(sets.times), *terms.shape[1:]).index_add(0, k, terms)

    def during(terms: Tensor) -> Tensor:
        """Sums over the event times that a row is at risk at, its own left out."""
        running = torch.cat([torch.zeros_like(terms[:1]), terms.cumsum(0)])
        return running[sets.last.maximum(sets.first)] - running[sets.first]

    risk = (value - peak).exp()
    result = risk.unsqueeze(1) * (
        during(by_time(hazard.unsqueeze(1) * mean)) - x * during(by_time(hazard)).unsqueeze(1)
    )
    i, own = sets.events, sets.place
    dying = hazard * (1 - share)
    pull = by_time(dying.unsqueeze(1) * mean)[own] - x[i] * by_time(dying)[own].unsqueeze(1)
    centre = by_time(mean / steps[k].unsqueeze(1))[own]
    mine = weight[i].unsqueeze(1) * (x[i] - centre) + risk[i].unsqueeze(1) * pull
    return result.index_add(0, i, mine)
