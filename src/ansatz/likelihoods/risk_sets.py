"""Who is at risk when: sums over the rows under observation at each event time."""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softplus

EMPTY = -1e30  # the logarithm of an empty sum: finite, so that gradients meet no inf - inf


class RiskSets(NamedTuple):
    r"""The risk sets :math:`R_k = \{j : e_j < t_k \le s_j\}` of the distinct event times t_k.

    e_j is the entry of row j and s_j its time; a row that is censored at an event time is still
    at risk there. The rows that die at t_k are kept apart from the others at risk, as ties need.

    A row is at risk during a run ``first <= k < last`` of event times. Sums over the rows at risk
    are taken in log space and only by adding: with entries, each run is cut into blocks of
    1, 2, 4, ... event times (at most two of a size), and an event time adds up the blocks that
    hold it. A difference of running sums would lose all digits when log-risks lie far apart.

    Shapes:
        - times, weight: ``(K,)``, the distinct event times and the weight of the rows that die.
        - first, last: ``(N,)``, the run of each row, its own event left out.
        - events, place: ``(M,)``, the rows with an event, and which event time it is.
    """

    times: Tensor
    weight: Tensor
    first: Tensor
    last: Tensor
    events: Tensor
    place: Tensor

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
        """log sum exp(value) over the rows at risk that do not die, and over those that do.

        Shapes:
            - value: ``(N,)``.
            - returns: ``(K,)`` each; about ``EMPTY`` where there is no such row.
        """
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
