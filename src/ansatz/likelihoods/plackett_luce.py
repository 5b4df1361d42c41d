"""The Plackett-Luce likelihood: the outcome is a ranking of items."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import pad, softplus

from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import Likelihood, require_same_shape
from ansatz.likelihoods.ranking_fit import fit_scores
from ansatz.likelihoods.support import refuse_where
from ansatz.spec import TargetSpec

Unranked = Literal["last", "absent"]
_STEP = 0.1  # of the trapezoid rule in log time, see RankingDistribution.places


class RankingDistribution(Distribution):
    r"""Items in the order in which they are drawn, each with probability in proportion to worth.

    .. math:: p(y_1 \succ y_2 \succ \dots) =
              \prod_l \frac{e^{s_{y_l}}}{\sum_{k \in C_l} e^{s_k}}

    with :math:`C_l` the items that could have come at place l: all that are not ahead of it. A
    ranking of fewer than K items is declared to be one of two things. ``"last"``: those it leaves
    out came after the ranked ones and stay in every :math:`C_l` (a podium, a ballot's first
    choices). ``"absent"``: they took no part and are in none (a race in which others started).

    The same distribution comes from a race: item k arrives after an exponential time of rate
    :math:`e^{s_k}`. A ranking has no mean, cdf or quantile; its items have expected ranks.

    Args:
        scores: ``(..., K)`` log worths, up to a constant per row.
        unranked: what became of items that an order leaves out.

    Example:
        >>> import torch
        >>> distribution = RankingDistribution(torch.tensor([2.0, 1.0, 1.0]).log())
        >>> distribution.log_prob(torch.tensor([0, 1, 2])).exp()  # 2/4 * 1/2 * 1
        tensor(0.2500)
        >>> distribution.log_prob(torch.tensor([0, -1, -1])).exp()  # 2/4: 0 came first
        tensor(0.5000)

    References:
        Plackett (1975), The analysis of permutations. Applied Statistics 24, 193-202.
        Luce (1959), Individual Choice Behavior.
    """

    discrete = True

    def __init__(self, scores: Tensor, unranked: Unranked = "last") -> None:
        self.scores = scores - scores.mean(-1, keepdim=True)
        self.unranked = unranked

    @property
    def items(self) -> int:
        """K."""
        return self.scores.shape[-1]

    @property
    def batch_shape(self) -> torch.Size:
        """The shape of the batch; a sample has the K places behind it."""
        return self.scores.shape[:-1]

    @property
    def probs(self) -> Tensor:
        """P(item k comes first), ``(..., K)``."""
        return torch.softmax(self.scores, -1)

    @property
    def _centre(self) -> Tensor:
        return self.probs

    @property
    def _scatter(self) -> Tensor:
        return self.probs * (1 - self.probs)

    @property
    def mode(self) -> Tensor:
        """The most probable order: by score, ``(..., K)`` codes; equal scores by code."""
        return self.scores.sort(dim=-1, descending=True, stable=True).indices

    @property
    def entropy(self) -> Tensor:
        """No closed form: a sum over all orders."""
        raise TypeError("RankingDistribution has no closed form of its entropy.")

    @property
    def ranks(self) -> Tensor:
        """E[rank of item k], 1 for the first, ``(..., K)``: 1 + sum_j P(j is ahead of k)."""
        ahead = torch.sigmoid(self.scores.unsqueeze(-2) - self.scores.unsqueeze(-1))
        return 0.5 + ahead.sum(-1)  # an item is "ahead" of itself by one half

    def prefers(self, i: int, j: int) -> Tensor:
        """P(item i comes before item j), ``(...)``."""
        return torch.sigmoid(self.scores[..., i] - self.scores[..., j])

    def places(self, count: int) -> Tensor:
        r"""P(item k is at place l) for the first ``count`` places, ``(..., K, count)``.

        .. math:: \int f_k(t)\, P(l - 1 \text{ of the others arrived before } t)\, dt

        with the arrival times of the race. In log time the integrand is analytic in a strip and
        dies off faster than exponentially, where the trapezoid rule is exact to rounding.
        """
        if not 1 <= count <= self.items:
            raise ValueError(f"count must be from 1 to the {self.items} items, got {count}.")
        rows = self.scores.reshape(-1, self.items)
        with torch.no_grad():
            # e^(x - e^x), the density of log time, is below 1e-16 outside (-38, 4).
            low, high = -float(rows.max()) - 38, 4 - float(rows.min())
        times = torch.arange(low, high, _STEP, dtype=rows.dtype, device=rows.device)
        size = max(1, 2**22 // (len(times) * self.items * count))
        parts = [_places(block, times, count) for block in rows.split(size)]
        return torch.cat(parts).reshape(*self.scores.shape, count)

    def top(self, count: int) -> Tensor:
        """P(item k is among the first ``count``), ``(..., K)``."""
        return self.places(count).sum(-1)

    def log_prob(self, y: Tensor) -> Tensor:
        """Log probability of orders ``(..., L)``, best first, -1 behind the last ranked item.

        What is not an order (an item twice, an unknown code, a gap) has probability 0.
        """
        code = y.long()
        possible = (code == y).all(-1) & is_ranking(code, self.items)
        safe = torch.where(possible.unsqueeze(-1), code, -1)
        shape = torch.broadcast_shapes(self.batch_shape, code.shape[:-1])
        scores = self.scores.expand(*shape, self.items)
        nll = ranking_loss(scores, safe.expand(*shape, code.shape[-1]), self.unranked)
        return torch.where(possible, -nll, -math.inf)

    def crps(self, y: Tensor) -> Tensor:
        """Undefined: an order is not a number."""
        raise TypeError(
            "RankingDistribution has no crps: an order is not a number. Use kendall_tau."
        )

    def interval(self, level: float) -> tuple[Tensor, Tensor]:
        """Undefined: an order is not a number."""
        raise TypeError(
            "RankingDistribution has no interval: an order is not a number. Use places."
        )

    def _draw(self, size: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        """Whole orders, ``(*size, K)`` codes: the items as they arrive."""
        time = self.scores.new_empty((*size, self.items)).exponential_(generator=generator)
        # In logarithms (the Gumbel trick): worths of e^800 do not overflow.
        return (time.log() - self.scores).argsort(-1)


def ranking_loss(scores: Tensor, order: Tensor, unranked: Unranked) -> Tensor:
    r"""Minus the log probability of each order: sums over places of (log C_l's worth - score).

    The denominators are one cumulative log-sum-exp from the last place to the first, so nothing
    overflows, and a pad is in none of them.
    """
    ranked = order >= 0
    mine = scores.gather(-1, order.clamp(min=0))  # (..., L)
    # e^-100 of the least worth is below the rounding of any sum, in double precision too. An
    # infinity would do the same to the value and make the second derivatives nan.
    nothing = scores.detach().amin(-1, keepdim=True) - 100
    line = torch.where(ranked, mine, nothing)
    if unranked == "last":
        left = ~ranked_items(order, scores.shape[-1])
        rest = torch.where(left, scores, nothing).logsumexp(-1, keepdim=True)
        line = torch.cat([line, rest], -1)
    denominator = _from_the_end(line)[..., : order.shape[-1]]
    return torch.where(ranked, denominator - mine, 0).sum(-1)


def ranked_items(order: Tensor, items: int) -> Tensor:
    """``(..., K)``, True for the items that an order ranks."""
    seen = torch.zeros((*order.shape[:-1], items + 1), dtype=torch.bool, device=order.device)
    return seen.scatter(-1, torch.where(order >= 0, order, items), True)[..., :items]


def is_ranking(order: Tensor, items: int) -> Tensor:
    """``(...)``, True where an order ``(..., L)`` names each of its items once and has no gap."""
    ranked = order >= 0
    known = ((order >= -1) & (order < items)).all(-1)
    at_end = (ranked[..., 1:] <= ranked[..., :-1]).all(-1)
    found = ranked_items(order.clamp(max=items - 1), items).sum(-1)
    return known & at_end & (found == ranked.sum(-1))


def _from_the_end(x: Tensor) -> Tensor:
    """log(e^x_l + e^x_(l+1) + ...) along the last axis, by doubling strides.

    Not torch.logcumsumexp: its forward-mode derivative is wrong for numbers some 50 apart (2.13).
    """
    length, stride = x.shape[-1], 1
    while stride < length:
        here, later = x[..., :-stride], x[..., stride:]
        # softplus is linear beyond its threshold; the default of 20 would drop 2e-9.
        x = torch.cat([here + softplus(later - here, threshold=40), x[..., -stride:]], -1)
        stride *= 2
    return x


def _places(scores: Tensor, times: Tensor, count: int) -> Tensor:
    """(B, K, count) for scores (B, K): the counts of arrivals grow item by item."""
    x = times.reshape(-1, 1, 1) + scores  # (T, B, K)
    density = (x - x.exp()).exp()
    arrived = -torch.expm1(-x.exp())
    items = scores.shape[-1]
    before = x.new_zeros(*x.shape, count)  # (T, B, K, count): 0, 1, ... of the others arrived
    before[..., 0] = 1
    own = torch.eye(items, dtype=torch.bool, device=x.device)
    for j in range(items):
        p = torch.where(own[j], 0, arrived[..., j : j + 1]).unsqueeze(-1)  # (T, B, K, 1)
        moved = torch.cat([torch.zeros_like(p * before[..., :1]), before[..., :-1]], -1)
        before = before * (1 - p) + moved * p
    return _STEP * (density.unsqueeze(-1) * before).sum(0)


class PlackettLuce(Likelihood):
    r"""A ranking of K items, whole or in part, each place won in proportion to worth.

    .. math:: -\log p(y) = \sum_l \Bigl( \log \sum_{k \in C_l} e^{s_k} - s_{y_l} \Bigr)

    with :math:`s` = raw, one log worth per item, and :math:`C_l` the items that could have come at
    place l. With ``unranked="last"`` an item that a ranking leaves out came after all that it
    names and stays in every :math:`C_l` (top-k rankings); with ``"absent"`` it took no part and is
    in none (rankings of subsets). A pad is neither.

    Only differences of scores matter. A network gives all K; with ``reference=True`` raw holds
    K - 1 of them, of items 1..K-1 against item 0 whose raw number is 0, so that the coefficients of
    a linear model are identified. The scores that :meth:`scores` and the distribution report
    always add up to 0.

    The constant model's maximum-likelihood scores are finite only if the items cannot be split in
    two groups of which one never finished ahead of the other. Items that always lost against (or
    won over) the rest stand so far below (above) that the likelihood has reached its limit, and
    ``notes`` names them. Groups that were never compared need a ``prior``: every item is compared
    that many times with a ghost of score 0 (the mean), half won and half lost, which adds
    :math:`\text{prior} \sum_k (\log(1 + e^{s_k}) - s_k / 2)` to the total loss in training.
    ``loss`` and the distribution are without it.

    Args:
        unranked: ``"last"`` or ``"absent"``.
        reference: the first item's raw number is 0 and not part of raw.
        prior: pseudo-comparisons per item; 0 for none.

    Shapes:
        - raw: ``(B, K)``, or ``(B, K - 1)`` with a reference.
        - y: ``(B, L)`` item codes 0..K-1, best first, -1 behind the last ranked item.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import PlackettLuce
        >>> y = torch.tensor([[2, 0, 1], [1, -1, -1]])
        >>> PlackettLuce().loss(torch.zeros(2, 3), y).exp().round()  # one of 3!, one of 3
        tensor([6., 3.])

    References:
        Plackett (1975), The analysis of permutations. Applied Statistics 24, 193-202.
        Hunter (2004), MM algorithms for generalized Bradley-Terry models. Annals of Statistics 32,
        384-406. https://doi.org/10.1214/aos/1079120141
    """

    name = "plackett_luce"
    link_name = "log"
    event_ndim = 1

    def __init__(
        self, *, unranked: Unranked = "last", reference: bool = False, prior: float = 0.0
    ) -> None:
        super().__init__()
        if unranked not in ("last", "absent"):
            raise ValueError(f"unranked must be 'last' or 'absent', got {unranked!r}.")
        if isinstance(prior, bool) or not isinstance(prior, int | float) or not 0 <= prior < 1e9:
            raise ValueError(f"prior must be a number of comparisons >= 0, got {prior!r}.")
        self.unranked, self.reference, self.prior = unranked, reference, float(prior)
        self.classes = 0  # items
        self.item_names: Sequence[str] = ()  # for notes and errors; codes where not given
        self.notes: list[str] = []  # what start found about the items
        self.register_buffer("mass", torch.tensor(1.0))  # rows that share the prior

    mass: Tensor

    def outputs(self, target: TargetSpec) -> int:
        """K, or K - 1 with a reference; remembers K, which a sample of y may not show."""
        if target.classes < 1:
            raise ValueError(f"{self.name} needs the number of items, got {target.classes}.")
        self.classes = target.classes
        return target.classes - int(self.reference)

    def check(self, y: Tensor) -> None:
        """Rows of item codes, each code once, -1 only behind the last one."""
        if y.ndim < 2:
            raise ValueError(
                f"{self.name} needs rankings y of shape (B, L), best item first, got "
                f"{tuple(y.shape)}."
            )
        advice = "Code the items 0, 1, ... and fill a shorter ranking up with -1."
        whole = y.isfinite() & (y >= -1) & (y == y.round())
        refuse_where(~whole, y, "Item codes must be whole numbers >= 0", advice)
        if self.classes:
            expected = f"Item codes must be below the number of items, {self.classes}"
            refuse_where(y >= self.classes, y, expected, advice)
        empty = (y < 0).all(-1, keepdim=True).expand_as(y)
        refuse_where(empty, y, "A ranking must name an item", "Drop the row.")
        gap = (y >= 0) & (pad(y, (1, 0))[..., :-1] < 0)
        refuse_where(gap, y, "No item may follow a pad of -1", "Close the gap.")
        refuse_where(_again(y), y, "An item has one place", "Ties and repetitions are not ranked.")

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """The number of rows: each carries its share of the prior."""
        self.mass = weight.sum().to(self.mass.dtype)

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The maximum-likelihood scores of one order for all, with the prior if there is one."""
        seen = weight > 0
        found = fit_scores(
            y[seen].long(),
            weight[seen],
            self.classes or int(y[seen].max()) + 1,
            unranked=self.unranked,
            prior=self.prior,
            names=self.item_names,
        )
        self.notes = found.notes
        scores = found.scores.to(weight)
        shift = (scores - scores[:1])[1:] if self.reference else scores
        return shift, torch.ones_like(shift)

    def scores(self, raw: Tensor) -> Tensor:
        """The K log worths, ``(..., K)``, adding up to 0."""
        full = pad(raw, (1, 0)) if self.reference else raw
        return full - full.mean(-1, keepdim=True)

    def probs(self, raw: Tensor) -> Tensor:
        """P(item k comes first), ``(..., K)``: worths that add up to 1."""
        return torch.softmax(self.scores(raw), -1)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The negative log-likelihood."""
        require_same_shape(self.name, raw, y, event=y.shape[-1:])
        return ranking_loss(self.scores(raw), y.long(), self.unranked)

    def training_loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The loss and the row's share of the prior."""
        loss = self.loss(raw, y)
        if not self.prior:
            return loss
        scores = self.scores(raw)
        ghost = (softplus(scores, threshold=40) - scores / 2).sum(-1)
        return loss + self.prior / self.mass.to(loss.dtype) * ghost

    def distribution(self, raw: Tensor) -> RankingDistribution:
        """Rankings with these scores."""
        return RankingDistribution(self.scores(raw), self.unranked)

    def point(self, raw: Tensor) -> Tensor:
        """The most probable order, ``(..., K)``."""
        return self.distribution(raw).mode

    def extra_repr(self) -> str:
        """The options that differ between instances."""
        options: dict[str, Any] = {"unranked": self.unranked, "prior": self.prior}
        return ", ".join(f"{name}={value!r}" for name, value in options.items())


def _again(y: Tensor) -> Tensor:
    """True where an item was already named at a better place of its row."""
    value, place = y.sort(dim=-1, stable=True)
    twice = (value[..., 1:] == value[..., :-1]) & (value[..., 1:] >= 0)
    return torch.zeros_like(y, dtype=torch.bool).scatter(-1, place, pad(twice, (1, 0)))
