"""The likelihoods of several members as one likelihood."""

import copy
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from ansatz.likelihoods import Categorical, CrossEntropy, Likelihood
from ansatz.likelihoods.averaged import Averaged, merge, merges


class Combination:
    """Members' likelihoods with weights and one factor of recalibration.

    Some likelihoods stay what they are when members are mixed (classes, hazards at cuts): then the
    raw numbers are merged. For all others ``likelihood`` is the mixture, which takes every
    member's.

    Args:
        likelihoods: one per member, fitted.
        weights: ``(S,)``, normalised here.
        factor: of recalibration; for merged likelihoods the temperature that raw is divided by.

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

    def __init__(
        self, candidates: Sequence[Likelihood], weights: Tensor, factor: float = 1.0
    ) -> None:
        self.likelihoods, self.factor = list(candidates), float(factor)
        total = float(weights.sum())
        # Weights that were normalised once stay as they are: a saved model predicts the same bits.
        self.weights = weights.double() / (1.0 if abs(total - 1) < 1e-12 else total)
        self.merged = merges(self.likelihoods[0])
        self.likelihood: Likelihood = (
            copy.deepcopy(self.likelihoods[0])  # which may learn a baseline of its own
            if self.merged
            else Averaged(self.likelihoods, self.weights.log(), factor=self.factor)
        )

    def serve(self, raws: Sequence[Tensor]) -> Tensor:
        """From the members' raw numbers, ``(N, ..., P)`` each, to those that the likelihood takes.

        Returns:
            ``(N, ..., P)`` where members merge into one likelihood, else ``(N, S, ..., P)``.
        """
        if not self.merged:
            return torch.stack(list(raws), 1)
        aligned = [
            self._align(likelihood, raw)
            for likelihood, raw in zip(self.likelihoods, raws, strict=True)
        ]
        together = merge(self.likelihood, torch.stack(aligned), self.weights)
        return together if self.factor == 1 else together / self.factor

    def serve_in_turn(self, raws: Iterable[Tensor]) -> Tensor:
        """The same of merged likelihoods of classes, one member after another: memory holds two of them.

        A mean of probabilities is a mean of two as often as there are members more than one.
        """
        total, weight = None, 0.0
        for likelihood, mine, raw in zip(
            self.likelihoods, self.weights.tolist(), raws, strict=True
        ):
            aligned, weight = self._align(likelihood, raw), weight + mine
            if total is None:
                total = aligned
            elif mine > 0:
                shares = torch.tensor([1 - mine / weight, mine / weight], dtype=torch.float64)
                total = merge(self.likelihood, torch.stack([total, aligned]), shares)
        assert total is not None
        return total if self.factor == 1 else total / self.factor

    def _align(self, likelihood: Likelihood, raw: Tensor) -> Tensor:
        """The raw numbers of one member as the served likelihood takes them.

        Logits against a first class, as a linear model has them, become those of all classes, and
        class weights by a rule, which each member has of its own rows, those of the first member.
        """
        mine = self.likelihood
        if (
            isinstance(likelihood, CrossEntropy)
            and isinstance(mine, CrossEntropy)
            and likelihood.rule
        ):
            return likelihood.unweighted(raw) + mine.log_weights.to(raw)
        if isinstance(likelihood, Categorical) and isinstance(mine, Categorical):
            return likelihood.logits(raw) if likelihood.reference and not mine.reference else raw
        return raw
