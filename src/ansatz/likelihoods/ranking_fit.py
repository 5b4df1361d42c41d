"""Maximum-likelihood scores of rankings, finite or in the limit.

Legend: U different rankings, L places, K items.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch.nn.functional import softplus

from ansatz.errors import DataError, NumericalError

Codes = NDArray[np.int64]


class Comparisons(NamedTuple):
    """The strongly connected groups of the graph with an edge from each item to those it beat.

    Inside a group every item has beaten every other, if only by way of others; then the group has
    finite maximum-likelihood scores, and only then (Ford 1957; Hunter 2004, assumption 1).

    References:
        Ford (1957), Solution of a ranking problem from binary comparisons. American Mathematical
        Monthly 64, 28-33.
    """

    group: Codes  # (K,) the group of each item
    # (G,) 0 for the main group, the largest; -1 for those whose items only ever lost against it or
    # its inferiors, -2 below these, and 1, 2, ... above
    level: Codes
    linked: NDArray[np.bool_]  # (G,) False without a way to or from the main group
    compared: NDArray[np.bool_]  # (K,) False for items never compared with any other

    def apart(self) -> list[Codes]:
        """The items of each group that rankings do not link with the main one."""
        members = [np.flatnonzero(self.group == g) for g in np.flatnonzero(~self.linked)]
        return [items for items in members if self.compared[items].all()]

    def members(self, level: int) -> list[Codes]:
        """The items of each linked group at this level."""
        groups = np.flatnonzero(self.linked & (self.level == level))
        return [np.flatnonzero(self.group == g) for g in groups]

    @property
    def connected(self) -> bool:
        """Whether all items form one group."""
        return len(self.level) == 1


def compare(order: Codes, items: int, unranked: str = "last") -> Comparisons:
    """Groups and levels of the items of rankings."""
    winner, loser = _edges(order, items, unranked)
    edges = coo_matrix((np.ones(len(winner)), (winner, loser)), shape=(items, items))
    count, group = connected_components(edges, directed=True, connection="strong")
    compared = np.isin(np.arange(items), np.concatenate([winner, loser]))
    upper, lower = group[winner], group[loser]
    across = np.unique(np.stack([upper, lower], 1)[upper != lower], axis=0)
    main = _main(group, count, across)
    below = _longest(across, count, main)
    above = _longest(across[:, ::-1], count, main)
    linked = (below >= 0) | (above >= 0)
    level = np.where(above > 0, above, np.where(below > 0, -below, 0))
    return Comparisons(group.astype(np.int64), level, linked, compared)


def _edges(order: Codes, items: int, unranked: str) -> tuple[Codes, Codes]:
    """Each ranked item beats the next one; the others follow by way of it."""
    follows = order[:, 1:] >= 0
    winner, loser = order[:, :-1][follows], order[:, 1:][follows]
    if unranked == "last":
        out = np.ones((len(order), items + 1), dtype=bool)
        np.put_along_axis(out, np.where(order >= 0, order, items), False, axis=1)
        row, left = np.nonzero(out[:, :items])
        last = order[np.arange(len(order)), np.maximum((order >= 0).sum(1) - 1, 0)]
        row, left = row[last[row] >= 0], left[last[row] >= 0]  # an empty order has no losers
        winner, loser = np.concatenate([winner, last[row]]), np.concatenate([loser, left])
    return winner, loser


def _main(group: Codes, count: int, across: Codes) -> int:
    """The largest group; among equals the one that met most others, then the first item's."""
    size = np.bincount(group, minlength=count)
    met = np.bincount(across.ravel(), minlength=count)
    first = np.array([np.flatnonzero(group == g)[0] for g in range(count)])
    return int(np.lexsort((first, -met, -size))[0])


def _longest(edges: Codes, count: int, start: int) -> Codes:
    """The length of the longest way from ``start`` in a graph without cycles; -1 for no way."""
    length = np.full(count, -1)
    length[start] = 0
    while len(edges):
        known = length[edges[:, 0]] >= 0
        longer = length.copy()
        np.maximum.at(longer, edges[known, 1], length[edges[known, 0]] + 1)
        if np.array_equal(longer, length):
            break
        length = longer
    return length


GAP = 30.0  # least distance in score between groups of which one always lost


class RankingFit(NamedTuple):
    """The scores, how exact they are, and notes about them."""

    scores: Tensor  # (K,), adding up to 0
    gradient: float  # the largest derivative of the total loss that is left
    notes: list[str]  # items whose scores are a limit, or without evidence


def fit_scores(
    order: Tensor,
    weight: Tensor,
    items: int,
    *,
    unranked: str = "last",
    prior: float = 0.0,
    names: Sequence[str] = (),
) -> RankingFit:
    r"""Fits the constant model of Plackett-Luce, in float64.

    Hunter's MM algorithm, accelerated, finds the neighbourhood and Newton's method the maximum.
    Where it is infinite, every strongly connected group has its own finite maximum, and the total
    tends to its supremum as the groups move apart in the order of their levels; they stand so far
    apart, at least 30, that less than 1e-10 is missing.

    References:
        Hunter (2004), MM algorithms for generalized Bradley-Terry models. Annals of Statistics 32,
        384-406. https://doi.org/10.1214/aos/1079120141
        Varadhan and Roland (2008), Simple and globally convergent methods for accelerating the
        convergence of any EM algorithm. Scandinavian Journal of Statistics 35, 335-353.
    """
    order, weight = order.detach().cpu(), weight.detach().cpu().double()
    order, which = order.unique(dim=0, return_inverse=True)
    weight = torch.zeros(len(order), dtype=torch.float64).index_add_(0, which, weight)
    if prior > 0:
        scores, gradient = _maximise(_Total(order, weight, items, unranked, prior))
        return RankingFit(scores, gradient, [])
    found = compare(order.numpy(), items, unranked)
    _refuse_apart(found, names)
    gap = max(GAP, math.log(1e10 * items * order.shape[1] * float(weight.sum())))
    scores, worst = torch.zeros(items, dtype=torch.float64), 0.0
    bottom, top = 0.0, 0.0  # of all groups so far
    for level in sorted(set(found.level.tolist()), key=lambda level: (abs(level), level)):
        low, high = bottom, top
        for members in found.members(level):
            group = torch.from_numpy(members)
            inner, gradient = _group_scores(order, weight, group, items, unranked)
            if level < 0:
                inner = inner - inner.max() + bottom - gap
            elif level > 0:
                inner = inner - inner.min() + top + gap
            scores[group], worst = inner, max(worst, gradient)
            low, high = min(low, float(inner.min())), max(high, float(inner.max()))
        bottom, top = low, high
    known = torch.from_numpy(found.compared) if found.compared.any() else torch.ones(items) > 0
    scores = torch.where(known, scores - scores[known].mean(), 0)
    return RankingFit(scores, worst, _notes(found, names))


def _group_scores(
    order: Tensor, weight: Tensor, group: Tensor, items: int, unranked: str
) -> tuple[Tensor, float]:
    """The maximum of a group by itself, from the part of each ranking that is about it."""
    if len(group) == 1:
        return torch.zeros(1, dtype=torch.float64), 0.0
    code = torch.full((items + 1,), -1)  # the last is for the pads
    code[group] = torch.arange(len(group))
    inside = code[order]  # (U, L): a code of -1 looks up the last
    inside = inside.gather(1, (inside < 0).long().argsort(dim=1, stable=True))
    return _maximise(_Total(inside, weight, len(group), unranked, 0.0))


class _Derivatives(NamedTuple):
    value: Tensor
    gradient: Tensor  # (K,)
    expected: Tensor  # (K,) wins by the scores, those over the ghost included
    hessian: Tensor  # (K, K)


class _Total:
    """The total loss of constant scores, each stage of each ranking by its choice set."""

    def __init__(
        self, order: Tensor, weight: Tensor, items: int, unranked: str, prior: float
    ) -> None:
        self.weight, self.prior, self.items = weight, prior, items
        # (U, K): an item that was left out is in all choice sets, or in none.
        place = torch.full((len(order), items + 1), order.shape[1] if unranked == "last" else -1)
        steps = torch.arange(order.shape[1]).expand_as(order)
        place = place.scatter(1, torch.where(order >= 0, order, items), steps)
        self.place = place[:, :items]
        self.order, self.length = order, order.shape[1]
        won = torch.zeros(items, dtype=torch.float64)
        for _, open_, winner, w in self._stages():
            won.index_add_(0, winner[open_], w[open_])
        self.won = won + prior / 2

    def _stages(self):  # type: ignore[no-untyped-def]
        """Blocks of (alive (B, L, K), open (B, L), winner (B, L), weight (B, L))."""
        size = max(1, 2**21 // (self.length * self.items))
        for rows in torch.arange(len(self.place)).split(size):
            alive = self.place[rows].unsqueeze(1) >= torch.arange(self.length).reshape(1, -1, 1)
            winner = self.order[rows]
            open_ = (winner >= 0) & (alive.sum(-1) > 1)  # the last one left had no choice
            yield alive, open_, winner, self.weight[rows].unsqueeze(1).expand_as(winner)

    def derivatives(self, scores: Tensor) -> _Derivatives:
        """Everything at these scores; the ghost is at their mean."""
        K = self.items
        value = scores.new_zeros(())
        expected, hessian = scores.new_zeros(K), scores.new_zeros(K, K)
        for alive, open_, winner, weight in self._stages():
            alive, winner, w = alive[open_], winner[open_], weight[open_]
            logits = torch.where(alive, scores, -torch.inf)  # (stages, K)
            norm = logits.logsumexp(-1)
            p = (logits - norm.unsqueeze(-1)).exp()
            value += w @ (norm - scores[winner])
            expected += w @ p
            hessian -= (w.unsqueeze(-1) * p).T @ p
        hessian += expected.diag()
        centred = scores - scores.mean()
        value = value + self.prior * (softplus(centred, threshold=40) - centred / 2).sum()
        ghost = torch.sigmoid(centred)
        expected = expected + self.prior * ghost
        hessian += (self.prior * ghost * (1 - ghost)).diag()
        centre = torch.eye(K, dtype=scores.dtype) - 1 / K
        gradient = centre @ (expected - self.won)
        return _Derivatives(value, gradient, expected, centre @ hessian @ centre)


def _maximise(total: _Total) -> tuple[Tensor, float]:
    """Scores that add up to 0 and the largest derivative left."""
    scores = torch.zeros(total.items, dtype=torch.float64)
    scores = _accelerated(lambda s: _mm_step(total, s), total, scores)
    here = total.derivatives(scores)
    for _ in range(100):
        size = here.gradient.abs().max()
        if size == 0:
            break
        # The Hessian does not move the mean, the added matrix moves nothing else.
        mean = here.hessian.diagonal().mean().expand_as(here.hessian) / total.items
        step = torch.linalg.solve(here.hessian + mean, -here.gradient)
        promise = float(-here.gradient @ step)
        there, scale = total.derivatives(scores + step), 1.0
        if promise < 1e-9 * (1 + float(here.value.abs())):  # values are flat to rounding: gradients
            if not there.gradient.abs().max() < size:
                break
        else:
            while not there.value <= here.value - 1e-4 * scale * promise:
                scale /= 2
                if scale < 1e-12:
                    break
                there = total.derivatives(scores + scale * step)
        scores, here = scores + scale * step, there
    left = float(here.gradient.abs().max())
    if not left <= 1e-9 * max(1.0, float(total.weight.sum())):
        raise NumericalError(
            f"the scores of the rankings did not converge (gradient {left:.1e}): some items hardly "
            "ever lost or won. Pass prior=1, comparisons of every item with a mean one."
        )
    return scores - scores.mean(), left


def _mm_step(total: _Total, scores: Tensor) -> Tensor:
    """Hunter's update: multiply each worth by wins / expected wins."""
    return scores + (total.won / total.derivatives(scores).expected).log()


def _accelerated(step: Callable[[Tensor], Tensor], total: _Total, scores: Tensor) -> Tensor:
    """Extrapolated steps (SQUAREM) until the wins are matched to a percent."""
    for _ in range(20):
        first = step(scores)
        change = first - scores
        if change.abs().max() < 0.01:
            return first
        second = step(first)
        bend = second - first - change
        length = -(change.norm() / bend.norm().clamp(min=1e-300)).clamp(min=1.0)
        leap = step(scores - 2 * length * change + length**2 * bend)
        better = total.derivatives(leap).value <= total.derivatives(second).value
        scores = leap if bool(better) else second
    return scores


def _refuse_apart(found: Comparisons, names: Sequence[str]) -> None:
    apart = found.apart()
    if not apart:
        return
    (main, *_) = found.members(0)
    raise DataError(
        f"the rankings do not show how {_list(apart[0], names)} compare with {_list(main, names)}: "
        "no chain of rankings leads from one to the other, so their scores have no "
        "maximum-likelihood estimate. Pass prior=1, comparisons of every item with a mean one, or "
        "leave items out."
    )


def _notes(found: Comparisons, names: Sequence[str]) -> list[str]:
    notes = []
    for side, verb, sign in ((-1, "lost", "minus"), (1, "won", "plus")):
        levels = sorted({int(level) for level in found.level if level * side > 0}, key=abs)
        for level in levels:
            items = np.sort(np.concatenate(found.members(level)))
            others = "the other items" if len(levels) == 1 else "the items nearer to the rest"
            one = len(items) == 1
            notes.append(
                f"{_list(items, names)} {verb} every comparison with {others}: "
                f"{'its score is' if one else 'their scores are'} {sign} infinity, and "
                f"{'stands' if one else 'stand'} {'below' if side < 0 else 'above'} the others' at "
                "a distance where the likelihood has reached its limit."
            )
    alone = np.flatnonzero(~found.compared)
    if len(alone):
        have = "has" if len(alone) == 1 else "have"
        notes.append(
            f"{_list(alone, names)} {have} no comparison with any other item: every score fits, "
            "and the mean, 0, is given."
        )
    return notes


def _list(items: Sequence[int] | np.ndarray, names: Sequence[str]) -> str:
    shown = [str(names[k]) if names else f"item {k}" for k in items[:10]]
    if len(items) > 10:
        return f"{', '.join(shown)} and {len(items) - 10} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
