"""Concordance: how often higher risk goes with an earlier event."""

import torch
from torch import Tensor

from ansatz.arrays import takes_arrays
from ansatz.errors import DataError
from ansatz.metrics.kaplan_meier import kaplan_meier
from ansatz.metrics.weights import require_equal_shapes, row_weight

_BLOCK = 2**22  # pairs that are held at once


@takes_arrays
def harrell_c(
    time: Tensor,
    event: Tensor,
    score: Tensor,
    weight: Tensor | None = None,
    entry: Tensor | None = None,
) -> Tensor:
    r"""Computes the share of comparable pairs in which the higher score has the event first.

    .. math:: C = \frac{\sum_{(i, j)} w_i w_j \left(1[s_i > s_j] + \tfrac12 1[s_i = s_j]\right)}
              {\sum_{(i, j)} w_i w_j}

    over pairs with an event of i before the time of j; where both times are equal, only if j is
    censored there. Two events at one time are not compared. 1/2 is chance, nan means no pair.
    It depends on the censoring; :func:`uno_c` does not. In n log^2 n steps (n^2 with entries).

    Args:
        time: ``(N,)``, of the event or of the end of observation.
        event: ``(N,)``, 1, or 0 for censored.
        score: ``(N,)``, larger for an earlier event: a log-risk, or minus a predicted time.
        weight: ``(N,)`` frequency weights.
        entry: ``(N,)``: then j must have entered before the event of i.

    Example:
        >>> import torch
        >>> from ansatz.metrics import harrell_c
        >>> time, event = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1, 0, 1])
        >>> harrell_c(time, event, torch.tensor([0.2, 0.9, 0.1])).item()
        0.5

    References:
        Harrell et al. (1996), Multivariable prognostic models. Statistics in Medicine 15.
    """
    return _concordance(time, event, score, None, weight, entry)


@takes_arrays
def uno_c(
    time: Tensor,
    event: Tensor,
    score: Tensor,
    train_time: Tensor,
    train_event: Tensor,
    *,
    tau: float | None = None,
    weight: Tensor | None = None,
    train_weight: Tensor | None = None,
) -> Tensor:
    r"""Computes a concordance that does not depend on the censoring, by inverse weights.

    .. math:: C_\tau = \frac{\sum_{(i, j)} G(t_i^-)^{-2}\, 1[t_i < \tau]\,
              (1[s_i > s_j] + \tfrac12 1[s_i = s_j])}{\sum_{(i, j)} G(t_i^-)^{-2}\, 1[t_i < \tau]}

    over the pairs of :func:`harrell_c`, with G the Kaplan-Meier curve of the *censoring* in the
    training rows: P(C >= t). Censoring must be independent of x. Events beyond :math:`\tau` are
    left out; without it, few late events with small G decide the result.

    Args:
        time: ``(N,)`` of the rows to be evaluated.
        event: ``(N,)``.
        score: ``(N,)``, larger for an earlier event.
        train_time: ``(M,)`` of the training rows.
        train_event: ``(M,)``.
        tau: the horizon; default: the last time of a training row.
        weight: ``(N,)`` frequency weights.
        train_weight: ``(M,)``.

    Example:
        >>> import torch
        >>> from ansatz.metrics import uno_c
        >>> time, event = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([1, 0, 1, 1])
        >>> round(uno_c(time, event, -time, time, event).item(), 4)
        1.0

    References:
        Uno et al. (2011), On the C-statistics for evaluating overall adequacy of risk prediction
        procedures with censored survival data. https://doi.org/10.1002/sim.4154
    """
    seen = train_time if train_weight is None else train_time[train_weight > 0]
    horizon = float(seen.max()) if tau is None else float(tau)
    censoring = kaplan_meier(train_time, (train_event == 0).long(), train_weight)
    # A censored row at an event's time leaves after it: the chance to see the event is G(t-).
    chance = censoring.before(time.double())
    counted = (event > 0) & (time.double() <= horizon if tau is None else time.double() < horizon)
    lost = counted & ~(chance > 0)
    if bool(lost.any()):
        raise DataError(
            f"no training row is seen up to time {float(time[lost][0])}: its probability of being "
            "uncensored is 0. Give a smaller tau."
        )
    factor = torch.where(counted, chance.clamp(min=1e-300) ** -2, 0.0)
    return _concordance(time, event, score, factor, weight, None)


@takes_arrays
def antolini_c(
    survival: Tensor, times: Tensor, time: Tensor, event: Tensor, weight: Tensor | None = None
) -> Tensor:
    r"""Computes the concordance of survival curves that may cross.

    .. math:: C^{td} = P(S_i(t_i) < S_j(t_i) \mid t_i < t_j,\ i \text{ has the event})

    over the pairs of :func:`harrell_c`, ties counted half: at the time of i's event, its own
    curve should be below that of those who live on. The curves are steps between ``times``.

    Args:
        survival: ``(N, T)``, the curve of each row.
        times: ``(T,)``, increasing.
        time: ``(N,)``.
        event: ``(N,)``, 1, or 0 for censored.
        weight: ``(N,)`` frequency weights.

    Example:
        >>> import torch
        >>> from ansatz.metrics import antolini_c
        >>> curves = torch.tensor([[0.5, 0.4], [0.9, 0.3]])
        >>> times = torch.tensor([1.0, 2.0])
        >>> antolini_c(curves, times, torch.tensor([1.0, 2.0]), torch.ones(2)).item()
        1.0

    References:
        Antolini, Boracchi and Biganzoli (2005), A time-dependent discrimination index for
        survival data. https://doi.org/10.1002/sim.2427
    """
    if survival.shape != (len(time), len(times)):
        raise ValueError(
            f"antolini_c needs curves ({len(time)}, {len(times)}), got {tuple(survival.shape)}."
        )
    time, weight = time.double(), row_weight(time, weight)
    curves = torch.cat([torch.ones_like(survival[:, :1]), survival], 1).double()
    place = torch.searchsorted(times.double(), time, right=True)
    events = ((event > 0) & (weight > 0)).nonzero().squeeze(1)
    won = total = weight.new_zeros(())
    for rows in events.split(max(1, _BLOCK // max(len(time), 1))):
        pair = _comparable(time, event, None, rows) * weight
        others = curves[:, place[rows]].T  # (R, N): every curve at the event's time
        own = others.gather(1, rows.unsqueeze(1))
        right = (own < others).double() + 0.5 * (own == others).double()
        won = won + (weight[rows] * (pair * right).sum(1)).sum()
        total = total + (weight[rows] * pair.sum(1)).sum()
    return won / torch.where(total > 0, total, torch.nan)


def _concordance(
    time: Tensor,
    event: Tensor,
    score: Tensor,
    factor: Tensor | None,
    weight: Tensor | None,
    entry: Tensor | None,
) -> Tensor:
    for values in (event, score):
        require_equal_shapes("concordance", time, values)
    weight = row_weight(time, weight)
    own = weight if factor is None else weight * factor
    seen = weight > 0  # an absent row may hold anything
    time, event, weight, own = time[seen].double(), event[seen], weight[seen], own[seen]
    entry = None if entry is None else entry[seen]
    _, rank = score[seen].double().unique(return_inverse=True)
    rows = ((event > 0) & (own > 0)).nonzero().squeeze(1)
    count = _count_pairs(time, event, rank, weight, entry, rows)
    won, total = (own[rows] @ part for part in count)
    return won / torch.where(total > 0, total, torch.nan)


def _count_pairs(
    time: Tensor, event: Tensor, rank: Tensor, weight: Tensor, entry: Tensor | None, rows: Tensor
) -> tuple[Tensor, Tensor]:
    """For each row with an event: the weight of its partners it wins over, and of all of them."""
    if entry is None:
        return _count_by_blocks(time, event, rank, weight, rows)
    won, total = [weight.new_zeros(0)], [weight.new_zeros(0)]
    for some in rows.split(max(1, _BLOCK // max(len(time), 1))):
        pair = _comparable(time, event, entry.double(), some) * weight
        own = rank[some].unsqueeze(1)
        won.append((pair * ((own > rank).double() + 0.5 * (own == rank).double())).sum(1))
        total.append(pair.sum(1))
    return torch.cat(won), torch.cat(total)


def _comparable(time: Tensor, event: Tensor, entry: Tensor | None, rows: Tensor) -> Tensor:
    own = time[rows].unsqueeze(1)
    pair = (own < time) | ((own == time) & (event == 0))
    return (pair if entry is None else pair & (entry < own)).double()


def _count_by_blocks(
    time: Tensor, event: Tensor, rank: Tensor, weight: Tensor, rows: Tensor
) -> tuple[Tensor, Tensor]:
    """The partners of a row are all rows from some place on in the order of time.

    That run is cut into blocks of 1, 2, 4, ... places, in each of which ranks are sorted, so that
    the weight below a rank is one search.
    """
    n = len(time)
    _, group = time.unique(return_inverse=True)
    order = (2 * group + (event == 0).long()).argsort(stable=True)  # events before the censored
    key = (2 * group + (event == 0).long())[order]
    first = torch.searchsorted(key, 2 * group[rows] + 1)  # after the events of this time: >= 1
    rank_in_time, weight_in_time = rank[order], weight[order]
    won, total = weight.new_zeros(len(rows)), weight.new_zeros(len(rows))
    place, size = torch.arange(n, device=time.device), 1
    while size < n:
        block = place // size
        code, inside = (block * (n + 1) + rank_in_time).sort()
        mass = torch.cat([weight.new_zeros(1), weight_in_time[inside].cumsum(0)])
        mine = (first % 2 == 1) & (first * size < n)
        start = first[mine] * (n + 1)
        below = mass[torch.searchsorted(code, start + rank[rows[mine]])]
        upto = mass[torch.searchsorted(code, start + rank[rows[mine]], right=True)]
        begin = mass[torch.searchsorted(code, start)]
        end = mass[torch.searchsorted(code, start + n + 1)]
        won[mine] += 0.5 * (below + upto) - begin
        total[mine] += end - begin
        first, size = (first + 1) // 2, 2 * size
    return won, total
