"""Cross-entropy with class weights or smoothed labels."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from ansatz.likelihoods.categorical import class_counts
from ansatz.likelihoods.likelihood import Likelihood, require_same_shape
from ansatz.likelihoods.support import refuse_outside
from ansatz.likelihoods.unit import Unit
from ansatz.spec import TargetSpec


class CrossEntropy(Likelihood):
    r"""The categorical law's loss, with weights per class and smoothed labels.

    .. math:: \ell = -(1 - \epsilon)\, w_y \log p_y - \frac{\epsilon}{K} \sum_k w_k \log p_k,
              \qquad p = \text{softmax}(\eta)

    with :math:`\eta` = raw, as in ``torch.nn.CrossEntropyLoss``. Weighted or smoothed, it no longer
    estimates P(y | x), so it is a loss and not a law: its minimiser is
    :math:`p_k \propto w_k P(y = k | x)` without smoothing. ``logits`` and ``probs`` therefore
    subtract :math:`\log w_k`; smoothing has no such inverse, and asks for recalibration.

    Args:
        class_weight: one weight per class, ``"balanced"`` for n / (K n_k), or None for 1.
        label_smoothing: :math:`\epsilon` in [0, 1).

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
    """

    name = "cross_entropy"
    is_law = False
    link_name = "logit"

    def __init__(
        self,
        *,
        class_weight: Sequence[float] | Literal["balanced"] | None = None,
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"label_smoothing must be in [0, 1), got {label_smoothing}.")
        if isinstance(class_weight, str) and class_weight != "balanced":
            raise ValueError(f"class_weight must be numbers or 'balanced', got {class_weight!r}.")
        self.balanced, self.label_smoothing = class_weight == "balanced", label_smoothing
        self.class_weight, self.classes = Unit(), 0
        if class_weight is not None and not isinstance(class_weight, str):
            given = torch.tensor([float(w) for w in class_weight])
            if not bool((given > 0).all()):
                raise ValueError(f"class weights must be positive, got {list(class_weight)}.")
            self.class_weight.observe(given)

    def outputs(self, target: TargetSpec) -> int:
        """K."""
        given = self.class_weight.value
        if target.classes < 1:
            raise ValueError(f"{self.name} needs the number of classes, got {target.classes}.")
        if given.ndim and given.shape[-1] != target.classes:
            raise ValueError(
                f"class_weight has {given.shape[-1]} entries, but y has {target.classes} classes."
            )
        self.classes = target.classes
        return target.classes

    def check(self, y: Tensor) -> None:
        """Whole numbers from 0, below K where K is known."""
        bad = ~(y.isfinite() & (y >= 0) & (y == y.round()))
        refuse_outside(bad, y, "Class codes must be whole numbers >= 0")
        if self.classes:
            expected = f"Class codes must be below the number of classes, {self.classes}"
            refuse_outside(y >= self.classes, y, expected)

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Balanced weights n / (K n_k); a class without a row has weight 1."""
        if self.balanced:
            counts = class_counts(y, weight, self.classes)
            even = counts.mean(-1, keepdim=True)  # n / K
            self.class_weight.observe(even / torch.where(counts > 0, counts, even))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The log of the weighted, smoothed class frequencies; half a row for a class without."""
        counts = class_counts(y, weight, self.classes)
        smooth, classes = self.label_smoothing, counts.shape[-1]
        mass = (1 - smooth) * counts + smooth / classes * counts.sum(-1, keepdim=True)
        mass = torch.where(mass > 0, mass, 0.5) * self.class_weight.value.to(mass.dtype)
        shift = torch.log_softmax(mass.log(), -1)
        return shift, torch.ones_like(shift)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """Weighted cross-entropy against the smoothed label."""
        require_same_shape(self.name, raw, y)
        weighted = torch.log_softmax(raw, -1) * self.class_weight.value.to(raw.dtype)
        hit = weighted.gather(-1, y.long().unsqueeze(-1)).squeeze(-1)
        if not self.label_smoothing:
            return -hit
        return -(1 - self.label_smoothing) * hit - self.label_smoothing * weighted.mean(-1)

    def logits(self, raw: Tensor) -> Tensor:
        """``(..., K)``: raw without the class weights' log w_k."""
        return raw - self.class_weight.value.to(raw.dtype).log()

    def probs(self, raw: Tensor) -> Tensor:
        """``(..., K)``: estimates of P(y | x), class weights undone."""
        return torch.softmax(self.logits(raw), -1)

    def point(self, raw: Tensor) -> Tensor:
        """The class with the largest raw number: class weights are meant to move the decision."""
        return raw.argmax(-1)
