"""Tests whether groups have the same survival, and how long rows were followed."""

import math
from typing import NamedTuple

import torch
from scipy import stats
from torch import Tensor

from ansatz.arrays import takes_arrays
from ansatz.metrics.kaplan_meier import _counts, _weight_from, kaplan_meier


class LogRank(NamedTuple):
    """The log-rank test of G groups.

    Args:
        chi2: the statistic.
        df: G - 1 degrees of freedom.
        p_value: of the hypothesis that all groups have one hazard.
        observed: ``(G,)`` events.
        expected: ``(G,)`` events under that hypothesis.

    Example:
        >>> from ansatz.metrics import log_rank
        >>> found = log_rank([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1], [0, 0, 1, 1])
        >>> found.df, round(found.p_value, 3)
        (1, 0.09)
    """

    chi2: float
    df: int
    p_value: float
    observed: Tensor
    expected: Tensor


@takes_arrays
def log_rank(
    time: Tensor,
    event: Tensor,
    group: Tensor,
    weight: Tensor | None = None,
    entry: Tensor | None = None,
) -> LogRank:
    r"""Compares the hazards of groups by the log-rank test.

    .. math:: U_g = \sum_k \left(d_{gk} - n_{gk} \frac{d_k}{n_k}\right), \qquad
        V_{gh} = \sum_k \frac{d_k (n_k - d_k)}{n_k - 1}
                 \frac{n_{gk}}{n_k} \left(1[g = h] - \frac{n_{hk}}{n_k}\right), \qquad
        \chi^2 = U^\top V^- U

    over the distinct event times with d events among n rows at risk.

    Args:
        time: ``(N,)``, of the event or of the end of observation.
        event: ``(N,)``, 1, or 0 for censored.
        group: ``(N,)``, any numbers.
        weight: ``(N,)`` frequency weights.
        entry: ``(N,)``, the time after which each row was under observation.

    Example:
        >>> import torch
        >>> from ansatz.metrics import log_rank
        >>> time, group = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([0, 1, 0, 1])
        >>> round(log_rank(time, torch.ones(4), group).chi2, 3)
        0.615

    References:
        Mantel (1966), Evaluation of survival data and two new rank order statistics.
    """
    groups, code = group.unique(return_inverse=True)
    mass = torch.ones_like(time.double()) if weight is None else weight.double()
    times, died, at_risk = _counts(time, event, mass, entry)
    own_died, own_risk = [], []
    for g in range(len(groups)):
        mine = mass * (code == g)
        own, dead, _ = _counts(time, event, mine, entry)
        place = torch.searchsorted(times, own)
        own_died.append(torch.zeros_like(died).index_copy(0, place, dead))
        # Rows at risk at the event times of all groups: those that end then or later.
        there = _weight_from(time.double(), mine, times)
        if entry is not None:
            there = there - _weight_from(entry.double(), mine, times)
        own_risk.append(there)
    d, n = torch.stack(own_died), torch.stack(own_risk)  # (G, K)
    share = n / at_risk
    observed, expected = d.sum(1), (share * died).sum(1)
    spread = died * (at_risk - died) / (at_risk - 1).clamp(min=1)
    V = torch.diag((spread * share).sum(1)) - (spread * share) @ share.T
    U = observed - expected
    chi2 = float(U @ torch.linalg.pinv(V, hermitian=True) @ U)
    df = len(groups) - 1
    return LogRank(chi2, df, float(stats.chi2.sf(chi2, df)), observed, expected)


@takes_arrays
def median_follow_up(time: Tensor, event: Tensor, weight: Tensor | None = None) -> float:
    """Computes the median time until censoring, by the reverse Kaplan-Meier curve.

    Events hide how long a row would have been followed: they are the censored ones here. Infinite
    where less than half were censored by the end.

    Args:
        time: ``(N,)``, of the event or of the end of observation.
        event: ``(N,)``, 0 for censored.
        weight: ``(N,)`` frequency weights.

    Example:
        >>> import torch
        >>> from ansatz.metrics import median_follow_up
        >>> median_follow_up(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1, 0, 0]))
        2.0

    References:
        Schemper and Smith (1996), A note on quantifying follow-up in studies of failure time.
    """
    curve = kaplan_meier(time, (event == 0).to(time.dtype), weight)
    below = (curve.values <= 0.5 + 1e-12).nonzero()
    return float(curve.times[below[0, 0]]) if len(below) else math.inf
