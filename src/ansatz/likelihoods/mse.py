"""Squared error: the mean."""

import torch
from torch import Tensor

from ansatz.likelihoods.likelihood import Likelihood, require_same_shape, weighted_mean, weighted_sd
from ansatz.likelihoods.support import refuse_outside
from ansatz.likelihoods.unit import Unit
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
    has_distribution = False

    def __init__(self) -> None:
        super().__init__()
        self.unit = Unit()

    def outputs(self, target: TargetSpec) -> int:
        """1: the prediction."""
        return 1

    def check(self, y: Tensor) -> None:
        """Any finite number."""
        refuse_outside(~y.isfinite(), y, "Outcomes of mse must be finite numbers")

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
