"""The laws of several members as one law."""

import copy
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from ansatz.likelihoods import Categorical, CrossEntropy, Likelihood
from ansatz.likelihoods.averaged import Averaged
from ansatz.likelihoods.merging import merge, merges


class Combination:
    """Members' laws with weights and one factor of recalibration.

    Some laws stay what they are when members are mixed (classes, hazards at cuts): then the raw
    numbers are merged. For all others ``likelihood`` is the mixture, which takes every member's.

    Args:
        laws: one per member, fitted.
        weights: ``(S,)``, normalised here.
        factor: of recalibration; for merged laws the temperature that raw is divided by.

    Example:
        >>> import torch
        >>> from ansatz.inference import Combination
        >>> from ansatz.likelihoods import Normal
        >>> together = Combination([Normal(dispersion=1.0)] * 2, torch.ones(2))
        >>> raw = together.serve([torch.zeros(5, 1), torch.ones(5, 1)])
        >>> together.likelihood.distribution(raw).mean[0]
        tensor(0.5000)

    References:
        Lakshminarayanan et al. (2017), Simple and scalable predictive uncertainty estimation using
        deep ensembles. https://arxiv.org/abs/1612.01474
    """

    def __init__(self, laws: Sequence[Likelihood], weights: Tensor, factor: float = 1.0) -> None:
        self.laws, self.factor = list(laws), float(factor)
        total = float(weights.sum())
        # Weights that were normalised once stay as they are: a saved model predicts the same bits.
        self.weights = weights.double() / (1.0 if abs(total - 1) < 1e-12 else total)
        self.merged = merges(self.laws[0])
        self.likelihood: Likelihood = (
            copy.deepcopy(self.laws[0])  # which may learn a baseline of its own
            if self.merged
            else Averaged(self.laws, self.weights.log(), factor=self.factor)
        )

    def serve(self, raws: Sequence[Tensor]) -> Tensor:
        """From the members' raw numbers, ``(N, ..., P)`` each, to those that the law takes.

        Returns:
            ``(N, ..., P)`` where members merge into one law, else ``(N, S, ..., P)``.
        """
        if not self.merged:
            return torch.stack(list(raws), 1)
        aligned = [self._align(law, raw) for law, raw in zip(self.laws, raws, strict=True)]
        together = merge(self.likelihood, torch.stack(aligned), self.weights)
        return together if self.factor == 1 else together / self.factor

    def serve_in_turn(self, raws: Iterable[Tensor]) -> Tensor:
        """The same of merged laws of classes, one member after another: memory holds two of them.

        A mean of probabilities is a mean of two as often as there are members more than one.
        """
        total, weight = None, 0.0
        for law, mine, raw in zip(self.laws, self.weights.tolist(), raws, strict=True):
            aligned, weight = self._align(law, raw), weight + mine
            if total is None:
                total = aligned
            elif mine > 0:
                shares = torch.tensor([1 - mine / weight, mine / weight], dtype=torch.float64)
                total = merge(self.likelihood, torch.stack([total, aligned]), shares)
        assert total is not None
        return total if self.factor == 1 else total / self.factor

    def _align(self, law: Likelihood, raw: Tensor) -> Tensor:
        """The raw numbers of one member as the served law takes them.

        Logits against a first class, as a linear model has them, become those of all classes, and
        class weights by a rule, which each member has of its own rows, those of the first member.
        """
        mine = self.likelihood
        if isinstance(law, CrossEntropy) and isinstance(mine, CrossEntropy) and law.rule:
            return law.unweighted(raw) + mine.log_weights.to(raw)
        if isinstance(law, Categorical) and isinstance(mine, Categorical):
            return law.logits(raw) if law.reference and not mine.reference else raw
        return raw
