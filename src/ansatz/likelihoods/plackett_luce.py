"""The Plackett-Luce likelihood: the outcome is a ranking of items."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad, softplus

from ansatz.likelihoods.likelihood import Likelihood, refuse_where, require_same_shape
from ansatz.likelihoods.ranking import RankingDistribution, Unranked, ranking_loss
from ansatz.likelihoods.ranking_fit import fit_scores
from ansatz.spec import TargetSpec


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
    ``notes`` says which. Groups that were never compared need a ``prior``: every item is compared
    so many times with a ghost of score 0 (the mean), half won and half lost, which adds
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
        self.notes: list[str] = []  # what start has to say about the items
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
        """What tells it from others."""
        options: dict[str, Any] = {"unranked": self.unranked, "prior": self.prior}
        return ", ".join(f"{name}={value!r}" for name, value in options.items())


def _again(y: Tensor) -> Tensor:
    """True where an item was already named at a better place of its row."""
    value, place = y.sort(dim=-1, stable=True)
    twice = (value[..., 1:] == value[..., :-1]) & (value[..., 1:] >= 0)
    return torch.zeros_like(y, dtype=torch.bool).scatter(-1, place, pad(twice, (1, 0)))
