"""Huber's loss: squared near the prediction, absolute far from it."""

import math

import torch
from torch import Tensor

from ansatz.likelihoods.dispersion import Unit
from ansatz.likelihoods.likelihood import (
    Likelihood,
    expand_weight,
    require_same_shape,
    weighted_median,
    weighted_sd,
)
from ansatz.spec import TargetSpec


class Huber(Likelihood):
    r"""Squared error for small residuals, absolute error for large ones.

    .. math:: \ell = \begin{cases} \frac12 r^2 & |r| \le c \\ c|r| - \frac12 c^2 & |r| > c
              \end{cases}, \qquad r = y - f, \quad c = \delta s

    s is the median absolute deviation of y from its median times 1.4826 (which makes it the sd of
    normal data), measured by ``observe``; 1 before. With :math:`\delta` = 1.345 the estimate of a
    normal mean has 95 % of the efficiency of squared error. It predicts no distribution. The
    training loss is in units of s^2.

    Args:
        delta: where the loss turns linear, in units of s.

    Shapes:
        - raw: ``(..., 1)``.
        - y: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Huber
        >>> Huber(delta=1.0).loss(torch.zeros(2, 1), torch.tensor([0.5, 3.0]))
        tensor([0.1250, 2.5000])

    References:
        Huber (1964), Robust estimation of a location parameter.
        https://doi.org/10.1214/aoms/1177703732
    """

    name = "huber"
    support = "real"
    has_distribution = False

    def __init__(self, *, delta: float = 1.345) -> None:
        super().__init__()
        if not 0 < delta < math.inf:
            raise ValueError(f"delta of Huber must be positive and finite, got {delta}.")
        self.delta, self.unit = delta, Unit()

    def outputs(self, target: TargetSpec) -> int:
        """1: the prediction."""
        return 1

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """The scale s; the sd of y where more than half of its values are equal."""
        mad = 1.4826 * weighted_median((y - weighted_median(y, weight)).abs(), weight)
        self.unit.observe(torch.where(mad > 0, mad, weighted_sd(y, weight)))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Huber's estimate of location, exact, and the scale s."""
        scale = self.unit.value.to(y.dtype).expand(y.shape[1:])
        location = _location(y, expand_weight(weight, y), self.delta * scale)
        return location.unsqueeze(-1), scale.unsqueeze(-1).clone()

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """r^2 / 2, or c |r| - c^2 / 2 beyond c."""
        require_same_shape(self.name, raw, y)
        size = (y - raw[..., 0]).abs()
        near = size.clamp(max=self.delta * self.unit.value.to(raw.dtype))
        return near * (size - near / 2)

    def training_loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The loss over s^2."""
        return self.loss(raw, y) / self.unit.value.to(raw.dtype) ** 2

    def point(self, raw: Tensor) -> Tensor:
        """The prediction."""
        return raw[..., 0]


def _location(y: Tensor, weight: Tensor, c: Tensor) -> Tensor:
    """The root of the sum of w clip(y - m, -c, c), which falls in m: bisection, then exactly."""
    observed = weight > 0
    low = torch.where(observed, y, torch.inf).amin(0)
    high = torch.where(observed, y, -torch.inf).amax(0)
    y = torch.where(observed, y, 0)
    for _ in range(60):
        middle = low + (high - low) / 2
        right = (weight * (y - middle).clamp(-c, c)).sum(0) > 0
        low, high = torch.where(right, middle, low), torch.where(right, high, middle)
    middle = low + (high - low) / 2
    # Between the kinks the sum is linear in m, so the last digits are solved for.
    inside = weight * ((y - middle).abs() < c)
    pull = torch.where((y - middle).abs() < c, 0, c * (y - middle).sign())
    mass = inside.sum(0)
    exact = middle + ((inside * (y - middle)).sum(0) + (weight * pull).sum(0)) / mass.clamp(
        min=1e-30
    )
    return torch.where(mass > 0, exact, middle)
