"""The third axis: how sure do you need to be?"""

from typing import Any, Protocol

import torch
from torch import Tensor, nn

from ansatz.likelihoods import Distribution, Likelihood
from ansatz.training import Supervised


class Posterior(Protocol):
    """What is known about a network's weights, as its predictions.

    Example:
        >>> import torch
        >>> from ansatz.inference import Point, Posterior
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.training import Supervised
        >>> posterior: Posterior = Point(torch.nn.Linear(2, 1), Supervised(Normal(dispersion=1.0)))
        >>> posterior.raw(torch.zeros(5, 2)).shape
        torch.Size([1, 5, 1])
    """

    @property
    def likelihood(self) -> Likelihood:
        """The law of what :meth:`predict` gives."""
        ...

    def raw(self, *inputs: Any, offset: Tensor | None = None) -> Tensor:
        """The parameters of the likelihood by each of S weight vectors, ``(S, B, ..., P)``."""
        ...

    def predict(self, *inputs: Any, offset: Tensor | None = None) -> Distribution:
        """The predictive distribution: the mixture over the weight vectors."""
        ...


class Point:
    """One weight vector: the penalised maximum-likelihood estimate and no doubt about it.

    Args:
        network: trained.
        objective: likelihood, shift and scale.

    Example:
        >>> import torch
        >>> from ansatz.inference import Point
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.training import Supervised
        >>> point = Point(torch.nn.Linear(2, 1), Supervised(Normal(dispersion=1.0)))
        >>> point.predict(torch.zeros(5, 2)).mean.shape
        torch.Size([5])

    References:
        Goodfellow, Bengio and Courville (2016), Deep Learning, section 5.5.
    """

    def __init__(self, network: nn.Module, objective: Supervised) -> None:
        self.network, self.objective = network, objective

    @property
    def likelihood(self) -> Likelihood:
        """That of the objective."""
        return self.objective.likelihood

    @torch.no_grad()
    def raw(self, *inputs: Any, offset: Tensor | None = None) -> Tensor:
        """``(1, B, ..., P)``."""
        return self.objective.raw(self.network, inputs, offset).unsqueeze(0)

    @torch.no_grad()
    def predict(self, *inputs: Any, offset: Tensor | None = None) -> Distribution:
        """The law at the one weight vector."""
        return self.likelihood.distribution(self.raw(*inputs, offset=offset)[0])
