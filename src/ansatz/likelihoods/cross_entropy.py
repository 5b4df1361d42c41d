"""Cross-entropy with class weights or smoothed labels."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from ansatz.likelihoods.categorical import class_counts
from ansatz.likelihoods.dispersion import UnitScale
from ansatz.likelihoods.likelihood import Likelihood, require_same_shape
from ansatz.likelihoods.support import check_codes
from ansatz.spec import TargetSpec

_RULES = ("balanced", "inverse", "class_balanced")


class CrossEntropy(Likelihood):
    r"""The categorical distribution's loss, with weights per class and smoothed labels.

    .. math:: \ell = -\sum_k T_{yk}\, w_k \log p_k, \qquad p = \text{softmax}(\eta)

    with :math:`\eta` = raw and T the probability of putting k in place of the label y: the identity
    without smoothing, :math:`(1 - \epsilon) 1[y = k] + \epsilon / K` with a number
    :math:`\epsilon`, as in ``torch.nn.CrossEntropyLoss``, or any confusion matrix.

    The weights :math:`w_k`, from the n rows of which :math:`n_k` are of class k:

    - ``"inverse"``: :math:`n / n_k`, the cost-sensitive likelihood;
    - ``"balanced"``: :math:`n / (K n_k)`, the same with a total weight of n;
    - ``"class_balanced"``: :math:`(1 - \beta) / (1 - \beta^{n_k})`, 1 for all at :math:`\beta` = 0
      and :math:`1 / n_k` as :math:`\beta \to 1`;

    a class without a row has weight 1.

    Weighted or smoothed it no longer estimates P(y | x), so it is a loss and not a likelihood: its
    minimiser is :math:`p_k \propto w_k P(y = k | x)` without smoothing. ``unweighted`` and
    ``probs`` therefore subtract :math:`\log w_k`; smoothing stays in them, and asks for
    recalibration.

    Args:
        class_weight: one weight per class, a rule by name, or None for 1.
        beta: :math:`\beta` in [0, 1) of ``"class_balanced"``.
        label_smoothing: :math:`\epsilon` in [0, 1), or T, K rows of K probabilities.

    Shapes:
        - raw: ``(..., K)``.
        - y: ``(...)`` class codes.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import CrossEntropy
        >>> CrossEntropy(class_weight=[1.0, 3.0]).loss(torch.zeros(1, 2), torch.tensor([1]))
        tensor([2.0794])

    References:
        Szegedy et al. (2016), Rethinking the Inception architecture, section 7.
        https://arxiv.org/abs/1512.00567
        Cui et al. (2019), Class-balanced loss based on effective number of samples, eq. 6.
        https://arxiv.org/abs/1901.05555
    """

    name = "cross_entropy"
    has_distribution = False
    link_name = "logit"
    confusion: Tensor | None

    def __init__(
        self,
        *,
        class_weight: Sequence[float]
        | Literal["balanced", "inverse", "class_balanced"]
        | None = None,
        beta: float = 0.999,
        label_smoothing: float | Sequence[Sequence[float]] = 0.0,
    ) -> None:
        super().__init__()
        if isinstance(class_weight, str) and class_weight not in _RULES:
            raise ValueError(
                f"class_weight must be numbers or 'balanced', 'inverse' or 'class_balanced', "
                f"got {class_weight!r}."
            )
        if not 0 <= beta < 1:
            raise ValueError(f"beta of CrossEntropy must be in [0, 1), got {beta}.")
        self.rule = class_weight if isinstance(class_weight, str) else None
        self.beta, self.class_weight, self.classes = beta, UnitScale(), 0
        if class_weight is not None and not isinstance(class_weight, str):
            given = torch.tensor([float(w) for w in class_weight], dtype=torch.float64)
            if not bool(((given > 0) & given.isfinite()).all()):
                raise ValueError(f"class weights must be positive, got {list(class_weight)}.")
            self.class_weight.observe(given)
        number = isinstance(label_smoothing, (int, float))
        if number and not 0 <= label_smoothing < 1:  # type: ignore[operator]
            raise ValueError(f"label_smoothing must be in [0, 1), got {label_smoothing}.")
        self.label_smoothing = label_smoothing
        self.register_buffer("confusion", None if number else _confusion(label_smoothing))

    @property
    def smoothed(self) -> bool:
        """Whether labels are smoothed, so that ``probs`` asks for recalibration."""
        return self.confusion is not None or bool(self.label_smoothing)

    @property
    def log_weights(self) -> Tensor:
        """log w_k, ``(K,)``; 0 without weights."""
        return self.class_weight.value.log()

    def outputs(self, target: TargetSpec) -> int:
        """K."""
        if target.classes < 1:
            raise ValueError(f"{self.name} needs the number of classes, got {target.classes}.")
        given = self.class_weight.value
        if given.ndim and given.shape[-1] != target.classes:
            raise ValueError(
                f"class_weight has {given.shape[-1]} entries, but y has {target.classes} classes."
            )
        if self.confusion is not None and len(self.confusion) != target.classes:
            raise ValueError(
                f"label_smoothing has {len(self.confusion)} rows, but y has {target.classes} "
                "classes."
            )
        if self.rule is not None and not given.ndim:  # a saved model has one per class
            self.class_weight.observe(given.new_ones(target.classes))
        self.classes = target.classes
        return target.classes

    def check(self, y: Tensor) -> None:
        """Whole numbers from 0, below K where K is known."""
        check_codes(y, self.classes)

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """The weights of a rule."""
        if self.rule is None:
            return
        counts = class_counts(y, weight, self.classes)
        total, safe = counts.sum(-1, keepdim=True), torch.where(counts > 0, counts, 1.0)
        match self.rule:
            case "inverse":
                found = total / safe
            case "balanced":
                found = total / (counts.shape[-1] * safe)
            case _:
                found = _class_balanced(safe, self.beta)
        self.class_weight.observe(torch.where(counts > 0, found, 1.0))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The log of the weighted, smoothed class frequencies; half a row for a class without."""
        counts = class_counts(y, weight, self.classes)
        mass = self._smooth(counts)
        mass = torch.where(mass > 0, mass, 0.5) * self.class_weight.value.to(mass.dtype)
        shift = torch.log_softmax(mass.log(), -1)
        return shift, torch.ones_like(shift)

    def _smooth(self, counts: Tensor) -> Tensor:
        """Rows of each class after the labels are redistributed, counts times T."""
        if self.confusion is not None:
            return counts @ self.confusion.to(counts.dtype)
        e = float(self.label_smoothing)  # type: ignore[arg-type]  # a number: there is no matrix
        return (1 - e) * counts + e * counts.mean(-1, keepdim=True)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """Weighted cross-entropy against the smoothed label."""
        require_same_shape(self.name, raw, y)
        weighted = torch.log_softmax(raw, -1) * self.class_weight.value.to(raw.dtype)
        if self.confusion is not None:
            return -(self.confusion.to(raw.dtype)[y.long()] * weighted).sum(-1)
        hit = weighted.gather(-1, y.long().unsqueeze(-1)).squeeze(-1)
        if not self.label_smoothing:
            return -hit
        e = float(self.label_smoothing)  # type: ignore[arg-type]
        return -(1 - e) * hit - e * weighted.mean(-1)

    def unweighted(self, raw: Tensor) -> Tensor:
        """``(..., K)`` logits of P(y | x): raw without the class weights' log w_k."""
        return raw - self.log_weights.to(raw.dtype)

    def logits(self, raw: Tensor) -> Tensor:
        """``(..., K)``: the same as ``unweighted``."""
        return self.unweighted(raw)

    def probs(self, raw: Tensor) -> Tensor:
        """``(..., K)``: estimates of P(y | x), class weights undone."""
        return torch.softmax(self.unweighted(raw), -1)

    def point(self, raw: Tensor) -> Tensor:
        """The class with the largest raw number: class weights are meant to move the decision."""
        return raw.argmax(-1)


def _class_balanced(counts: Tensor, beta: float) -> Tensor:
    """(1 - beta) / (1 - beta^n), without the digits that cancel as beta goes to 1."""
    if beta == 0:
        return torch.ones_like(counts)
    log_beta = torch.log1p(torch.tensor(-(1 - beta), dtype=torch.float64))
    return ((1 - beta) / -torch.expm1(counts.double() * log_beta)).to(counts)


def _confusion(rows: object) -> Tensor:
    try:
        numbers = [[float(p) for p in row] for row in rows]  # type: ignore[attr-defined]
        matrix = torch.tensor(numbers, dtype=torch.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"label_smoothing must be a number in [0, 1) or K rows of K numbers, got {rows!r}."
        ) from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"label_smoothing must be a square matrix, got the shape {tuple(matrix.shape)}."
        )
    if not bool((matrix >= 0).all()) or not bool(((matrix.sum(1) - 1).abs() < 1e-5).all()):
        raise ValueError(
            "each row of label_smoothing must hold probabilities that add up to 1, got row sums "
            f"{[round(s, 6) for s in matrix.sum(1).tolist()]}."
        )
    return matrix
