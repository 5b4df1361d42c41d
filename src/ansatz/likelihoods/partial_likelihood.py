"""Cox's partial likelihood with ties, entries and frequency weights."""

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softplus

from ansatz.likelihoods.special.gamma import stirling

EMPTY = -1e30  # the logarithm of an empty sum: finite, so that gradients meet no inf - inf


class RiskSets(NamedTuple):
    r"""The risk sets :math:`R_k = \{j : e_j < t_k \le s_j\}` of the distinct event times t_k.

    e_j is the entry of row j and s_j its time; a row that is censored at an event time is still
    at risk there. The rows that die at t_k are kept apart from the others at risk, as ties need.

    A row is at risk during a run ``first <= k < last`` of event times. Sums over the rows at risk
    are taken in log space and only by adding: with entries, each run is cut into blocks of
    1, 2, 4, ... event times (at most two of a size), and an event time adds up the blocks that
    hold it. A difference of running sums would lose all digits when log-risks lie far apart.
    """

    times: Tensor  # (K,) the distinct event times
    weight: Tensor  # (K,) of the rows that die then
    first: Tensor  # (N,) the run of each row, its own event left out
    last: Tensor  # (N,)
    events: Tensor  # (M,) the rows with an event
    place: Tensor  # (M,) which event time it is

    @classmethod
    def of(cls, time: Tensor, event: Tensor, entry: Tensor, weight: Tensor) -> "RiskSets":
        """Sorts the rows, ``(N,)`` each; a row of weight 0 is absent."""
        present = weight > 0
        time, entry = (torch.where(present, v, 0.0) for v in (time, entry))
        events = ((event > 0) & present).nonzero().squeeze(1)
        times, place = time[events].unique(return_inverse=True)
        first = torch.searchsorted(times, entry.contiguous(), right=True)
        last = torch.searchsorted(times, time.contiguous(), right=True)
        last = last.index_copy(0, events, place)  # a row that dies counts among the dead there
        dead = weight.new_zeros(len(times)).index_add(0, place, weight[events])
        return cls(times, dead, first, last, events, place)

    def log_sums(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """log sum exp(value) over the rows at risk that do not die, and over those that do."""
        dead = _log_sum(value[self.events], self.place, len(self.times))
        if not len(self.times) or bool((self.first > 0).any()):
            return self._blocks(value)[0], dead
        # Without entries a running sum from the last event time backwards holds everything.
        bins = _log_sum(value, self.last, len(self.times) + 1)[1:]
        return bins.flip(0).logcumsumexp(0).flip(0), dead

    def means(self, value: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """The means of x ``(N, Q)`` with weights exp(value), ``(K, Q)``, over the same two sets."""
        value = value.detach()
        mine, count = value[self.events], len(self.times)
        dead = _mean(mine, x[self.events], self.place, _log_sum(mine, self.place, count))
        return self._blocks(value, x)[1], dead

    def _blocks(self, value: Tensor, x: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Log sums (K,), and means (K, Q) of x, by the blocks of each row's run."""
        count, wide = len(self.times), 0 if x is None else x.shape[1]
        depth = max(count - 1, 0).bit_length()
        left, right, blocks = self.first, self.last, []
        for level in range(depth, -1, -1):  # block b of this level holds 2^(depth - level) times
            inside = left < right
            opens, closes = inside & (left % 2 == 1), inside & (right % 2 == 1)
            rows = torch.cat([opens.nonzero(), closes.nonzero()]).squeeze(1)
            block = torch.cat([left[opens], right[closes] - 1])
            total = _log_sum(value[rows], block, 2**level)
            mean = x is not None and _mean(value[rows], x[rows], block, total)
            blocks.append((total, mean if x is not None else value.new_zeros(2**level, 0)))
            left, right = (left + opens.long()) // 2, right // 2
        total, mean = value.new_full((1,), EMPTY), value.new_zeros(1, wide)
        for own_total, own_mean in reversed(blocks):  # from the whole axis down to single times
            size = len(own_total) // len(total)
            total, mean = total.repeat_interleave(size), mean.repeat_interleave(size, 0)
            both = _log_add(total, own_total)
            if wide:
                share = (total - both).exp().unsqueeze(1)
                mean = share * mean + (own_total - both).exp().unsqueeze(1) * own_mean
            total = both
        return total[:count], mean[:count]


def _log_sum(value: Tensor, index: Tensor, count: int) -> Tensor:
    """log sum exp(value) per group, EMPTY where a group has no row."""
    peak = value.new_full((count,), EMPTY)
    peak = peak.scatter_reduce(0, index, value.detach(), "amax")
    total = value.new_zeros(count).index_add(0, index, (value - peak[index]).exp())
    empty = total == 0
    return torch.where(empty, EMPTY, torch.where(empty, 1.0, total).log() + peak)


def _log_add(a: Tensor, b: Tensor) -> Tensor:
    """log(e^a + e^b); torch's own has no second derivative where one of them is EMPTY."""
    high, low = torch.where(a >= b, a, b), torch.where(a >= b, b, a)
    return high + softplus(low - high)


def _mean(value: Tensor, x: Tensor, index: Tensor, total: Tensor) -> Tensor:
    """The mean of x per group with weights exp(value), 0 where a group has no row."""
    share = (value - total[index]).exp().unsqueeze(1)
    return x.new_zeros(len(total), x.shape[1]).index_add(0, index, share * x)


def no_entry(time: Tensor) -> Tensor:
    """Entries of rows that are under observation from the beginning: minus infinity."""
    return torch.full_like(time, -math.inf)


Ties = Literal["efron", "breslow"]


def on_one_axis(y: Tensor) -> Tensor:
    """Rows (time, event, entry, stratum) as rows (time, event, entry) without common risk sets.

    The strata come one after another on one axis of whole numbers: times are replaced by their
    ranks, and every row enters at the begin of its stratum or later. The partial likelihood sees
    the order of times alone, so that of the new rows is the product over the strata.

    Shapes:
        - y: ``(N, 3)``, which are returned as they are, or ``(N, 4)``; returns ``(N, 3)``.
    """
    if y.shape[-1] == 3:
        return y
    time, event, entry, stratum = y.double().unbind(-1)
    late = entry.isfinite()
    values = torch.cat([time, entry[late]]).unique()
    begin = stratum * (len(values) + 1)
    until = begin + torch.searchsorted(values, time.contiguous()) + 1
    since = torch.searchsorted(values, torch.where(late, entry, values[:1]).contiguous()) + 1
    return torch.stack([until, event, begin + torch.where(late, since, 0)], -1)


def partial_likelihood(
    X: Tensor,
    beta: Tensor,
    time: Tensor,
    event: Tensor,
    entry: Tensor | None = None,
    weight: Tensor | None = None,
    ties: Ties = "efron",
    offset: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Computes the log partial likelihood of a linear Cox model, with two derivatives.

    .. math:: \ell = \sum_{i: d_i = 1} \eta_i - \sum_k T_k, \qquad \eta = X \beta + \text{offset}

    with one term :math:`T_k` per distinct event time (:func:`tie_term`). With :math:`A_k` and
    :math:`B_k` the derivatives of T_k in the log-sums over survivors and dead, :math:`m_k` and
    :math:`n_k` the risk-weighted means of x over the two,

    .. math:: I = X^\top \mathrm{diag}(g) X - \sum_k \left(A_k m_k m_k^\top + B_k n_k n_k^\top
              - h''_k (m_k - n_k)(m_k - n_k)^\top \right), \qquad g = \partial_\eta \sum_k T_k

    at a cost of N Q^2 + N Q log N, stable for log-risks that lie hundreds apart.

    Args:
        X: ``(N, Q)``; no column of ones, as a constant cancels.
        beta: ``(Q,)``.
        time: ``(N,)``, of the event or of the end of observation.
        event: ``(N,)``, 1 where the event occurred, 0 where the row is censored.
        entry: ``(N,)``, after which the row is at risk (left truncation, start-stop rows).
        weight: ``(N,)`` frequency weights: a weight of 2 is the row twice, in every risk set.
        ties: Efron's term or Breslow's.
        offset: ``(N,)``, added to the log-risk.

    Shapes:
        - returns: log-likelihood ``()``, gradient ``(Q,)``, minus the Hessian ``(Q, Q)``, float64.

    Example:
        >>> import torch
        >>> X, time = torch.tensor([[0.0], [1.0], [0.0]]), torch.tensor([3.0, 1.0, 2.0])
        >>> value, gradient, information = partial_likelihood(X, torch.zeros(1), time, time > 0)
        >>> round(value.item(), 4), round(gradient.item(), 4), round(information.item(), 4)
        (-1.7918, 0.6667, 0.2222)

    References:
        Cox (1975), Partial likelihood. Efron (1977), The efficiency of Cox's likelihood function
        for censored data.
    """
    X, beta, time, event = (v.detach().double() for v in (X, beta, time, event))
    weight = torch.ones_like(time) if weight is None else weight.double()
    entry = no_entry(time) if entry is None else entry.double()
    present = weight > 0
    X = torch.where(present.unsqueeze(1), X, 0.0)
    X = X - (weight / weight.sum()) @ X  # a constant cancels; without it squares stay small
    eta = X @ beta
    if offset is not None:
        eta = eta + torch.where(present, offset.double(), 0.0)
    sets = RiskSets.of(time, event, entry, weight)
    mine = torch.zeros_like(weight).index_copy(0, sets.events, weight[sets.events])
    with torch.enable_grad():
        log_risk = eta.requires_grad_()
        value = log_risk + weight.log()
        others, dead = sets.log_sums(value)
        u = (others - dead).detach().requires_grad_()
        h = tie_term(sets.weight, u, ties)
        (A,) = torch.autograd.grad(h.sum(), u, create_graph=True)
        (bend,) = torch.autograd.grad(A.sum(), u)
        A = A.detach()
        terms = sets.weight * dead + tie_term(sets.weight, others - dead, ties)
        (g,) = torch.autograd.grad(terms.sum(), log_risk)
    log_likelihood = (mine * eta).sum() - terms.sum()
    B = sets.weight - A
    m, n = sets.means(value, X)  # (K, Q) each
    gradient = mine @ X - A @ m - B @ n
    second = _gram(m, A) + _gram(n, B) - _gram(m - n, bend)
    return log_likelihood.detach(), gradient, _gram(X, g) - second


def tie_term(weight: Tensor, u: Tensor, ties: Ties) -> Tensor:
    r"""h(u) of the term :math:`T = W \log D + h(u)` that an event time takes off the likelihood.

    W is the weight of the rows that die there, D the sum of their risks, and u the log of the
    survivors' sum of risks over D. Breslow: :math:`T = W \log(D + D e^u)`. Efron:

    .. math:: T = \sum_{l=0}^{W-1} \log\left(D + D e^u - \tfrac{l}{W} D\right)
              = W \log \frac{D}{W} + \log \frac{\Gamma(c + 1)}{\Gamma(c - W + 1)},
              \qquad c = W (1 + e^u)

    The gamma functions extend this to a W that is not a whole number, at no cost for large ones.

    References:
        Efron (1977), section 4; Breslow (1974), Covariance analysis of censored survival data.
    """
    plain = weight * _softplus(u)
    tied = (weight != 1).nonzero().squeeze(1)
    if ties == "breslow" or not len(tied):
        return plain
    return plain.index_add(0, tied, _efron(weight[tied], u[tied]))


def _efron(weight: Tensor, u: Tensor) -> Tensor:
    """Efron's term less Breslow's; 0 where one row dies alone."""
    far = u > 36  # survivors outweigh the dead by 1e15: the order of deaths makes no difference
    log_y = weight.log() + torch.where(far, 0.0, u)
    close = ~far & (log_y < 2.1)  # y = c - W < 8
    y_close = torch.where(close, log_y, 0.0).exp()
    c_close = y_close + weight
    direct = torch.lgamma(c_close + 1) - torch.lgamma(y_close + 1) - weight * c_close.log()
    # Stirling's formula on both gamma functions, large terms cancelled by hand.
    y = torch.where(close | far, 2.1, log_y).exp()
    gap = _softplus(-torch.where(close | far, 0.0, u))  # log(c / y)
    series = (y + 0.5) * gap - weight + stirling(y + weight) - stirling(y)
    return torch.where(far, 0.0, torch.where(close, direct, series))


def _softplus(u: Tensor) -> Tensor:
    return softplus(u, threshold=40.0)  # torch's own threshold of 20 leaves an error of 2e-9


def _gram(X: Tensor, weight: Tensor) -> Tensor:
    return X.T @ (weight.unsqueeze(1) * X)
