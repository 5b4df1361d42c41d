"""Noise that regularises: dropped weights, added noise. Dropped units: ``torch.nn.Dropout``."""

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, linear


class DropConnect(nn.Linear):
    r"""A linear layer that drops *weights*, where dropout drops units.

    .. math:: y = \frac{W \odot M}{1 - p} x + b, \qquad M_{ij} \sim \mathrm{Bernoulli}(1 - p)

    Division by the keep probability makes the mean over masks the layer without them, which is
    what it computes when evaluating. One mask serves the whole batch.

    Args:
        in_features: :math:`D`.
        out_features: :math:`K`.
        p: the probability that a weight is dropped.
        bias: False for none; biases are never dropped.

    Shapes:
        - x: ``(..., D)``; returns ``(..., K)``.

    Example:
        >>> import torch
        >>> from ansatz.layers import DropConnect
        >>> layer = DropConnect(3, 2, p=0.5).eval()
        >>> layer(torch.ones(1, 3)).shape
        torch.Size([1, 2])

    References:
        Wan et al. (2013), Regularization of neural networks using DropConnect.
    """

    def __init__(
        self, in_features: int, out_features: int, *, p: float = 0.5, bias: bool = True
    ) -> None:
        super().__init__(in_features, out_features, bias=bias)
        if not 0 <= p < 1:
            raise ValueError(f"p of DropConnect must be in [0, 1), got {p}.")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, dropout(self.weight, self.p, self.training), self.bias)


class GaussianNoise(nn.Module):
    r"""Adds independent N(0, sd^2) noise while training.

    For a linear model with squared loss, noise on x is ridge regression in the mean:
    :math:`\mathrm{E}(y - w^T(x + \epsilon))^2 = (y - w^T x)^2 + sd^2 \|w\|^2`.

    Args:
        sd: standard deviation of the noise.

    Shapes:
        - x: any; returns the same.

    Example:
        >>> import torch
        >>> from ansatz.layers import GaussianNoise
        >>> GaussianNoise(0.1).eval()(torch.ones(2))
        tensor([1., 1.])

    References:
        Bishop (1995), Training with noise is equivalent to Tikhonov regularization.
    """

    def __init__(self, sd: float) -> None:
        super().__init__()
        if not 0 <= sd < float("inf"):
            raise ValueError(f"sd of GaussianNoise must be in [0, inf), got {sd}.")
        self.sd = sd

    def forward(self, x: Tensor) -> Tensor:
        return x + self.sd * torch.randn_like(x) if self.training else x
