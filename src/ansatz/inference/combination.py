"""Mixes the predicted distributions of several members into one."""

import copy
import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from ansatz.fitting.contracts.inference import Predictive
from ansatz.likelihoods import Categorical, CrossEntropy, Likelihood
from ansatz.likelihoods.averaged import Averaged, merge, merges
from ansatz.seeds import generator


class Combination:
    """The weighted mixture of several members' distributions, with one factor of recalibration.

    Some likelihoods stay what they are when members are mixed (classes, hazards at cuts): then the
    raw numbers are merged. For all others ``likelihood`` is the mixture, which takes every
    member's.

    Args:
        likelihoods: of the members, one each, fitted.
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
        self, likelihoods: Sequence[Likelihood], weights: Tensor, factor: float = 1.0
    ) -> None:
        self.likelihoods, self.factor = list(likelihoods), float(factor)
        total = float(weights.sum())
        # Weights that were normalised once stay as they are: a saved model predicts the same bits.
        self.weights = weights.double() / (1.0 if abs(total - 1) < 1e-12 else total)
        self.merged = merges(self.likelihoods[0])
        self.likelihood: Likelihood = (
            copy.deepcopy(self.likelihoods[0])  # which may learn a baseline of its own
            if self.merged
            else Averaged(self.likelihoods, self.weights.log(), factor=self.factor)
        )

    def recalibrate(self, factor: float) -> None:
        """Sets the factor of recalibration, without copies of the members."""
        self.factor = float(factor)
        if isinstance(self.likelihood, Averaged):
            self.likelihood.recalibrate(factor)

    def serve(self, raws: Sequence[Tensor]) -> Tensor:
        """Combines the members' raw numbers, ``(N, ..., P)`` each, for the likelihood.

        Returns:
            ``(N, ..., P)`` where members merge into one likelihood, else ``(N, S, ..., P)``; with
            the root of its estimation error behind, where a member is a linear model.
        """
        if not self.merged:
            widest = max(raw.shape[-1] for raw in raws)
            return torch.stack([pad(raw, (0, widest - raw.shape[-1])) for raw in raws], 1)
        aligned = [
            self._align(likelihood, raw)
            for likelihood, raw in zip(self.likelihoods, raws, strict=True)
        ]
        together = merge(self.likelihood, torch.stack(aligned), self.weights)
        return together if self.factor == 1 else together / self.factor

    def serve_in_turn(self, raws: Iterable[Tensor]) -> Tensor:
        """Does the same for merged classes, with only two members in memory at a time.

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

    def of_member(self, served: Predictive) -> Predictive:
        """A member's prediction under the merged likelihood, which may have a baseline of all."""
        return Predictive(self.likelihood, self._align(served.likelihood, served.raw))

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


def stack_weights(log_scores: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""Finds the weights of the mixture with the best log score.

    .. math:: \hat\pi = \arg\max_\pi \sum_i w_i \log \sum_g \pi_g\, p_g(y_i) + \sum_g \log \pi_g

    on the simplex, by EM: concave, so that there is one maximum. The last sum, as if each model had
    been right about one row more, keeps every weight above 0.

    Args:
        log_scores: ``(N, G)``, the log score of each row by each model, out of fold.
        weight: ``(N,)`` frequency weights.

    Returns:
        ``(G,)``, adding up to 1.

    Example:
        >>> import torch
        >>> from ansatz.inference.combination import stack_weights
        >>> scores = torch.tensor([[0.0, -3.0], [0.0, -3.0], [-3.0, 0.0], [0.0, -3.0]])
        >>> bool(stack_weights(scores)[0] > 0.5)
        True

    References:
        Yao et al. (2018), Using stacking to average Bayesian predictive distributions.
        https://doi.org/10.1214/17-BA1091
    """
    scores = log_scores.double()
    count = scores.shape[1]
    if weight is None:
        weight = torch.ones(len(scores), dtype=torch.float64)
    weight = weight.double().unsqueeze(1)
    log_pi = torch.full((count,), -math.log(count), dtype=torch.float64)
    for _ in range(1_000):
        responsibility = torch.softmax(scores + log_pi, 1)
        mass = (weight * responsibility).sum(0) + 1
        fresh = (mass / mass.sum()).log()
        if float((fresh - log_pi).abs().max()) < 1e-8:
            break
        log_pi = fresh
    return log_pi.exp()


def probability_of_best(scores: Tensor, group: Tensor, seed: int = 0, draws: int = 2_000) -> Tensor:
    """Estimates each group's probability of the best mean score, by the Bayesian bootstrap.

    For models that were evaluated on different rows, which no mixture weight can be fitted to: a
    clear winner takes nearly all, groups that are alike share.

    Args:
        scores: ``(N,)`` log scores, each of one row by one model.
        group: ``(N,)``, which group the model belongs to, 0..G-1.
        seed: of the draws.
        draws: how many.

    Returns:
        ``(G,)``, adding up to 1.

    Example:
        >>> import torch
        >>> from ansatz.inference.combination import probability_of_best
        >>> scores = torch.tensor([0.0, 0.1, -0.1, 5.0, 5.1, 4.9])
        >>> probability_of_best(scores, torch.tensor([0, 0, 0, 1, 1, 1]))
        tensor([0., 1.], dtype=torch.float64)

    References:
        Yao et al. (2018), Using stacking to average Bayesian predictive distributions, section 3.4.
        https://doi.org/10.1214/17-BA1091
    """
    source = generator(seed, "bootstrap")
    means = []
    for number in range(int(group.max()) + 1):
        mine = scores[group == number].double()
        weight = torch.empty(draws, len(mine), dtype=torch.float64).exponential_(generator=source)
        means.append((weight @ mine) / weight.sum(1))
    best = torch.stack(means, 1).argmax(1)
    return torch.bincount(best, minlength=len(means)).double() / draws
