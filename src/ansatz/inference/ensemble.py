"""An ensemble as a posterior: several weight vectors in place of one."""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.inference.combination import Combination
from ansatz.likelihoods import Distribution, Likelihood
from ansatz.training import Supervised


class Ensemble:
    """Members trained from different starts on different rows, mixed by weight.

    The predictive is the mixture of the members' laws, recalibrated by one factor as a whole.

    Args:
        members: networks with their objectives, of one likelihood; copied.
        weights: ``(S,)``; equal if not given.
        factor: what recalibration found; 1 for none.

    Example:
        >>> import torch
        >>> from ansatz.inference import Ensemble
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.training import Supervised
        >>> members = [(torch.nn.Linear(2, 1), Supervised(Normal(dispersion=1.0))) for _ in "ab"]
        >>> posterior = Ensemble(members)
        >>> posterior.raw(torch.zeros(5, 2)).shape
        torch.Size([2, 5, 1])
        >>> posterior.predict(torch.zeros(5, 2)).mean.shape
        torch.Size([5])

    References:
        Lakshminarayanan et al. (2017), Simple and scalable predictive uncertainty estimation using
        deep ensembles. https://arxiv.org/abs/1612.01474
    """

    def __init__(
        self,
        members: Sequence[tuple[nn.Module, Supervised]],
        weights: Tensor | None = None,
        factor: float = 1.0,
    ) -> None:
        self.networks = [copy.deepcopy(network).eval() for network, _ in members]
        self.objectives = [copy.deepcopy(goal).eval().requires_grad_(False) for _, goal in members]
        weights = torch.ones(len(self.networks)) if weights is None else weights
        laws = [goal.likelihood for goal in self.objectives]
        self.combination = Combination(laws, weights, factor)

    def __len__(self) -> int:
        return len(self.networks)

    @property
    def weights(self) -> Tensor:
        """How much each member counts, ``(S,)``."""
        return self.combination.weights

    @property
    def likelihood(self) -> Likelihood:
        """The law that is served."""
        return self.combination.likelihood

    @torch.no_grad()
    def raw(self, *inputs: Any, offset: Tensor | None = None) -> Tensor:
        """The parameters of the likelihood by each member, ``(S, B, ..., P)``."""
        pairs = zip(self.networks, self.objectives, strict=True)
        return torch.stack([goal.raw(network, inputs, offset) for network, goal in pairs])

    @torch.no_grad()
    def predict(self, *inputs: Any, offset: Tensor | None = None) -> Distribution:
        """The predictive distribution: the mixture over the members."""
        served = self.combination.serve(list(self.raw(*inputs, offset=offset)))
        return self.likelihood.distribution(served)
