"""Tests whether the hazards of a linear Cox model are proportional."""

from typing import Literal, NamedTuple

import torch
from scipy import stats
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.likelihoods.partial_likelihood import RiskSets, Ties, no_entry
from ansatz.metrics.kaplan_meier import kaplan_meier

TimeTransform = Literal["km", "rank", "log", "identity"]


class ProportionalHazards(NamedTuple):
    """The test of each column, and of all together.

    Args:
        correlation: ``(Q,)``, of the scaled residuals with time.
        chi2: ``(Q,)``, with one degree of freedom each.
        p: ``(Q,)``.
        global_chi2: with Q degrees of freedom.
        global_p: of all columns.

    Example:
        >>> from ansatz.linear import ProportionalHazards
        >>> ProportionalHazards._fields[:3]
        ('correlation', 'chi2', 'p')
    """

    correlation: Tensor
    chi2: Tensor
    p: Tensor
    global_chi2: float
    global_p: float


def schoenfeld_residuals(
    X: Tensor,
    beta: Tensor,
    time: Tensor,
    event: Tensor,
    entry: Tensor | None = None,
    weight: Tensor | None = None,
    ties: Ties = "efron",
    offset: Tensor | None = None,
) -> Tensor:
    r"""Computes the Schoenfeld residual of each event, in the order of the rows.

    .. math:: r_i = x_i - \bar x(t_i), \qquad \bar x(t) =
        \frac{\sum_{j \in R(t)} w_j e^{\eta_j} x_j}{\sum_{j \in R(t)} w_j e^{\eta_j}}

    At tied times Efron's mean lets each of the L dead leave the risk set in turn. The residuals
    add up to the gradient of the log partial likelihood, 0 at its maximum.

    Args:
        X: ``(N, Q)``.
        beta: ``(Q,)``.
        time: ``(N,)``.
        event: ``(N,)``, 1, or 0 for censored.
        entry: ``(N,)``, after which the row is at risk.
        weight: ``(N,)`` frequency weights.
        ties: Efron's means or Breslow's.
        offset: ``(N,)``, added to the log-risk.

    Shapes:
        - returns: ``(M, Q)`` for M events, float64.

    Example:
        >>> import torch
        >>> from ansatz.linear import schoenfeld_residuals
        >>> X, time = torch.tensor([[0.0], [1.0], [0.0]]), torch.tensor([3.0, 1.0, 2.0])
        >>> schoenfeld_residuals(X, torch.zeros(1), time, time > 0)[:, 0]
        tensor([0.0000, 0.6667, 0.0000], dtype=torch.float64)

    References:
        Schoenfeld (1982), Partial residuals for the proportional hazards regression model.
    """
    X, beta, time, event = (v.detach().double() for v in (X, beta, time, event))
    weight = torch.ones_like(time) if weight is None else weight.double()
    eta = X @ beta if offset is None else X @ beta + offset.double()
    sets = RiskSets.of(time, event, no_entry(time) if entry is None else entry.double(), weight)
    value = eta + weight.log()
    peak = value.max()
    others, dead = ((log_sum - peak).exp() for log_sum in sets.log_sums(value))  # (K,)
    mean_others, mean_dead = sets.means(value, X)  # (K, Q)
    steps = torch.ones(len(sets.times), dtype=torch.long)
    if ties == "efron":
        steps = sets.weight.round().clamp(min=1).long()
    k = torch.arange(len(sets.times)).repeat_interleave(steps)  # one entry per death and time
    share = (torch.arange(len(k)) - (steps.cumsum(0) - steps)[k]).double() / steps[k]  # l / L
    left = ((1 - share) * dead[k]).unsqueeze(1)
    still = others[k].unsqueeze(1)
    means = (still * mean_others[k] + left * mean_dead[k]) / (still + left)
    centre = torch.zeros_like(mean_dead).index_add(0, k, means / steps[k].unsqueeze(1))
    return X[sets.events] - centre[sets.place]


def proportional_hazards(
    X: Tensor,
    beta: Tensor,
    covariance: Tensor,
    time: Tensor,
    event: Tensor,
    *,
    entry: Tensor | None = None,
    weight: Tensor | None = None,
    ties: Ties = "efron",
    offset: Tensor | None = None,
    transform: TimeTransform = "km",
    moments: Tensor | None = None,
) -> ProportionalHazards:
    r"""Tests whether the coefficients of a Cox model change with time.

    With d events, scaled residuals :math:`r^*_i = d\, V r_i` and :math:`g_i = g(t_i)`,

    .. math:: T_j = \frac{\left(\sum_i (g_i - \bar g) r^*_{ij}\right)^2}
                         {d\, V_{jj} \sum_i (g_i - \bar g)^2}, \qquad
              T = \frac{d\; S^\top V S}{\sum_i (g_i - \bar g)^2},
              \quad S = \sum_i (g_i - \bar g)\, r_i

    are chi-squared with 1 and Q degrees of freedom if the hazards are proportional. A trend of
    :math:`\beta_j + r^*_{ij}` over g(t) shows how a coefficient changes.

    Args:
        X: ``(N, Q)``.
        beta: ``(Q,)``, the maximum of the partial likelihood.
        covariance: ``(Q, Q)``, V, the inverse of its information.
        time: ``(N,)``.
        event: ``(N,)``, 1, or 0 for censored.
        entry: ``(N,)``, after which the row is at risk.
        weight: ``(N,)`` frequency weights.
        ties: Efron's means or Breslow's.
        offset: ``(N,)``, added to the log-risk.
        transform: g: ``"km"``, one minus the Kaplan-Meier curve just before t (robust against
            outlying times), ``"rank"``, ``"log"`` or ``"identity"``.
        moments: ``(N,)``, the times that g takes, where ``time`` are places on an axis of strata.

    Example:
        >>> import torch
        >>> from ansatz.linear import proportional_hazards
        >>> X, time = torch.tensor([[0.0], [1.0], [0.0], [1.0]]), torch.tensor([1.0, 2.0, 3.0, 4.0])
        >>> V = torch.ones(1, 1)
        >>> proportional_hazards(X, torch.zeros(1), V, time, time > 0).p.shape
        torch.Size([1])

    References:
        Grambsch and Therneau (1994), Proportional hazards tests and diagnostics based on weighted
        residuals. Biometrika 81.
    """
    time, event, V = time.detach().double(), event.detach().double(), covariance.double()
    weight = torch.ones_like(time) if weight is None else weight.double()
    rows = ((event > 0) & (weight > 0)).nonzero().squeeze(1)
    r = schoenfeld_residuals(X, beta, time, event, entry, weight, ties, offset)
    if moments is None:
        w, at = weight[rows], _transformed(time, event, weight, entry, rows, transform)
    else:
        w, at = weight[rows], _transformed(moments.double(), event, weight, None, rows, transform)
    d = w.sum()
    g = at - (w @ at) / d
    square = w @ g**2
    S = (w * g) @ r  # (Q,)
    scaled = d * r @ V
    chi2 = ((w * g) @ scaled) ** 2 / (d * V.diagonal() * square)
    centred = scaled - (w @ scaled) / d
    spread = (w @ centred**2).clamp(min=1e-300).sqrt()
    correlation = (w * g) @ centred / (spread * square.sqrt())
    total = float(d * S @ V @ S / square)
    p = torch.from_numpy(stats.chi2.sf(chi2.numpy(), 1))
    return ProportionalHazards(correlation, chi2, p, total, float(stats.chi2.sf(total, len(S))))


def _transformed(
    time: Tensor,
    event: Tensor,
    weight: Tensor,
    entry: Tensor | None,
    rows: Tensor,
    transform: TimeTransform,
) -> Tensor:
    at = time[rows]
    if transform == "identity":
        return at
    if transform == "log":
        if float(at.min()) <= 0:
            raise UsageError("transform='log' needs positive times; take 'km'.")
        return at.log()
    if transform == "rank":
        return torch.from_numpy(stats.rankdata(at.numpy()))
    if transform != "km":
        raise UsageError(f"transform must be km, rank, log or identity, got {transform!r}.")
    return 1 - kaplan_meier(time, event, weight, entry).before(at)
