"""Losses of point predictions: squared and absolute error."""

import torch
from torch import Tensor

from ansatz.likelihoods.dispersion import Unit
from ansatz.likelihoods.likelihood import (
    Likelihood,
    require_same_shape,
    weighted_mean,
    weighted_median,
    weighted_sd,
)
from ansatz.spec import TargetSpec


class MSE(Likelihood):
    r"""Squared error, whose minimiser is the conditional mean.

    .. math:: \ell = (y - f)^2

    as in ``torch.nn.MSELoss``; lecture notes that write :math:`\frac12\sum(f - y)^2` differ by a
    factor. It is the normal distribution's loss with a known variance, up to constants; it predicts
    no distribution. The training loss is in units of the variance of y, so that a learning rate
    means the same whether y is in metres or in kilometres.

    Shapes:
        - raw: ``(..., 1)``.
        - y: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import MSE
        >>> MSE().loss(torch.zeros(1, 1), torch.tensor([3.0]))
        tensor([9.])

    References:
        Gauss (1809), Theoria motus, section 179.
    """

    name = "mse"
    support = "real"
    has_distribution = False

    def __init__(self) -> None:
        super().__init__()
        self.unit = Unit()

    def outputs(self, target: TargetSpec) -> int:
        """1: the prediction."""
        return 1

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """The unit of the training loss, sd(y)."""
        self.unit.observe(weighted_sd(y, weight))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and sd of y."""
        mean, sd = weighted_mean(y, weight), weighted_sd(y, weight)
        return mean.unsqueeze(-1), torch.where(sd > 0, sd, 1.0).unsqueeze(-1)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """(y - f)^2."""
        require_same_shape(self.name, raw, y)
        return (y - raw[..., 0]) ** 2

    def training_loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The loss over the variance of y."""
        return self.loss(raw, y) / self.unit.value.to(raw.dtype) ** 2

    def point(self, raw: Tensor) -> Tensor:
        """The prediction."""
        return raw[..., 0]


class MAE(Likelihood):
    r"""Absolute error, whose minimiser is the conditional median.

    .. math:: \ell = |y - f|

    as in ``torch.nn.L1Loss``: the Laplace distribution's loss with a known scale, up to constants;
    it predicts no distribution. The training loss is in units of the mean absolute deviation of y
    from its median.

    Shapes:
        - raw: ``(..., 1)``.
        - y: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import MAE
        >>> MAE().loss(torch.zeros(1, 1), torch.tensor([-3.0]))
        tensor([3.])

    References:
        Koenker and Bassett (1978), Regression quantiles. https://doi.org/10.2307/1913643
    """

    name = "mae"
    support = "real"
    has_distribution = False

    def __init__(self) -> None:
        super().__init__()
        self.unit = Unit()

    def outputs(self, target: TargetSpec) -> int:
        """1: the prediction."""
        return 1

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """The unit of the training loss, the mean absolute deviation."""
        deviation = (y - weighted_median(y, weight)).abs()
        self.unit.observe(weighted_mean(deviation, weight))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The median of y and the mean absolute deviation from it."""
        median = weighted_median(y, weight)
        deviation = weighted_mean((y - median).abs(), weight)
        return median.unsqueeze(-1), torch.where(deviation > 0, deviation, 1.0).unsqueeze(-1)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """|y - f|."""
        require_same_shape(self.name, raw, y)
        return (y - raw[..., 0]).abs()

    def training_loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The loss over the unit of y."""
        return self.loss(raw, y) / self.unit.value.to(raw.dtype)

    def point(self, raw: Tensor) -> Tensor:
        """The prediction."""
        return raw[..., 0]
